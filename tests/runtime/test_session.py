"""Sessions: inputs in, copies out, states kept, faults named."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lumi.dim import DimRange
from lumi.dtype import BF16, F32, I32, U8
from lumi.errors import LumiError
from lumi.plan.plan import Plan, Signature
from lumi.runtime.array import accept
from lumi.runtime.device import room_for
from lumi.runtime.session import Session
from tests.plan.samples import Array, add_plan, counter_plan
from tests.runtime.numpy_device import NumpyDevice, NumpyMemory

W = {"w": np.array([10], np.float32)}


def ramp(count: int, start: float = 0) -> Array:
    return np.arange(start, start + count, dtype=np.float32)


@pytest.fixture
def adder() -> Session:
    return Session(add_plan(), W, NumpyDevice())


@pytest.fixture
def counter() -> Session:
    return Session(counter_plan(), None, NumpyDevice())


@pytest.mark.parametrize("length", [1, 7, 100])
def test_a_call_returns_outputs_by_name(adder: Session, length: int) -> None:
    (name, y), *rest = adder(x=ramp(length)).items()
    assert (name, rest) == ("y", [])
    np.testing.assert_array_equal(y, 2 * ramp(length) + 10)


def test_three_runs_then_new_input_stay_right(adder: Session) -> None:
    for _ in range(3):
        np.testing.assert_array_equal(adder(x=ramp(5))["y"], 2 * ramp(5) + 10)
    np.testing.assert_array_equal(adder(x=ramp(9, 3))["y"], 2 * ramp(9, 3) + 10)


def test_an_output_kept_is_not_changed_by_later_calls(adder: Session) -> None:
    first = adder(x=ramp(5))["y"]
    kept = first.copy()
    adder(x=-ramp(5))
    np.testing.assert_array_equal(first, kept)


def test_the_callers_input_is_never_written(adder: Session) -> None:
    x = ramp(5)
    x.flags.writeable = False
    adder(x=x)
    np.testing.assert_array_equal(x, ramp(5))


def test_later_calls_allocate_and_prepare_nothing() -> None:
    device = NumpyDevice()
    session = Session(counter_plan(), None, device)
    session(x=ramp(2), past=0)
    before = list(device.allocated)
    for past in range(2, 8):
        session(x=ramp(1), past=past)
    assert (device.allocated, device.prepared) == (before, [0])


def test_a_variant_is_chosen_by_the_dims() -> None:
    plan = add_plan()
    one = replace(plan.variants[0], dims={"seq": DimRange("seq", 1, 4, (1,))})
    many = replace(plan.variants[0], dims={"seq": DimRange("seq", 6, 100, (8,))})
    device = NumpyDevice()
    session = Session(replace(plan, variants=(one, many)), W, device)
    for length in (50, 4, 1, 6):
        session(x=ramp(length))
    assert device.prepared == [1, 0]
    with pytest.raises(LumiError, match="no variant of add is made for seq=5"):
        session(x=ramp(5))


def test_variants_share_one_arena_of_the_largest() -> None:
    """What two variants need together is what one of them needs at most, not the sum."""
    plan = add_plan()
    few = replace(plan.variants[0], dims={"seq": DimRange("seq", 1, 4, (1,))}, arena=1792)
    device = NumpyDevice()
    session = Session(replace(plan, variants=(few, plan.variants[0])), W, device)
    for length in (2, 50, 3, 100):
        np.testing.assert_array_equal(session(x=ramp(length))["y"], 2 * ramp(length) + 10)
    assert device.prepared == [0, 1] and device.allocated == [1792]


# -- states


def test_a_state_is_written_in_place_and_kept(counter: Session) -> None:
    counter(x=ramp(3, 1), past=0)
    want = np.zeros(16, np.float32)
    want[:3], want[3:5] = ramp(3, 1), ramp(2, 7)
    np.testing.assert_array_equal(counter(x=ramp(2, 7), past=3)["y"], want)


def test_a_call_past_the_end_of_a_state_is_refused(counter: Session) -> None:
    counter(x=ramp(1), past=15)
    message = "with past=14, seq=3 the call needs 17 elements along axis 0 of cache, which has 16"
    with pytest.raises(LumiError, match=message):
        counter(x=ramp(3), past=14)


def test_reset_zeroes_states(counter: Session) -> None:
    counter(x=ramp(16, 1), past=0)
    counter.reset()
    np.testing.assert_array_equal(counter.save_states()["cache"], np.zeros(16))


def test_states_are_saved_and_loaded(counter: Session) -> None:
    counter(x=ramp(16, 1), past=0)
    saved = counter.save_states()
    counter(x=ramp(16, 50), past=0)
    counter.load_states(saved)
    np.testing.assert_array_equal(counter.save_states()["cache"], ramp(16, 1))
    with pytest.raises(LumiError, match="the states given are other"):
        counter.load_states({"other": saved["cache"]})
    with pytest.raises(LumiError, match=r"cache is f32 \[3\], expected f32 \[16\]"):
        counter.load_states({"cache": ramp(3)})


def test_a_fork_goes_its_own_way(counter: Session) -> None:
    counter(x=ramp(4, 1), past=0)
    other = counter.fork()
    other(x=ramp(1, 90), past=4)
    assert counter.save_states()["cache"][4] == 0
    assert other.save_states()["cache"][:5].tolist() == [1, 2, 3, 4, 90]


def batched_plan() -> Plan:
    """The counter with a state shaped by a dim."""
    plan = counter_plan()
    return replace(plan, states=(replace(plan.states[0], shape=(16,)), Signature("extra", F32, (_seq(),))))


def _seq() -> Any:
    return counter_plan().inputs[0].shape[0]


def test_a_state_shaped_by_a_dim_keeps_the_dim_until_reset() -> None:
    session = Session(batched_plan(), None, NumpyDevice())
    with pytest.raises(LumiError, match="the shape of state extra depends on seq"):
        session.save_states()
    session(x=ramp(2), past=0)
    assert session.save_states()["extra"].shape == (2,)
    with pytest.raises(LumiError, match="seq is 3, but state extra holds seq=2"):
        session(x=ramp(3), past=0)
    session.reset()
    session(x=ramp(3), past=0)


# -- faults


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "input x is not given"),
        ({"x": ramp(3), "z": 1}, "no input is called z"),
        ({"x": np.zeros(3)}, r"x is f64 \[3\]\n  = .*; convert it: x.astype\(numpy.float32\)"),
        ({"x": np.zeros((3, 1), np.float32)}, r"input x is f32 \[3 1\]"),
        ({"x": np.zeros(3, np.complex64)}, r"input x is complex64 \[3\]"),
        ({"x": ["a"]}, "input x: its values are not all numbers"),
        ({"x": [[1, 2], [3]]}, "input x: lists in it have different lengths"),
        ({"x": ramp(101)}, "seq is 101, outside of 1 … 100"),
        ({"x": ramp(0)}, "seq is 0, outside of 1 … 100"),
        ({"x": ramp(3), "seq": 4}, r"x is f32 \[3\], expected f32 \[seq\] with seq=4"),
        ({"x": ramp(3), "seq": 2.5}, "seq is 2.5"),
        ({"x": ramp(3), "seq": True}, "seq is True"),
    ],
)
def test_a_wrong_call_is_explained(adder: Session, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LumiError, match=message):
        adder(**arguments)


def test_an_unknown_dim_is_named(adder: Session) -> None:
    with pytest.raises(LumiError, match="no dim is called batch"):
        adder.run({"x": ramp(3)}, {"batch": 1})


def test_a_wrong_call_changes_nothing(counter: Session) -> None:
    counter(x=ramp(3, 1), past=0)
    before = counter.save_states()["cache"]
    with pytest.raises(LumiError):
        counter(x=np.zeros(3), past=0)
    np.testing.assert_array_equal(counter.save_states()["cache"], before)


def test_missing_weights_are_an_error_unless_made_up() -> None:
    with pytest.raises(LumiError, match="add needs weights: w") as caught:
        Session(add_plan(), None, NumpyDevice())
    assert 'init="random"' in caught.value.hint
    one = Session(add_plan(), None, NumpyDevice(), init="random", seed=4)
    same = Session(add_plan(), None, NumpyDevice(), init="random", seed=4)
    np.testing.assert_array_equal(one(x=ramp(3))["y"], same(x=ramp(3))["y"])
    with pytest.raises(LumiError, match="init is 'zeros'"):
        Session(add_plan(), None, NumpyDevice(), init="zeros")


def test_a_faulty_plan_is_refused() -> None:
    bad = replace(add_plan(), variants=(replace(add_plan().variants[0], arena=256),))
    with pytest.raises(LumiError, match="plan error"):
        Session(bad, W, NumpyDevice())


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(LumiError, match="no device runs plans for 'abacus'"):
        Session(replace(add_plan(), target="abacus"), W)


# -- arrays at the border


@pytest.mark.parametrize("value", [[1, 2], (1, 2), np.array([1, 2], np.int32), [True, False]])
def test_lists_take_the_inputs_type(value: Any) -> None:
    array = accept(Signature("t", I32, (2,)), value, "input")
    assert array.dtype == np.int32


def test_a_list_of_integers_becomes_any_integers_that_hold_it() -> None:
    assert accept(Signature("t", U8, (2,)), [0, 255], "input").dtype == np.uint8
    for value in ([-1, 0], [256, 0]):
        with pytest.raises(LumiError, match="int64 values do not become u8"):
            accept(Signature("t", U8, (2,)), value, "input")


def test_a_number_beyond_the_type_is_refused() -> None:
    with pytest.raises(LumiError, match="input t: overflow"):
        accept(Signature("t", F32, (1,)), [1e300], "input")


@pytest.mark.parametrize("value", [[2**40], [1.5], np.array([1], np.int64)])
def test_values_that_would_change_are_refused(value: Any) -> None:
    with pytest.raises(LumiError, match="input t"):
        accept(Signature("t", I32, (1,)), value, "input")


def test_bf16_comes_as_raw_bits_or_as_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    signature = Signature("h", BF16, (2,))
    raw = np.array([0x3F80, 0x4000], np.uint16)
    np.testing.assert_array_equal(accept(signature, raw, "input"), raw)
    np.testing.assert_array_equal(accept(signature, raw.view(ml_dtypes.bfloat16), "input"), raw)
    np.testing.assert_array_equal(accept(signature, [1.0, 2.0], "input"), raw)


def test_bytes_in_another_order_are_the_same_numbers(adder: Session) -> None:
    np.testing.assert_array_equal(adder(x=ramp(4).astype(">f4"))["y"], 2 * ramp(4) + 10)


class Foreign:
    """A tensor of another library that speaks DLPack."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_dlpack_tensors_are_taken(adder: Session) -> None:
    np.testing.assert_array_equal(adder(x=Foreign(ramp(4)))["y"], 2 * ramp(4) + 10)


def test_a_strided_input_is_made_contiguous(adder: Session) -> None:
    np.testing.assert_array_equal(adder(x=ramp(10)[::2])["y"], 2 * ramp(10)[::2] + 10)


def test_calls_from_many_threads_run_one_after_another(counter: Session) -> None:
    faults: list[str] = []

    def call(value: int) -> None:
        for _ in range(20):
            y = counter(x=np.full(16, value, np.float32), past=0)["y"]
            if not (y == value).all():
                faults.append(f"{value}: {y}")

    threads = [threading.Thread(target=call, args=(v,)) for v in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


class FullDevice(NumpyDevice):
    """A device that refuses blocks of some sizes, as a full machine does."""

    def __init__(self, refuses: Callable[[int], bool]) -> None:
        super().__init__()
        self.refuses = refuses

    def allocate(self, size: int) -> NumpyMemory:
        if self.refuses(size):
            raise MemoryError
        return super().allocate(size)


def test_memory_that_is_not_there_is_named(golden: Callable[..., None]) -> None:
    def called(plan: Plan, weights: dict[str, Array] | None, refuses: Callable[[int], bool]) -> str:
        with pytest.raises(LumiError) as caught:
            Session(plan, weights, FullDevice(refuses))(x=ramp(1))
        return caught.value.render()

    told = [called(add_plan(), W, lambda size: size > 500)]
    told.append(called(counter_plan(), None, lambda size: True))
    with pytest.raises(LumiError) as caught, room_for("weight w f32 [10000000000] needs", 4 * 10**10, "hint"):
        raise MemoryError
    golden("\n".join([*told, caught.value.render()]))
