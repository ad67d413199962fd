"""Host arrays at the border: what callers give becomes raw memory, raw memory becomes what they get."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lumi import dim
from lumi.dtype import DType, from_numpy
from lumi.errors import LumiError
from lumi.plan.plan import Signature
from lumi.runtime import dlpack
from lumi.runtime.device import Array, Device, Place
from lumi.runtime.device_array import DeviceArray, to_numpy


def accept(signature: Signature, value: Any, what: str) -> Array:
    """A C-contiguous array in the storage type of a signature, of its rank.

    numpy arrays and DLPack tensors must have the signature's dtype (floats that numpy lacks may also
    come raw, bf16 as uint16);
    numbers and lists take it.  Raises `LumiError` ("input error") that calls the value `what` NAME.
    """
    try:
        given = _given(signature.dtype, value)
    except (ValueError, TypeError, OverflowError, BufferError, RuntimeError, FloatingPointError) as error:
        raise _refusal(signature, what, f": {error}") from None
    raw = signature.dtype.is_raw and given.dtype == signature.dtype.storage
    is_typed = raw or _name(given) == signature.dtype.name
    if not is_typed or given.ndim != len(signature.shape):
        conversion = "" if is_typed or signature.dtype.is_raw else _conversion(signature)
        raise _refusal(signature, what, f" is {_name(given)} [{' '.join(map(str, given.shape))}]", conversion)
    return np.require(given, requirements="C").view(signature.dtype.storage)


def accept_lent(signature: Signature, value: Any, device: Device) -> dlpack.Borrowed:
    """A tensor that lies on the device already, without a copy; checked like `accept`."""
    try:
        lent = dlpack.borrow(value, device.queue)
    except (ValueError, TypeError, BufferError, RuntimeError) as error:
        raise _refusal(signature, "input", f" {error}") from None
    if lent.dtype != signature.dtype or len(lent.shape) != len(signature.shape):
        raise _refusal(signature, "input", f" is {lent.dtype} [{' '.join(map(str, lent.shape))}]")
    return lent


def take(signature: Signature, place: Place, dims: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """A new array with a buffer's content, in the type users see."""
    shape = _shape(signature, dims)
    return to_numpy(place.memory.fetch(_bytes(signature, shape), place.offset), signature.dtype, shape)


def keep(signature: Signature, place: Place, dims: Mapping[str, int], device: Device) -> DeviceArray:
    """A copy of a buffer's content that stays on the device."""
    shape = _shape(signature, dims)
    return DeviceArray(signature.dtype, shape, device, device.part(place, _bytes(signature, shape)))


def _shape(signature: Signature, dims: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([z if isinstance(z, int) else dim.value(z, dims) for z in signature.shape])


def _bytes(signature: Signature, shape: Sequence[int]) -> int:
    return math.prod(shape) * signature.dtype.size


def _given(dtype: DType, value: Any) -> Array:
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    try:
        listed = np.asarray(value)
    except ValueError:
        raise ValueError("lists in it have different lengths") from None
    if listed.dtype.kind in "OUS":
        raise ValueError("its values are not all numbers")
    if listed.size and not _becomes(listed, dtype):
        raise ValueError(f"{listed.dtype.name} values do not become {dtype}")
    with np.errstate(over="raise"):
        return np.asarray(value, dtype.numpy)


def _becomes(listed: Array, dtype: DType) -> bool:
    """Whether listed numbers are a tensor of `dtype`: integers if all fit, else what its kind holds."""
    if listed.dtype.kind in "iub" and dtype.kind in ("int", "uint"):
        low, high = dtype.bounds
        return bool(low <= listed.min() and listed.max() <= high)
    return np.can_cast(listed.dtype, dtype.numpy, "same_kind")


def _name(array: Array) -> str:
    try:
        return from_numpy(array.dtype).name
    except KeyError:
        return array.dtype.name


def _conversion(signature: Signature) -> str:
    return f"; convert it: {signature.name}.astype(numpy.{signature.dtype.numpy.name})"


def _refusal(signature: Signature, what: str, why: str, more: str = "") -> LumiError:
    return LumiError("input error", f"{what} {signature.name}{why}", hint=f"expected {signature}{more}")
