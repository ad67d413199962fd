"""Elements whose index is clamped, read several at once: beside a row lies its first or last element."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.emit import emit
from lumi.errors import Source
from lumi.llir.kernel import Kernel, Schedule, Step
from lumi.llir.parse import parse
from tests.backends.cpu.kernels import random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible

VALUES = {"seq": 5}

SCHEDULES = (Schedule("simt"), Schedule("stream", (("unroll", 4),)))


def shifted(by: int, t: str = "f32", width: int = 64) -> Kernel:
    """R[i h j] = A[i 0 (width h + j + by)], a row being two times `width` long."""
    return parse(
        Source(
            "kernel.lumi",
            f"""
(kernel
  :buffers [(A [seq 1 {2 * width}] {t}) (R [seq 2 {width}] f32)]
  :axes [(i seq) (h 2) (j {width})]
  :grid [(i 4) (h 1) (j {width})]
  (let [v1 (load (A [i 0 (+ (* {width} h) j {by})] [seq 1 {2 * width}] {t} :clamp))
        v2 (cast.f32 v1) v3 (mul v2 2.0)]
    (store (R [i h j]) v3)))
""",
        )
    )


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
@pytest.mark.parametrize(
    ("by", "t", "width"), [(32, "f32", 64), (-32, "bf16", 64), (-3, "f32", 64), (8, "f16", 36)]
)
def test_rows_end_with_their_last_elements(schedule: Schedule, by: int, t: str, width: int) -> None:
    kernel = shifted(by, t, width)
    want = random_buffers(kernel, VALUES, 3)
    got = {n: a.copy() for n, a in want.items()}
    interpret.run(kernel, want, VALUES)
    Emulated(Step(kernel, schedule)).run(got, VALUES, early=False, backwards=False)
    np.testing.assert_array_equal(got["R"], want["R"])


@pytest.mark.parametrize(("by", "wide"), [(32, True), (-32, True), (-3, False)])
def test_what_leaves_a_row_together_is_read_at_once(by: int, wide: bool) -> None:
    assert ("wide_load(" in emit(Step(shifted(by), SCHEDULES[0]), "kernel").text) == wide
