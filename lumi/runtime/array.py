"""Host arrays at the border: what callers give becomes raw memory, raw memory becomes what they get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lumi import dim
from lumi.dtype import BF16, DType, from_numpy
from lumi.errors import LumiError
from lumi.plan.plan import Signature
from lumi.runtime.device import Array, Place


def accept(signature: Signature, value: Any, what: str) -> Array:
    """A C-contiguous array in the storage type of a signature, of its rank.

    numpy arrays and DLPack tensors must have the signature's dtype (bf16 may also come as raw uint16);
    numbers and lists take it.  Raises `LumiError` ("input error") that calls the value `what` NAME.
    """
    try:
        given = _given(signature.dtype, value)
    except (ValueError, TypeError, OverflowError, BufferError, RuntimeError) as error:
        raise _refusal(signature, what, f": {error}") from None
    raw_half = signature.dtype == BF16 and given.dtype == np.uint16
    if not (raw_half or _name(given) == signature.dtype.name) or given.ndim != len(signature.shape):
        raise _refusal(signature, what, f" is {_name(given)} [{' '.join(map(str, given.shape))}]")
    return np.require(given, requirements="C").view(signature.dtype.storage)


def take(signature: Signature, place: Place, dims: Mapping[str, int]) -> np.ndarray[Any, Any]:
    """A new array with a buffer's content, in the type users see."""
    shape = tuple(dim.value(extent, dims) for extent in signature.shape)
    array = np.empty(shape, signature.dtype.storage)
    place.memory.read(array, place.offset)
    try:
        return array.view(signature.dtype.numpy)
    except ImportError:
        raise LumiError(
            "device error", f"{signature.name} is bf16, which numpy lacks", hint="pip install ml-dtypes"
        ) from None


def _given(dtype: DType, value: Any) -> Array:
    if isinstance(value, np.ndarray | np.generic):
        return np.asarray(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    listed = np.asarray(value)
    if listed.size and not np.can_cast(listed.dtype, dtype.numpy, "same_kind"):
        raise ValueError(f"{listed.dtype.name} values do not become {dtype}")
    return np.asarray(value, dtype.numpy)


def _name(array: Array) -> str:
    try:
        return from_numpy(array.dtype).name
    except KeyError:
        return array.dtype.name


def _refusal(signature: Signature, what: str, why: str) -> LumiError:
    return LumiError("input error", f"{what} {signature.name}{why}", hint=f"expected {signature}")
