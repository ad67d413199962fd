"""Outputs that stay on their device."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cpu.device import CpuDevice
from lumi.dtype import BF16, F32
from lumi.runtime.device import Place
from lumi.runtime.device_array import DeviceArray
from lumi.runtime.session import Session
from tests.plan.samples import Array, add_plan
from tests.runtime.numpy_device import NumpyDevice

VALUES = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def array() -> DeviceArray:
    device = CpuDevice()
    place = Place(device.adopt(VALUES), 0)
    return DeviceArray(F32, (2, 3), device, device.part(place, VALUES.nbytes))


def test_becomes_a_numpy_array(array: DeviceArray) -> None:
    np.testing.assert_array_equal(array.numpy(), VALUES)
    np.testing.assert_array_equal(np.asarray(array), VALUES)
    assert np.asarray(array, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="only by a copy"):
        np.asarray(array, copy=False)


def test_is_lent_without_a_copy(array: DeviceArray) -> None:
    found = np.from_dlpack(array)
    assert found.ctypes.data == array.memory.address
    np.testing.assert_array_equal(found, VALUES)


def test_is_not_lent_elsewhere(array: DeviceArray) -> None:
    with pytest.raises(BufferError, match="where it lies"):
        array.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="where it lies"):
        array.__dlpack__(copy=True)


def test_bf16_has_its_own_type() -> None:
    device = CpuDevice()
    raw = np.array([0x3F80, 0x4000], np.uint16)
    array = DeviceArray(BF16, (2,), device, device.adopt(raw))
    assert array.numpy().astype(np.float32).tolist() == [1.0, 2.0]


def test_outputs_stay_on_the_device_and_outlive_the_next_call() -> None:
    session = Session(add_plan(), None, NumpyDevice(), init="random")
    given: list[dict[str, Array]] = [
        {
            s.name: np.full([2 if not isinstance(z, int) else z for z in s.shape], k, s.dtype.numpy)
            for s in session.plan.inputs
        }
        for k in (1, 2)
    ]
    want = session.run(given[0])
    first = session.run_on_device(given[0])
    session.run_on_device(given[1])
    assert first.keys() == want.keys()
    for name, value in want.items():
        assert isinstance(first[name], DeviceArray)
        np.testing.assert_array_equal(first[name].numpy(), value)
