"""DLPack: tensors of other libraries without a copy, and Lumi's tensors to them.

The structures are those of dlpack.h before versions were added to it, which every library still speaks.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lumi.dtype import DTYPES, DType

CPU, CUDA = 1, 2
"""DLPack's numbers for kinds of devices."""

_CODES = {"int": 0, "uint": 1, "float": 2, "bool": 6}
_RAW = {"bf16": 4, "f8e4m3": 10, "f8e5m2": 12}
"""The codes of the floats that numpy lacks, of dlpack.h 1.1."""
_NAME, _USED = b"dltensor", b"used_dltensor"

_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("delete", ctypes.c_void_p))


_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
_api.PyCapsule_IsValid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)


# -- tensors of others


class _Hold:
    """What keeps a tensor of another library alive."""

    __slots__ = ("__weakref__",)


@dataclass(frozen=True, slots=True)
class Borrowed:
    """A dense row-major tensor of another library, at `address` of a device, alive as long as this is."""

    address: int
    dtype: DType
    shape: tuple[int, ...]
    device: tuple[int, int]
    hold: object = field(repr=False)


def device_of(value: Any) -> tuple[int, int] | None:
    """The kind and number of the device that a tensor lies on; None for what is no such tensor."""
    if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
        return None
    kind, number = value.__dlpack_device__()
    return int(kind), int(number)


def borrow(value: Any, stream: int | None = None) -> Borrowed:
    """Take a tensor without copying it; what is written to it so far is done before `stream` goes on.

    Raises `ValueError` for a type that Lumi lacks and for elements that do not lie in row-major order.
    """
    capsule = value.__dlpack__() if stream is None else value.__dlpack__(stream=stream)
    pointer = _api.PyCapsule_GetPointer(capsule, _NAME)
    managed = _Managed.from_address(pointer)
    _api.PyCapsule_SetName(capsule, _USED)
    hold = _Hold()
    if managed.delete:
        weakref.finalize(hold, _Deleter(managed.delete), pointer)
    tensor = managed.tensor
    shape = tuple(tensor.shape[k] for k in range(tensor.rank))
    strides = tuple(tensor.strides[k] for k in range(tensor.rank)) if tensor.strides else None
    if strides is not None and not _is_dense(shape, strides):
        raise ValueError(f"has strides {list(strides)}; make it contiguous")
    address = (tensor.data or 0) + tensor.offset
    return Borrowed(address, _dtype(tensor), shape, (tensor.device[0], tensor.device[1]), hold)


def _dtype(tensor: _Tensor) -> DType:
    for dtype in DTYPES.values():
        if (tensor.code, tensor.bits, tensor.lanes) == (_code(dtype), 8 * dtype.size, 1):
            return dtype
    raise ValueError(f"has a type of {tensor.bits} bits (DLPack code {tensor.code}) that Lumi lacks")


def _code(dtype: DType) -> int:
    return _RAW.get(dtype.name, _CODES[dtype.kind])


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements follow each other; the stride of an axis of one element means nothing."""
    if 0 in shape:
        return True
    want = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != want:
            return False
        want *= size
    return True


# -- tensors for others


_LENT: dict[int, tuple[object, ...]] = {}
"""What each tensor on loan needs, by its number, until its borrower gives it back."""

_NUMBERS = itertools.count(1)


def lend(address: int, dtype: DType, shape: Sequence[int], device: tuple[int, int], owner: object) -> Any:
    """A capsule for another library; `owner` is kept until that library is done with it."""
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(shape), 1))(*(math.prod(shape[k + 1 :]) for k in range(len(shape))))
    managed = _Managed(context=next(_NUMBERS), delete=ctypes.cast(_RETURN, ctypes.c_void_p).value)
    tensor = managed.tensor
    tensor.data, tensor.device[:] = address or None, device
    tensor.rank, tensor.shape, tensor.strides = len(shape), sizes, steps
    tensor.code, tensor.bits, tensor.lanes = _code(dtype), 8 * dtype.size, 1
    _LENT[managed.context] = (managed, sizes, steps, owner)
    return _api.PyCapsule_New(ctypes.addressof(managed), _NAME, ctypes.cast(_UNUSED, ctypes.c_void_p).value)


def _return(pointer: int) -> None:
    """Called by a borrower that is done."""
    _LENT.pop(_Managed.from_address(pointer).context, None)


def _unused(capsule: int) -> None:
    """Called for a capsule that goes away; one that nobody has taken returns what it lends."""
    if _api.PyCapsule_IsValid(capsule, _NAME):
        pointer = _pointer(capsule, _NAME)
        _LENT.pop(_Managed.from_address(pointer).context, None)


_pointer = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
"""As above, for a capsule that is being deleted and can be no object any more."""

_RETURN, _UNUSED = _Deleter(_return), _Destructor(_unused)
