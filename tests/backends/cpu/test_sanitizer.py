"""Kernels under the address and undefined-behaviour sanitizers: no lane outside a buffer is touched."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lumi import dim
from lumi.backends.cpu.compile import FLAGS, find_compiler
from lumi.backends.cpu.emit import emit, source
from lumi.dtype import BF16, F32, I8
from lumi.field.access import Access
from lumi.llir.kernel import Kernel, Step, accesses, buffers, dims
from tests.backends.cpu.kernels import SCHEDULES, elementwise, matmul, read, reduction

SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g")

EXTENTS = {"m": dim.var("m"), "n": dim.var("n"), "k": dim.var("k")}
KERNELS: dict[str, Kernel] = {
    "mul": elementwise("mul", F32, F32, 2),
    "halves": elementwise("add", BF16, BF16, 2, 5),
    "bytes": elementwise("max", I8, I8, 2, 12),
    "rows": reduction("sum", F32, 12, "j"),
    "columns": reduction("max", F32, 12, "i"),
    "matmul": matmul(EXTENTS, "mk", "nk", {"m": 7, "n": 7, "k": 16}),
    "transposed": matmul(EXTENTS, "mk", "kn", {"m": 7, "n": 16, "k": 16}),
    "causal": read("causal"),
    "q4_0": read("q4_0"),
}
STEPS = [Step(kernel, schedule) for kernel in KERNELS.values() for schedule in SCHEDULES]
SIZES = (1, 3, 8, 13)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that runs every step on buffers of exactly the right size."""
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("this machine has no C compiler")
    folder = tmp_path_factory.mktemp("sanitizer")
    text, made = folder / "kernels.c", folder / "kernels"
    text.write_text(source([emit(s, f"k{n}") for n, s in enumerate(STEPS)]) + _main())
    flags = [f for f in FLAGS if f not in ("-shared", "-fPIC")]
    words = [*compiler.command, *flags, *SANITIZE, str(text), "-o", str(made), "-lm"]
    told = subprocess.run(words, capture_output=True, text=True)
    if told.returncode != 0 and "sanitize" in told.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert told.returncode == 0, told.stderr[:2000]
    return made


def _main() -> str:
    calls = [_call(n, step, size) for n, step in enumerate(STEPS) for size in SIZES]
    return "\nint main(void) {\n" + "\n".join(calls) + "\n  return 0;\n}\n"


def _call(number: int, step: Step, size: int) -> str:
    names = dims(step.kernel)
    values = {name: size + k for k, name in enumerate(names)}
    held = {a.buffer: a for a, _ in accesses(step.kernel)}
    blocks = ", ".join(f"calloc(1, {_bytes(held[b], values)})" for b in buffers(step.kernel))
    given = ", ".join(str(values[n]) for n in names) or "0"
    count = len(buffers(step.kernel))
    return (
        f"  {{ void *b[] = {{{blocks}}}; int64_t d[] = {{{given}}}; k{number}(b, d); "
        f"for (int n = 0; n < {count}; n++) free(b[n]); }}"
    )


def _bytes(access: Access, values: dict[str, int]) -> int:
    count = access.dtype.size
    for extent in access.shape:
        count *= dim.value(extent, values)
    return count


def test_no_kernel_leaves_its_buffers(program: Path) -> None:
    told = subprocess.run([program], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr[:3000]
