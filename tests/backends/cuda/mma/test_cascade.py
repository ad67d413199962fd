"""Cascades on tensor cores: their code, that it compiles without spills, and that it is right."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.mma.known import look
from lumi.dtype import BF16
from lumi.llir.kernel import Kernel, Step, accesses, written
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.kernels import OnGpu
from tests.backends.cuda.mma.forms import SCORES, cascade
from tests.backends.cuda.mma.test_sums import TOLERANCE

KERNELS: dict[str, Kernel] = {
    **{score: cascade(score) for score in SCORES},
    "width 80": cascade("causal", 80),
    "width 96": cascade("window", 96),
    "width 128": cascade("causal", 128, heads=1),
    "width 192": cascade("causal", 192, 128, heads=1),
    "width 256": cascade("full", 256, heads=1, group=1),
    "odd widths": cascade("causal", 36, 50),
    "halves of other kind": cascade("causal", t="f16", out="f16"),
    "stored as f32": cascade("causal", out="f32"),
    "rounded": cascade("length", out="f32", rounded=True),
}

LEAN = (("held", 1), ("parts", 1))
"""Schedules with 16 rows a warp: those with 32 need every register that there is."""

SIZES = ((1, 1), (3, 70), (64, 64), (65, 200), (130, 129), (200, 40))
"""Rows and positions."""


def test_cascade_becomes_this(golden: Callable[..., None]) -> None:
    kernel = cascade("causal")
    golden(emit(Step(kernel, look(kernel).schedules[0]), "attend").text, ".cu", name="attend")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_cascades_compile_without_spills(arch: str) -> None:
    kernel = cascade("causal", 128)
    steps = [Step(kernel, s) for s in look(kernel).schedules if all(n in s.options for n in LEAN)]
    assert len(steps) == 2
    texts = [source([emit(s, "kernel").text]) for s in steps]
    for step, cubin in zip(steps, compile_cubins(texts, arch), strict=True):
        assert isinstance(cubin, Cubin), cubin
        assert cubin.spilled == 0, step.schedule


def test_every_kernel_has_schedules() -> None:
    for name, kernel in KERNELS.items():
        assert look(kernel).schedules, name


@pytest.mark.cuda
@pytest.mark.parametrize("name", KERNELS)
def test_cascades_equal_the_numpy_executor(name: str) -> None:
    kernel = KERNELS[name]
    every = look(kernel).schedules
    first = list(KERNELS).index(name)
    chosen = [every[(first + 4 * k) % len(every)] for k in range(min(3, len(every)))]
    check(kernel, [Step(kernel, s) for s in dict.fromkeys(chosen)])


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["causal", "bias"])
def test_all_schedules_are_right(name: str) -> None:
    kernel = KERNELS[name]
    check(kernel, [Step(kernel, s) for s in look(kernel).schedules])


def check(kernel: Kernel, steps: list[Step]) -> None:
    """Run steps on poisoned results, and compare with the numpy executor.

    Weights that a kernel rounds are rounded at other maxima here.
    """
    on_gpu, types = OnGpu(steps), {a.buffer: a.dtype for a, _ in accesses(kernel)}
    form = look(kernel).form
    assert form is not None
    is_rounded = any(c.exact for c in form.computed)
    for seq, keys in SIZES:
        values = {"seq": seq, "keys": keys, "length": keys * 2 // 3}
        want = random_buffers(kernel, values, 7)
        for buffer in written(kernel):
            want[buffer].view("u1")[...] = 0xFF
        given = {n: a.copy() for n, a in want.items()}
        interpret.run(kernel, want, values)
        for number, step in enumerate(steps):
            got = {n: a.copy() for n, a in given.items()}
            on_gpu.run(number, got, values)
            for buffer in written(kernel):
                what = f"{buffer} at {values} by {step.schedule}"
                limit = 2 * TOLERANCE[BF16 if is_rounded else types[buffer]]
                assert_close(got[buffer], want[buffer], types[buffer], limit, what)
