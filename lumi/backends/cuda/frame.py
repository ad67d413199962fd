"""The function around a kernel's code: its parameters, and how it stands in the order of kernels."""

from __future__ import annotations

from lumi.backends.cuda import ctype
from lumi.backends.cuda.scope import Writer
from lumi.llir.kernel import Kernel, accesses, buffers, written

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


def settled(kernel: Kernel, w: Writer) -> str:
    """The arguments for `parameters` after the wait."""
    return ", ".join([*(f"settled({w.buffers[b]})" for b in buffers(kernel)), "dims"])


def parameters(kernel: Kernel, w: Writer) -> list[str]:
    """The parameters of a kernel: its buffers, then the values of its dims."""
    types = {a.buffer: a.dtype for a, _ in accesses(kernel)}
    stored = written(kernel)
    found = [
        f"{'' if b in stored else 'const '}{ctype.memory(types[b])} *__restrict__ {w.buffers[b]}"
        for b in buffers(kernel)
    ]
    return [*found, "const i64 *__restrict__ dims"]
