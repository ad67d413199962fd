"""Lines in registers run on the CPU: right, wherever elements lie, whenever copies come."""

from __future__ import annotations

import pytest

from lumi.backends.cpu import interpret
from lumi.dtype import F32
from lumi.llir.kernel import Kernel, Schedule, Step, written
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.kernels import read

pytestmark = pytest.mark.skipif(not is_possible(), reason="there is no g++")

TOLERANCE = 1e-5

ASIDE = Schedule("direct", (("aside", 4), ("users", 128)))
STAY = Schedule("direct", (("stay", 1), ("users", 256)))
ALONE = Schedule("direct", (("blocks", 1), ("users", 256)))

CASES: dict[str, tuple[Kernel, Schedule]] = {
    "softmax": (read("softmax", (1040, 8192)), ASIDE),
    "ragged": (read("softmax", (1040, 8200)), ASIDE),
    "two sums": (read("standardize", (1040, 6144)), ASIDE),
    "labels": (read("loss", (1040, 8000)), ASIDE),
    "stays": (read("softmax", (1040, 4096)), STAY),
    "weights": (read("rms_norm"), STAY),
    "one sum": (read("rms_norm"), ALONE),
}


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_lines_are_right(name: str, early: bool) -> None:
    kernel, schedule = CASES[name]
    arrays, values = random_buffers(kernel, {"n": 9}), {"n": 9}
    want, got = ({n: a.copy() for n, a in arrays.items()} for _ in range(2))
    interpret.run(kernel, want, values)
    Emulated(Step(kernel, schedule)).run(got, values, early=early, backwards=not early, more=(0,))
    for buffer in written(kernel):
        assert_close(got[buffer], want[buffer], F32, TOLERANCE, buffer)


def test_a_line_that_is_not_waited_for_is_wrong() -> None:
    kernel, schedule = CASES["softmax"]
    emulated = Emulated(Step(kernel, schedule), lambda text: text.replace("await_lots<0>", "await_lots<1>"))
    arrays, values = random_buffers(kernel, {"n": 9}), {"n": 9}
    want, got = ({n: a.copy() for n, a in arrays.items()} for _ in range(2))
    interpret.run(kernel, want, values)
    emulated.run(got, values, early=False, backwards=True, more=(0,))
    with pytest.raises(AssertionError):
        for buffer in written(kernel):
            assert_close(got[buffer], want[buffer], F32, TOLERANCE, buffer)
