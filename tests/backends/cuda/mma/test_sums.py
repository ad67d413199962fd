"""Matrix products on tensor cores: their code, that it compiles without spills, and that it is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.mma.known import look
from lumi.dtype import BF16, F16, F32
from lumi.llir.kernel import Kernel, Step, accesses, written
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.kernels import OnGpu
from tests.backends.cuda.mma.forms import batched, chunked, gated_pair, product, two_summed

KERNELS: dict[str, Kernel] = {
    "aligned": product(256, 256, 128),
    "ragged": product(129, 72, 200),
    "small": product(3, 17, 5, out="f32"),
    "odd": product(65, 131, 77),
    "odd columns": product(130, 75, 64, epilogue="gated"),
    "weights along columns": product(100, 304, 80, "m k", "k n"),
    "odd along columns": product(100, 301, 50, "m k", "k n", epilogue="bias"),
    "rows inside": product(72, 64, 72, "k m", "n k"),
    "both across": product(136, 264, 100, "k m", "k n", t="f16", out="f16"),
    "halves of other kind": product(150, 96, 512, t="f16", out="f16", epilogue="bias"),
    "stored as f32": product(77, 130, 300, out="f32", epilogue="bias"),
    "symbolic": product("seq", 96, 160, epilogue="gated"),
    "all symbolic": product("seq", "n", "k", out="f32"),
    "values of rows": product("seq", 99, 64, epilogue="rows"),
    "pair": gated_pair(100, 200, 96),
    "batched": batched(3, 2, "seq", 72, 64),
    "batched halves": batched(2, 3, 40, 50, 24, "f16"),
    "two sums": two_summed(70, 80, 3, 40),
    "chunks": chunked(64, 128, 1024, 8),
    "uneven chunks": chunked(70, 61, 1001, 7),
}

TOLERANCE = {BF16: 2.0**-7, F16: 2.0**-9, F32: 1e-5}
"""Of results stored in these types: they are rounded once, on either side of a sum in another order."""

LENGTHS = (1, 15, 64, 130)


def dims_of(kernel: Kernel) -> list[dict[str, int]]:
    names = {n for e in kernel.axes.values() if not isinstance(e, int) for n in e.names()}
    return [
        {n: length + 2 * k for k, n in enumerate(sorted(names))} for length in (LENGTHS if names else (0,))
    ]


def test_product_becomes_this(golden: Callable[..., None]) -> None:
    kernel = product(100, 72, 512, epilogue="gated")
    golden(emit(Step(kernel, look(kernel).schedules[-1]), "product").text, ".cu", name="product")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_products_compile_without_spills(arch: str) -> None:
    kernels = (
        product(4096, 4096, 4096),
        product("seq", 4096, 4096, epilogue="gated"),
        gated_pair(512, 512, 512),
    )
    steps = [Step(k, s) for k in kernels for s in look(k).schedules[:5]]
    for step, cubin in zip(
        steps, compile_cubins([source([emit(s, "kernel").text]) for s in steps], arch), strict=True
    ):
        assert isinstance(cubin, Cubin), cubin
        assert cubin.spilled == 0, step.schedule


def test_every_kernel_has_schedules() -> None:
    for name, kernel in KERNELS.items():
        assert look(kernel).schedules, name


@pytest.mark.cuda
@pytest.mark.parametrize("name", KERNELS)
def test_products_equal_the_numpy_executor(name: str) -> None:
    kernel = KERNELS[name]
    every = look(kernel).schedules
    first = list(KERNELS).index(name)
    chosen = [every[(first + 3 * k) % len(every)] for k in range(min(3, len(every)))]
    check(kernel, [Step(kernel, s) for s in dict.fromkeys(chosen)])


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["aligned", "odd columns", "pair"])
def test_all_schedules_are_right(name: str) -> None:
    kernel = KERNELS[name]
    check(kernel, [Step(kernel, s) for s in look(kernel).schedules])


def check(kernel: Kernel, steps: list[Step], tolerance: float = 0.0) -> None:
    """Run steps on poisoned results, and compare with the numpy executor."""
    on_gpu, types = OnGpu(steps), {a.buffer: a.dtype for a, _ in accesses(kernel)}
    for values in dims_of(kernel):
        want = random_buffers(kernel, values, 7)
        for buffer in written(kernel):
            want[buffer].view("u1")[...] = 0xFF
        given = {n: a.copy() for n, a in want.items()}
        interpret.run(kernel, want, values)
        for number, step in enumerate(steps):
            got = {n: a.copy() for n, a in given.items()}
            on_gpu.run(number, got, values)
            for buffer in written(kernel):
                limit = tolerance or TOLERANCE[types[buffer]]
                what = f"{buffer} at {values} by {step.schedule}"
                assert_close(got[buffer], want[buffer], types[buffer], limit, what)
