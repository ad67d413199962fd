"""Tensors lent to other libraries and borrowed from them, and what becomes of them afterwards."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from lumi.dtype import DTYPES, F32, I32, DType
from lumi.runtime import dlpack


class Owner:
    """Something that a tensor needs."""


class Lender:
    """A tensor of another library."""

    def __init__(self, array: np.ndarray[Any, Any], dtype: DType, owner: object = None) -> None:
        self.array, self.dtype, self.owner = array, dtype, owner

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU, 0

    def __dlpack__(self, stream: int | None = None, **_: Any) -> Any:
        address = self.array.ctypes.data
        return dlpack.lend(address, self.dtype, self.array.shape, (dlpack.CPU, 0), (self.array, self.owner))


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if not d.is_raw], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (2, 3, 4)])
def test_numpy_sees_what_is_lent(dtype: DType, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype.numpy)
    found = np.from_dlpack(Lender(array, dtype))
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)
    assert not array.size or found.ctypes.data == array.ctypes.data


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_what_is_lent_is_borrowed_in_place(dtype: DType) -> None:
    array = np.zeros((2, 3), dtype.storage)
    found = dlpack.borrow(Lender(array, dtype))
    assert (found.address, found.dtype, found.shape) == (array.ctypes.data, dtype, (2, 3))
    assert found.device == (dlpack.CPU, 0)


def test_arrays_of_numpy_are_borrowed() -> None:
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    found = dlpack.borrow(array[1:])
    assert (found.address, found.dtype, found.shape) == (array.ctypes.data + 12, I32, (1, 3))
    held = (ctypes.c_int32 * 3).from_address(found.address)
    assert list(held) == [3, 4, 5]


@pytest.mark.parametrize("view", [lambda a: a.T, lambda a: a[:, ::2], lambda a: a[::-1]])
def test_other_orders_are_refused(view: Any) -> None:
    with pytest.raises(ValueError, match="make it contiguous"):
        dlpack.borrow(view(np.zeros((3, 4), np.float32)))


def test_unknown_types_are_refused() -> None:
    with pytest.raises(ValueError, match="16 bits"):
        dlpack.borrow(np.zeros(3, np.int16))


def test_owner_lives_as_long_as_the_borrower() -> None:
    owner = Owner()
    gone = weakref.ref(owner)
    found: dlpack.Borrowed | None = dlpack.borrow(Lender(np.zeros(4, np.float32), F32, owner))
    del owner
    gc.collect()
    assert gone() is not None
    assert found is not None
    found = None
    gc.collect()
    assert gone() is None


def test_owner_of_a_capsule_that_nobody_takes_is_let_go() -> None:
    owner = Owner()
    gone = weakref.ref(owner)
    capsule = Lender(np.zeros(4, np.float32), F32, owner).__dlpack__()
    del owner
    gc.collect()
    assert gone() is not None
    del capsule
    gc.collect()
    assert gone() is None


def test_device_of_what_is_no_tensor() -> None:
    assert dlpack.device_of([1, 2]) is None
    assert dlpack.device_of(np.zeros(2)) == (dlpack.CPU, 0)
