"""The function around a kernel's code: its parameters, and how it stands in the order of kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lumi.backends.cuda import ctype
from lumi.backends.cuda.scope import Writer
from lumi.llir import spell
from lumi.llir.kernel import Kernel, Step, accesses, buffers, written

ALIGNMENT = 16
"""Bytes that shared memory is aligned to."""


def text(kernel: Kernel, w: Writer, name: str, shared: int) -> str:
    """The kernel `name` whose body a writer holds, which waits for the kernel before it."""
    lines = [f"  {line}" for line in w.here.lines]
    if shared:
        lines.insert(0, f"  extern __shared__ __align__({ALIGNMENT}) u8 pool[];")
    bounds = f"__launch_bounds__({w.blocking.threads})"
    return "\n".join(
        [
            f"INLINE void {name}_cells({', '.join(parameters(kernel, w))}) {{",
            *lines,
            "}",
            f'extern "C" __global__ void {bounds} {name}({", ".join(parameters(kernel, w))}) {{',
            "  let_next_start();",
            "  wait_for_previous();",
            f"  {name}_cells({settled(kernel, w)});",
            "}",
            "",
        ]
    )


def member(kernel: Kernel, w: Writer, name: str, shared: int, result: str) -> str:
    """What a block does of a kernel that runs beside others: a function that returns `result`.

    Where only some of its threads do it, they are given their part of shared memory.
    """
    lines = [f"  {line}" for line in w.here.lines]
    if shared and not w.partial:
        lines.insert(0, f"  extern __shared__ __align__({ALIGNMENT}) u8 pool[];")
    given = ", ".join(
        [*parameters(kernel, w), "const u32 before", *(["u8 *const pool"] if w.partial else [])]
    )
    return "\n".join([f"INLINE u32 {name}_cells({given}) {{", *lines, f"  return {result};", "}"])


def together(step: Step, names: Mapping[str, str], name: str, threads: int, calls: Sequence[str]) -> str:
    """The kernel `name` that calls functions in turn after the wait; all threads end one before the next."""
    waits = [f"  {names[b]} = settled({names[b]});" for b in step.buffers]
    given = ", ".join(p.replace("*__restrict__", "*") for p in declared(step.kernels, names))
    body = "\n  __syncthreads();\n".join(f"  {call}" for call in calls)
    return "\n".join(
        [
            f'extern "C" __global__ void __launch_bounds__({threads}) {name}({given}) {{',
            "  let_next_start();",
            "  wait_for_previous();",
            *waits,
            "  u32 before = 0;",
            body,
            "}",
            "",
        ]
    )


def names(buffers: Sequence[str]) -> dict[str, str]:
    """What buffers are called in CUDA, by their order."""
    return {b: f"b{number}_{spell.identifier(b)}" for number, b in enumerate(buffers)}


def settled(kernel: Kernel, w: Writer) -> str:
    """The arguments for `parameters` after the wait."""
    return ", ".join([*(f"settled({w.buffers[b]})" for b in buffers(kernel)), "dims"])


def parameters(kernel: Kernel, w: Writer) -> list[str]:
    """The parameters of a kernel: its buffers, then the values of its dims."""
    return declared((kernel,), w.buffers)


def declared(kernels: Sequence[Kernel], names: Mapping[str, str]) -> list[str]:
    """The parameters of kernels together: their buffers, then the values of their dims."""
    types = {a.buffer: a.dtype for k in kernels for a, _ in accesses(k)}
    stored = frozenset().union(*(written(k) for k in kernels))
    found = [
        f"{'' if b in stored else 'const '}{ctype.memory(kind)} *__restrict__ {names[b]}"
        for b, kind in types.items()
    ]
    return [*found, "const i64 *__restrict__ dims"]
