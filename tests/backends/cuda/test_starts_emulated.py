"""Stores whose place is looked up in an input, and stores round the end of a ring, under every schedule."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda import schedule
from lumi.backends.cuda.emit import emit
from lumi.dtype import BF16, from_memory
from lumi.errors import Source
from lumi.llir.kernel import Kernel, Schedule, Step
from lumi.llir.parse import parse
from tests.backends.cpu.kernels import random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible

VALUES = {"seq": 21, "past": 40}
ROOM = 48
PLACES = {
    "looked up": "(+ s (look AT [b] [2] (+ (* -1 seq) 49)))",
    "looked up, round a ring": f"(mod (+ s (look AT [b] [2] 1024)) {ROOM})",
    "round a ring": f"(mod (+ s (dim past)) {ROOM})",
}
STARTS = (np.array([5, 27], np.int32), np.array([-3, 2**31 - 1], np.int32))


def copied(place: str, t: str) -> Kernel:
    """R[b place n] = 2 · A[b s n]."""
    return parse(
        Source(
            "kernel.lumi",
            f"""
(kernel
  :buffers [(A [2 seq 64] {t}) (R [2 {ROOM} 64] {t}) (AT [2] i32)]
  :axes [(b 2) (s seq) (n 64)]
  :grid [(b 1) (s 8) (n 64)]
  (let [v1 (load (A [b s n]))
        v2 (mul v1 2.0)]
    (store (R [b {place} n]) v2)))
""",
        )
    )


def multiplied(place: str) -> Kernel:
    """R[b place n] = Σ A[b s k] · W[n k]."""
    return parse(
        Source(
            "kernel.lumi",
            f"""
(kernel
  :buffers [(A [2 seq 64] bf16) (W [64 64] bf16) (R [2 {ROOM} 64] bf16) (AT [2] i32)]
  :axes [(b 2) (s seq) (n 64) (k 64)]
  :grid [(b 1) (s 64) (n 64)]
  :tiles [(k 32)]
  (for [k] :carry [[v1 v7 sum f32 [b s n]]]
    (let [v2 (load (A [b s k]))
          v3 (cast.f32 v2)
          v4 (load (W [n k]))
          v5 (cast.f32 v4)
          v6 (dot [k] v3 v5)
          v8 (add v1 v6)]
      (next v8)))
  (store (R [b {place} n]) v7))
""",
        )
    )


def compare(kernel: Kernel, chosen: Schedule, starts: np.ndarray, tolerance: float) -> None:
    given = random_buffers(kernel, VALUES, 3)
    if "AT" in given:
        given["AT"][:] = starts
    want, got = ({n: a.copy() for n, a in given.items()} for _ in range(2))
    interpret.run(kernel, want, VALUES)
    Emulated(Step(kernel, chosen)).run(got, VALUES, early=False, backwards=False)
    halves = want["R"].dtype == BF16.storage
    found, expected = (from_memory(a["R"], BF16) if halves else a["R"] for a in (got, want))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert np.any(want["R"] != given["R"])


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
@pytest.mark.parametrize("starts", STARTS, ids=["inside", "outside"])
@pytest.mark.parametrize("t", ["f32", "bf16"])
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_rows_go_where_they_are_said_to(place: str, t: str, starts: np.ndarray) -> None:
    kernel = copied(place, t)
    for chosen in schedule.schedules(kernel)[:2]:
        compare(kernel, chosen, starts, 0)


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_products_go_where_they_are_said_to(place: str) -> None:
    kernel = multiplied(place)
    first = {s.template: s for s in reversed(schedule.schedules(kernel))}
    assert "mma" in first
    for chosen in first.values():
        compare(kernel, chosen, STARTS[0], 2e-2)


def test_neighbours_are_still_stored_at_once() -> None:
    for place in PLACES.values():
        kernel = copied(place, "f32")
        every = [emit(Step(kernel, s), "kernel").text for s in schedule.schedules(kernel)]
        assert any("wide_store(" in text for text in every)
