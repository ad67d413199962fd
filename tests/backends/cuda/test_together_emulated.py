"""Kernels of one launch run on the CPU: right, whenever copies come and whatever thread runs first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.schedule import DEFAULT
from lumi.dtype import BF16, F16, F32
from lumi.llir.kernel import Kernel, Schedule, Step, accesses
from tests.backends.cpu.kernels import assert_close, elementwise, reduction
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.kernels import read
from tests.backends.cuda.test_together import RING, STREAM, Array, apart, arrays_of, product, step

pytestmark = pytest.mark.skipif(not is_possible(), reason="there is no g++")

VALUES = {"m": 7, "n": 100}

RINGS = {
    "rows that no piece holds evenly": [product(0, 30, 512), product(1, 11, 512), product(2, 5, 512)],
    "few rows": [product(0, 2, 1024), product(1, 3, 1024)],
    "rows of other lengths": [product(0, 9, 4096), product(1, 40, 520), product(2, 6, 2080)],
    "other types": [product(0, 13, 1024, BF16), product(1, 7, 1024, F32), product(2, 9, 512, F16)],
    "norm, gate and residual": [apart(read("gate_up"), 0), apart(read("attended"), 1)],
}

CELLS = {
    "elementwise": [apart(elementwise("add", F32, F32, 2), k) for k in range(3)],
    "reductions": [apart(reduction("sum", F32, 8), 0), apart(reduction("max", F32, 8), 1)],
    "products": [product(0, 7, 130, F32), product(1, 5, 130, F32), elementwise("mul", F32, F32, 2)],
}


def assert_right(kernels: Sequence[Kernel], schedule: Schedule, more: tuple[int, ...]) -> None:
    """One launch gives bit for bit what a launch for each kernel does, and that is what numpy computes."""
    given, one = arrays_of(kernels, VALUES), step(kernels, schedule)
    want, alone = (copied(given) for _ in range(2))
    for kernel in kernels:
        interpret.run(kernel, want, VALUES)
        single = Emulated(Step(kernel, schedule))
        single.run(alone, VALUES, early=True, backwards=False, more=more)
    types, emulated = {a.buffer: a.dtype for k in kernels for a, _ in accesses(k)}, Emulated(one)
    for early in (False, True):
        got = copied(given)
        emulated.run(got, VALUES, early=early, backwards=early, more=more)
        for name in one.written:
            np.testing.assert_array_equal(got[name], alone[name], err_msg=name)
            tolerance = {F16: 2.0**-9, BF16: 2.0**-6}.get(types[name], 3e-6)
            assert_close(got[name], want[name], types[name], tolerance, name)


def copied(arrays: dict[str, Array]) -> dict[str, Array]:
    return {n: a.copy() for n, a in arrays.items()}


@pytest.mark.parametrize("name", RINGS)
@pytest.mark.parametrize("constant", [0, (1 << 32) - 1])
def test_kernels_that_share_a_ring_are_right(name: str, constant: int) -> None:
    assert_right(RINGS[name], RING, (constant,))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("schedule", [DEFAULT, STREAM], ids=["simt", "stream"])
def test_kernels_whose_cells_are_dealt_out_in_turn_are_right(name: str, schedule: Schedule) -> None:
    assert_right(CELLS[name], schedule, ())


def test_a_ring_that_is_used_before_it_is_full_is_wrong() -> None:
    kernels = RINGS["rows that no piece holds evenly"]
    waits = "stage_await(full + turn.slot, turn.lap);"
    emulated = Emulated(step(kernels, RING), lambda text: text.replace(waits, ""))
    given = arrays_of(kernels, VALUES)
    want, got = copied(given), copied(given)
    for kernel in kernels:
        interpret.run(kernel, want, VALUES)
    emulated.run(got, VALUES, early=False, backwards=False, more=(0,))
    with pytest.raises(AssertionError):
        assert_close(got["O0"], want["O0"], BF16, 2.0**-6)
