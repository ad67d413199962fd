"""Products by groups of warps: their code, that it compiles, what is refused, and that it is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.gpu import Gpu
from lumi.backends.cuda.launch import fitting
from lumi.backends.cuda.mma.form import Form, RefusalError
from lumi.backends.cuda.mma.known import look
from lumi.backends.cuda.mma.plan import ROUNDING
from lumi.backends.cuda.wgmma.plan import ARCH, TEMPLATE, plan
from lumi.dtype import BF16
from lumi.llir.kernel import Kernel, Schedule, Step
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.kernels import OnGpu
from tests.backends.cuda.mma import test_cascade, test_sums
from tests.backends.cuda.mma.forms import cached, cascade, gated_pair, product, two_summed

FEW = 48
"""Bytes that a thread may spill, where tiles are masked."""

SUMS: dict[str, Kernel] = {
    name: kernel for name, kernel in test_sums.KERNELS.items() if look(kernel).groups
} | {
    "several cells": product(700, 520, 192),
    "several cells of weights along columns": product(512, 640, 320, "m k", "k n", epilogue="gated"),
    "both across": product(264, 264, 104, "k m", "k n"),
}
CASCADES: dict[str, Kernel] = {
    name: kernel for name, kernel in test_cascade.KERNELS.items() if look(kernel).groups
} | {
    "several cells": cascade("causal", heads=8, group=4, sizes=(700, 700)),
    "several cells of whole tiles": cascade("causal", heads=8, group=4, sizes=(768, 768)),
    "several cells of few positions": cascade("full", 128, heads=8, group=4, sizes=(700, 72)),
    "several cells of bias": cascade("bias", 80, heads=8, group=4, sizes=(680, 136)),
}


def schedules(kernel: Kernel) -> list[Schedule]:
    """The schedules of a kernel, those where the copy engine copies also with threads, if they can."""
    found, form = look(kernel).groups, look(kernel).form
    assert form is not None
    within = [dict(s.options) | {"bulk": 0} for s in found if "ahead" not in dict(s.options)]
    copied = [Schedule(TEMPLATE, tuple(sorted(o.items()))) for o in within if fits(form, o)]
    return list(dict.fromkeys((*found, *copied)))


def fits(form: Form, options: dict[str, int]) -> bool:
    try:
        plan(form, options)
    except RefusalError:
        return False
    return True


def test_cascade_becomes_this(golden: Callable[..., None]) -> None:
    kernel = cascade("causal", 128)
    golden(emit(Step(kernel, look(kernel).groups[0]), "attend").text, ".cu", name="attend")


def test_cascade_ahead_becomes_this(golden: Callable[..., None]) -> None:
    kernel = cascade("causal", sizes=(512, 512))
    schedule = next(s for s in look(kernel).groups if "ahead" in dict(s.options))
    golden(emit(Step(kernel, schedule), "attend").text, ".cu", name="ahead")


def test_product_becomes_this(golden: Callable[..., None]) -> None:
    kernel = product(512, 640, 320, epilogue="bias")
    golden(emit(Step(kernel, look(kernel).groups[0]), "product").text, ".cu", name="product")


def test_kernels_compile_with_few_spills() -> None:
    kernels = (
        *(product(4096, 4096, 4096), product("seq", 4096, 4096, "m k", "k n", epilogue="gated")),
        *(gated_pair(512, 512, 512), cascade("causal", 64), cascade("full", 128), cascade("window", 128)),
        *(cascade("causal", 128, sizes=(512, 512)), cascade("full", 64, sizes=(512, 512))),
    )
    steps = [Step(k, s) for k in kernels for s in schedules(k)[:3]]
    for step, cubin in zip(
        steps, compile_cubins([source([emit(s, "kernel").text]) for s in steps], ARCH), strict=True
    ):
        assert isinstance(cubin, Cubin), cubin
        assert cubin.spilled <= FEW, step.schedule


@pytest.mark.parametrize(
    ("kernel", "options", "reason"),
    [
        (product(64, 64, 36), {}, "not copied 16 bytes at once"),
        (product("seq", 64, 64, "k m"), {"bulk": 1}, "not copied 16 bytes at once"),
        (two_summed(64, 64, "seq", 64), {"bulk": 1}, "the copy engine cannot bring its factors"),
        (product(64, 64, "seq", "k m", "k n"), {"bulk": 1}, "what lies behind the end"),
        (product(64, 64, 64), {"columns": 256, "stages": 9}, "bytes of shared memory"),
        (gated_pair(64, 64, 64), {"columns": 256}, "registers"),
        (cascade("causal", t="f16", out="f32"), {}, "would be rounded to f16"),
        (cascade("causal"), {"columns": 72}, "no instruction has its tile"),
        (cascade("causal"), {"ahead": 1}, "nothing to begin with"),
        (cascade("window", sizes=(64, 64)), {"ahead": 1, "bulk": 1}, "nothing to begin with"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_does_not_fit_is_refused(kernel: Kernel, options: dict[str, int], reason: str) -> None:
    form = look(kernel).form
    assert form is not None
    with pytest.raises(RefusalError, match=reason):
        plan(form, options)


@dataclass(frozen=True)
class Older:
    """What is asked of a GPU without the instruction."""

    arch: str = "sm_80"
    room: int = 163 << 10
    starts_early: bool = False


@pytest.mark.parametrize("rounded", [False, True])
def test_single_warps_multiply_where_groups_cannot(rounded: bool) -> None:
    kernel = cascade("length", out="f32", rounded=True) if not rounded else cascade("causal")
    found = fitting(Step(kernel, look(kernel).groups[0]), cast("Gpu", Older()))
    assert found.schedule.template == "mma"
    assert (ROUNDING in found.schedule.options) == rounded


@pytest.mark.cuda
@pytest.mark.parametrize("name", SUMS)
def test_products_equal_the_numpy_executor(name: str) -> None:
    every = schedules(SUMS[name])
    first = list(SUMS).index(name)
    chosen = [every[(first + 3 * k) % len(every)] for k in range(min(3, len(every)))]
    test_sums.check(SUMS[name], [Step(SUMS[name], s) for s in dict.fromkeys(chosen)])


@pytest.mark.cuda
@pytest.mark.parametrize("name", CASCADES)
def test_cascades_equal_the_numpy_executor(name: str) -> None:
    every = schedules(CASCADES[name])
    first = list(CASCADES).index(name)
    chosen = [every[(first + 4 * k) % len(every)] for k in range(min(3, len(every)))]
    test_cascade.check(CASCADES[name], [Step(CASCADES[name], s) for s in dict.fromkeys(chosen)])


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["causal", "width 128", "several cells"])
def test_all_schedules_are_right(name: str) -> None:
    kernel = CASCADES[name]
    test_cascade.check(kernel, [Step(kernel, s) for s in schedules(kernel)])


@pytest.mark.cuda
@pytest.mark.parametrize("keys", [1, 64, 90, 200])
def test_a_cache_may_hold_anything_behind_its_end(keys: int) -> None:
    kernel, values = cached(200), {"seq": 37, "keys": keys}
    steps = [Step(kernel, s) for s in schedules(kernel)]
    assert any(("bulk", 1) in s.schedule.options for s in steps)
    want = random_buffers(kernel, values, 3)
    for buffer in ("K", "V"):
        want[buffer][:, keys:].view("u1")[...] = 0xFF
    given = {n: a.copy() for n, a in want.items()}
    interpret.run(kernel, want, values)
    on_gpu = OnGpu(steps)
    for number, step in enumerate(steps):
        got = {n: a.copy() for n, a in given.items()}
        on_gpu.run(number, got, values)
        assert_close(got["R"], want["R"], BF16, 2.0**-6, str(step.schedule))


@pytest.mark.cuda
@pytest.mark.parametrize(("seq", "largest"), [(1, 300), (37, 300), (300, 300)])
def test_rows_that_there_is_room_for_are_brought_and_not_used(seq: int, largest: int) -> None:
    """The maps of a launch know of as many rows as there may be."""
    kernel = product("seq", 264, 200, epilogue="gated")
    steps = [Step(kernel, s) for s in schedules(kernel)]
    whole = random_buffers(kernel, {"seq": largest}, 3)
    want = {n: a[:seq].copy() if n in ("A", "E1", "R") else a for n, a in whole.items()}
    interpret.run(kernel, want, {"seq": seq})
    on_gpu = OnGpu(steps)
    for number, step in enumerate(steps):
        got = {n: a.copy() for n, a in whole.items()}
        on_gpu.run(number, got, {"seq": seq}, largest={"seq": largest})
        assert_close(got["R"][:seq], want["R"], BF16, 2.0**-6, str(step.schedule))
