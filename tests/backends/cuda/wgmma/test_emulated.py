"""Sums of products by groups of warps run on the CPU: right, whenever copies come and whatever runs first."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.emit import emit
from lumi.backends.cuda.launch import fitting
from lumi.backends.cuda.schedule import together
from lumi.backends.cuda.wgmma.plan import TEMPLATE
from lumi.dtype import BF16
from lumi.llir.arithmetic import from_memory
from lumi.llir.kernel import Kernel, Schedule, Step, accesses, written
from lumi.llir.rename import rename
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.kernels import OnGpu
from tests.backends.cuda.mma.forms import batched, cached, cascade, gated_pair, product

if TYPE_CHECKING:
    from lumi.backends.cuda.gpu import Gpu

on_cpu = pytest.mark.skipif(not is_possible(), reason="there is no g++")

VALUES = {"seq": 37, "keys": 90}

MMA = Schedule("mma", (("columns", 64), ("depth", 64), ("high", 2), ("rows", 64), ("stages", 4), ("wide", 2)))
"""Tiles of warps alone, of which a launch can have those of several kernels too."""


def schedule(groups: int, columns: int, depth: int, stages: int, **more: int) -> Schedule:
    """Tiles that threads copy, or the copy engine with `bulk`, which takes results too with `sends`."""
    options = {"bulk": 0, "columns": columns, "depth": depth, "groups": groups, "stages": stages} | more
    return Schedule(TEMPLATE, tuple(sorted(options.items())))


SUMS: dict[str, tuple[Kernel, Schedule]] = {
    "rows at run time": (product("seq", 136, 200), schedule(1, 64, 64, 3)),
    "two groups": (product(150, 128, 264, "m k", "k n"), schedule(2, 64, 128, 3)),
    "across": (product(72, 80, 104, "k m", "k n", t="f16", out="f16"), schedule(1, 128, 64, 4)),
    "pair": (gated_pair(40, 72, 96), schedule(1, 64, 64, 3)),
    "batched": (batched(2, 2, "seq", 40, 64), schedule(1, 64, 64, 4)),
    "boxes of rows at run time": (product("seq", 136, 200), schedule(1, 64, 64, 3, bulk=1)),
    "sent": (product(150, 264, 200), schedule(2, 128, 64, 4, bulk=1, sends=1)),
    "boxes of few rows": (product(16, 40, 200), schedule(1, 64, 64, 3, bulk=1)),
    "boxes of few across": (product(40, 72, 104, "k m", "k n"), schedule(1, 128, 64, 3, bulk=1)),
    "sent of few rows": (gated_pair(40, 72, 96), schedule(1, 128, 64, 3, bulk=1, sends=1)),
    "sent of rows at run time": (
        product("seq", 136, 200, epilogue="gated", out="f32"),
        schedule(1, 64, 64, 3, bulk=1, sends=1),
    ),
    "sent gated": (product(150, 136, 200, epilogue="gated"), schedule(2, 64, 64, 2, bulk=1, sends=1)),
    "sent rows": (product(72, 128, 64, epilogue="rows", t="f16"), schedule(1, 128, 64, 4, bulk=1, sends=1)),
    "sent pair": (gated_pair(200, 200, 96), schedule(2, 128, 64, 4, bulk=1, sends=1)),
}


def turns(groups: int, columns: int, stages: int, ordered: int, **more: int) -> Schedule:
    """Tiles of a cascade, brought by the copy engine with `bulk`."""
    options = {"groups": groups, "columns": columns, "stages": stages, "ordered": ordered, "parts": 1}
    return Schedule(TEMPLATE, tuple(sorted((options | {"bulk": 0} | more).items())))


CASCADES: dict[str, tuple[Kernel, Schedule]] = {
    "rows at run time": (cascade("causal", 40), turns(1, 64, 2, 0)),
    "in order": (cascade("bias", 64, sizes=(150, 136)), turns(2, 64, 2, 1, bulk=1)),
    "ahead": (cascade("causal", 64, heads=2, group=4, sizes=(150, 150)), turns(2, 64, 2, 1, bulk=1, ahead=1)),
    "cache": (cached(120), turns(2, 64, 2, 1, bulk=1)),
    "full cache": (cached(90), turns(1, 112, 2, 0, bulk=1)),
    "whole tiles": (cascade("full", 32, heads=8, sizes=(64, 128)), turns(1, 64, 3, 0, bulk=1, ahead=1)),
}


@on_cpu
@pytest.mark.parametrize("name", [*SUMS, *(f"{name}, summed up" for name in CASCADES)])
@pytest.mark.parametrize("early", [True, False])
def test_products_are_right(name: str, early: bool) -> None:
    kernel, chosen = SUMS[name] if name in SUMS else CASCADES[name.removesuffix(", summed up")]
    want = random_buffers(kernel, VALUES, 3)
    for buffer in written(kernel):
        want[buffer].view("u1")[...] = 0xFF
    for buffer in ("K", "V") if "cache" in name else ():
        want[buffer][:, VALUES["keys"] :].view("u1")[...] = 0xFF
    got = {n: a.copy() for n, a in want.items()}
    interpret.run(kernel, want, VALUES)
    Emulated(Step(kernel, chosen)).run(got, VALUES, early=early, backwards=early)
    types = {a.buffer: a.dtype for a, _ in accesses(kernel)}
    for buffer in written(kernel):
        assert_close(got[buffer], want[buffer], types[buffer], 2.0**-7, buffer)


@on_cpu
@pytest.mark.parametrize("call", ["rows.await();", "early.await();", "late.await();"])
def test_a_cascade_that_does_not_wait_is_wrong(call: str) -> None:
    kernel, chosen = CASCADES["ahead"]
    want = random_buffers(kernel, VALUES, 3)
    got = {n: a.copy() for n, a in want.items()}
    interpret.run(kernel, want, VALUES)
    hasty = Emulated(Step(kernel, chosen), lambda text: text.replace(call, ""))
    hasty.run(got, VALUES, early=False, backwards=True)
    (result,) = written(kernel)
    with pytest.raises(AssertionError):
        assert_close(got[result], want[result], BF16, 2.0**-7, result)


@on_cpu
def test_what_lies_behind_the_end_is_taken_by_nothing_but_zero() -> None:
    kernel, chosen = CASCADES["cache"]
    arrays = random_buffers(kernel, VALUES, 3)
    for buffer in ("K", "V"):
        arrays[buffer][:, VALUES["keys"] :].view("u1")[...] = 0xFF
    careless = Emulated(Step(kernel, chosen), lambda text: re.sub(r"clear_lines<\d+, \d+>\([^;]*;", "", text))
    careless.run(arrays, VALUES, early=True, backwards=False)
    (result,) = written(kernel)
    assert np.isnan(from_memory(arrays[result], BF16)).any()


def siblings(out: str = "bf16") -> tuple[Kernel, ...]:
    """Products of the same rows: of one tile of columns, of several, and of part of one."""
    found = [product("seq", n, 200, out=out) for n in (64, 200, 40)]
    return tuple(rename(k, {"B": f"B{n}", "R": f"R{n}"}) for n, k in enumerate(found))


@cache
def emulated(chosen: Schedule) -> tuple[Emulated, ...]:
    """The siblings in one launch, then each alone."""
    first, *others = kernels = siblings()
    return tuple(map(Emulated, (Step(first, chosen, tuple(others)), *(Step(k, chosen) for k in kernels))))


@on_cpu
@pytest.mark.parametrize(
    "chosen",
    [schedule(1, 64, 64, 3), schedule(2, 128, 64, 4), schedule(2, 64, 64, 4, bulk=1, sends=1), MMA],
    ids=str,
)
@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("seq", [1, 70, 300])
def test_products_share_a_launch(chosen: Schedule, early: bool, seq: int) -> None:
    """Blocks go on from one kernel to the next: each result is, bit for bit, that of a launch of its own."""
    whole, *single = emulated(chosen)
    values = {"seq": seq}
    given = {n: a for s in single for n, a in random_buffers(s.step.kernel, values, 3).items()}
    got, alone = ({n: a.copy() for n, a in given.items()} for _ in range(2))
    whole.run(got, values, early=early, backwards=early)
    for one in single:
        one.run(alone, values, early=True, backwards=False)
        for buffer in one.step.written:
            np.testing.assert_array_equal(got[buffer], alone[buffer], err_msg=buffer)


class Older:
    """A GPU that has no groups of warps, and less shared memory."""

    starts_early, room, arch = False, 96 << 10, "sm_86"


def test_siblings_stay_together_on_older_gpus() -> None:
    first, *others = siblings()
    found = fitting(Step(first, schedule(1, 128, 64, 6), tuple(others)), cast("Gpu", Older()))
    assert found.schedule.template == "mma" and found.beside == tuple(others)
    assert emit(found, "kernel").shared <= Older.room


@pytest.mark.cuda
@pytest.mark.parametrize("seq", [1, 70, 300])
def test_products_share_a_launch_on_the_gpu(seq: int) -> None:
    """Each result is, bit for bit, that of a launch of its own."""
    kernels = tuple(
        rename(product("seq", n, 4096), {"B": f"B{k}", "R": f"R{k}"})
        for k, n in enumerate((4096, 1024, 1024))
    )
    given = {n: a for k in kernels for n, a in random_buffers(k, {"seq": seq}, 3).items()}
    for chosen in [s for s in together(kernels) if s.template in ("mma", TEMPLATE)]:
        first, *others = kernels
        steps = [Step(first, chosen, tuple(others)), *(Step(k, chosen) for k in kernels)]
        got, alone = ({n: a.copy() for n, a in given.items()} for _ in range(2))
        on_gpu = OnGpu(steps)
        on_gpu.run(0, got, {"seq": seq})
        for number, kernel in enumerate(kernels):
            on_gpu.run(number + 1, alone, {"seq": seq})
            for buffer in written(kernel):
                np.testing.assert_array_equal(got[buffer], alone[buffer], err_msg=f"{chosen} {buffer}")
