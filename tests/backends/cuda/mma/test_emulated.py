"""Kernels for tensor cores run on the CPU: right, whenever copies come and whatever thread runs first."""

from __future__ import annotations

import re

import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.mma.known import look
from lumi.dtype import BF16, F32
from lumi.llir.kernel import Kernel, Step, accesses, written
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.mma.forms import batched, cascade, chunked, gated_pair, product, two_summed

pytestmark = pytest.mark.skipif(not is_possible(), reason="there is no g++")

SUMS: dict[str, tuple[Kernel, int]] = {
    "wide tile": (product(70, 72, 200), 0),
    "tall tile": (product(70, 140, 136, "m k", "k n"), 1),
    "odd": (product(65, 131, 77, epilogue="gated"), 2),
    "both across": (product(40, 72, 100, "k m", "k n", t="f16", out="f16"), 3),
    "narrow": (product("seq", 99, 64, epilogue="rows"), -1),
    "pair": (gated_pair(40, 72, 96), -3),
    "batched": (batched(2, 2, "seq", 40, 64), -4),
    "two sums": (two_summed(30, 40, 3, 40), -2),
    "uneven chunks": (chunked(30, 61, 1001, 7), -3),
}
"""Kernels, and which of their schedules."""

CASCADES: dict[str, tuple[Kernel, int]] = {
    "one stage": (cascade("causal", 40), 0),
    "two stages": (cascade("window", 64, 48), 2),
    "three parts": (cascade("bias", out="f32"), 3),
    "held rows": (cascade("length"), 6),
    "small": (cascade("mask", 32, group=1), -2),
    "rounded": (cascade("full", t="f16", out="f16"), -1),
    "whole tiles": (cascade("causal", 32, heads=1, sizes=(128, 128)), 0),
}


@pytest.mark.parametrize("name", SUMS)
def test_products_are_right(name: str) -> None:
    kernel, schedule = SUMS[name]
    check(kernel, schedule, {"seq": 37}, 2.0**-7)


@pytest.mark.parametrize("name", CASCADES)
@pytest.mark.parametrize("keys", [1, 150])
def test_cascades_are_right(name: str, keys: int) -> None:
    kernel, schedule = CASCADES[name]
    check(kernel, schedule, {"seq": 70, "keys": keys, "length": keys * 2 // 3}, 2.0**-6)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (cascade("causal"), {"seq": 5, "keys": 0}),
        (product("seq", 64, "k", out="f32"), {"seq": 3, "k": 0}),
        (product("seq", 99, 64, epilogue="rows"), {"seq": 0}),
    ],
    ids=["no positions", "no terms", "no rows"],
)
def test_sums_of_nothing_are_right(kernel: Kernel, values: dict[str, int]) -> None:
    check(kernel, 0, values, 0.0)


@pytest.mark.parametrize(("call", "early"), [("async_wait", False), ("__syncthreads", True)])
def test_what_does_not_wait_is_wrong(call: str, early: bool) -> None:
    kernel = product(70, 72, 300)
    arrays = random_buffers(kernel, {}, 3)
    want, got = ({n: a.copy() for n, a in arrays.items()} for _ in range(2))
    interpret.run(kernel, want, {})
    step = Step(kernel, look(kernel).schedules[3])
    Emulated(step, lambda text: re.sub(rf"{call}(<\d>)?\(\);", "", text)).run(
        got, {}, early=early, backwards=False
    )
    with pytest.raises(AssertionError):
        assert_close(got["R"], want["R"], BF16, 2.0**-7)


def check(kernel: Kernel, schedule: int, values: dict[str, int], tolerance: float) -> None:
    """Run a kernel with early and with late copies, and compare with the numpy executor."""
    types = {a.buffer: a.dtype for a, _ in accesses(kernel)}
    want = random_buffers(kernel, values, 3)
    for buffer in written(kernel):
        want[buffer].view("u1")[...] = 0xFF
    given = {n: a.copy() for n, a in want.items()}
    interpret.run(kernel, want, values)
    emulated = Emulated(Step(kernel, look(kernel).schedules[schedule]))
    for early in (True, False):
        got = {n: a.copy() for n, a in given.items()}
        emulated.run(got, values, early=early, backwards=early)
        for buffer in written(kernel):
            limit = 1e-4 if types[buffer] == F32 else tolerance
            assert_close(got[buffer], want[buffer], types[buffer], limit, f"{buffer}, copies early: {early}")
