"""Kernels that take turns in one launch, run on the CPU by blocks that wait for each other."""

from __future__ import annotations

import pytest

from lumi.backends.cpu import interpret
from lumi.dtype import BF16
from lumi.llir.kernel import Step
from tests.backends.cpu.kernels import Array, assert_close
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.turns import CHAINS, arrays_of

pytestmark = pytest.mark.skipif(not is_possible(), reason="there is no g++")


def wanted(step: Step) -> dict[str, Array]:
    found = arrays_of(step)
    for kernel in step.kernels:
        interpret.run(kernel, found, {})
    return found


def constants(step: Step) -> int:
    """What no kernel of a step writes, as bits."""
    return sum(1 << k for k, b in enumerate(step.buffers) if b not in step.written)


@pytest.mark.parametrize("name", CHAINS)
def test_each_turn_sees_what_those_before_have_written(name: str) -> None:
    step = CHAINS[name]
    want, emulated = wanted(step), Emulated(step)
    for early, constant in ((False, constants(step)), (True, 0)):
        got = arrays_of(step)
        more = (constant,) if emulated.code.streams else ()
        emulated.run(got, {}, early=early, backwards=early, more=more)
        for buffer in step.written:
            assert_close(got[buffer], want[buffer], BF16, 2.0**-5, buffer)
    assert emulated.met[0] << 1 == 0, "the word at which blocks meet is not as it was"


def test_blocks_that_do_not_wait_are_wrong() -> None:
    step = CHAINS["rings"]
    waits, never = "while (!((load_acquire(met) ^ before) >> 31))", "while (false)"
    emulated, got = Emulated(step, helpers=lambda text: text.replace(waits, never)), arrays_of(step)
    emulated.run(got, {}, early=False, backwards=False, more=(constants(step),))
    with pytest.raises(AssertionError):
        assert_close(got["o"], wanted(step)["o"], BF16, 2.0**-5)


def test_stages_that_are_filled_before_their_turn_are_wrong() -> None:
    """The second turn multiplies by a matrix that the first one writes."""
    step = CHAINS["a matrix that is made"]
    emulated, got = Emulated(step), arrays_of(step)
    emulated.run(got, {}, early=True, backwards=False, more=(constants(step),))
    assert_close(got["o"], wanted(step)["o"], BF16, 2.0**-5)
    emulated.run(got := arrays_of(step), {}, early=True, backwards=False, more=((1 << 32) - 1,))
    with pytest.raises(AssertionError):
        assert_close(got["o"], wanted(step)["o"], BF16, 2.0**-5)
