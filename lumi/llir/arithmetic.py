"""The exact meaning of every elementwise operator, in numpy.

Values in registers have a *held* type: floats of fewer than four bytes are held as f32 whose
values fit them, every other type as itself.  Their arithmetic therefore computes in f32 and rounds once,
as HLIR asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from lumi import dtype as memory
from lumi.dtype import BOOL, DTYPES, DType, round_to_tf32

Array: TypeAlias = "np.ndarray[Any, Any]"


def held(dtype: DType) -> np.dtype[Any]:
    """The numpy type of a value of `dtype` in registers."""
    return np.dtype(np.float32) if dtype.is_narrow else dtype.storage


def from_memory(raw: Array, dtype: DType) -> Array:
    """Held values of raw memory."""
    return memory.from_memory(raw, dtype).astype(held(dtype), copy=False)


def to_memory(values: Array, dtype: DType) -> Array:
    """Raw memory of held values."""
    return memory.to_memory(values, dtype)


def number(value: float, dtype: DType) -> Array:
    """A weak constant as a held scalar of the type it meets; what an integer cannot hold saturates."""
    if dtype.is_float:
        return rounded(np.asarray(value, held(dtype)), dtype)
    if dtype == BOOL:
        return np.asarray(value != 0)
    low, high = dtype.bounds
    whole = 0 if math.isnan(value) else low if value < low else high if value > high else int(value)
    return np.asarray(whole, held(dtype))


def rounded(values: Array, dtype: DType) -> Array:
    """Held values rounded to what `dtype` can represent."""
    if not dtype.is_narrow:
        return values.astype(held(dtype), copy=False)
    return from_memory(to_memory(values, dtype), dtype).reshape(values.shape)


def cast(values: Array, source: DType, target: DType) -> Array:
    """The nearest value of `target`: truncating and saturating to integers, wrapping between them."""
    if target == BOOL:
        return np.asarray(values != 0)
    if target.is_float:
        return rounded(values.astype(held(target)), target)
    if not source.is_float:
        return values.astype(held(target))
    low, high = target.bounds
    wide = np.trunc(values.astype(np.float64))
    inside = (wide >= low) & (wide < high + 1.0)
    whole = np.where(inside, wide, 0).astype(held(target))
    edge = np.where(wide < low, np.asarray(low, held(target)), np.asarray(high, held(target)))
    return np.where(inside, whole, np.where(np.isnan(wide), np.asarray(0, held(target)), edge))


def bits(values: Array, source: DType, target: DType) -> Array:
    """The same bytes as another type of the same size."""
    raw = np.ascontiguousarray(to_memory(values, source))
    return from_memory(raw.view(target.storage).reshape(values.shape), target)


def apply(op: str, values: tuple[Array, ...], operand: DType, result: DType) -> Array:
    """`op` of held values of type `operand` (the branches, for `sel`), as held values of `result`."""
    with np.errstate(all="ignore"):
        if op.startswith("cast."):
            return cast(values[0], operand, DTYPES[op.removeprefix("cast.")])
        if op.startswith("bits."):
            return bits(values[0], operand, DTYPES[op.removeprefix("bits.")])
        table = _FLOAT if operand.is_float else _BOOL if operand == BOOL else _INT
        function = table.get(op) or _COMMON[op]
        return rounded(np.asarray(function(*values)), result)


def _trunc_div(a: Array, b: Array) -> Array:
    zero = b == 0
    safe = np.where(zero, np.ones_like(b), b)
    quotient = a // safe
    inexact = (quotient * safe != a) & ((a < 0) != (safe < 0))
    return np.where(zero, np.zeros_like(a), quotient + inexact.astype(a.dtype))


def _floor_mod(a: Array, b: Array) -> Array:
    zero = b == 0
    return np.where(zero, a, np.remainder(a, np.where(zero, np.ones_like(b), b)))


def _recipz(a: Array) -> Array:
    return np.where(a == 0, np.zeros_like(a), np.ones_like(a) / a)


_Table: TypeAlias = "dict[str, Callable[..., Any]]"

_COMMON: _Table = {
    "sel": np.where,
    "max": np.maximum,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "abs": np.abs,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "mulz": lambda a, b: np.where(a == 0, np.zeros_like(a), a * b),
}

_FLOAT: _Table = {
    "exp2": np.exp2,
    "log2": np.log2,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "tf32": round_to_tf32,
    "recip": lambda a: np.ones_like(a) / a,
    "recipz": _recipz,
    "div": lambda a, b: np.trunc(a / b),
    "rem": np.fmod,
    "mod": lambda a, b: a - b * np.floor(a / b),
    "subni": lambda a, b: np.where(a == -np.inf, a, a - b),
}

_INT: _Table = {
    "div": _trunc_div,
    "rem": lambda a, b: a - b * _trunc_div(a, b),
    "mod": _floor_mod,
    "shr": np.right_shift,
    "bitand": np.bitwise_and,
    "subni": np.subtract,
    "mulz": np.multiply,
    "floor": lambda a: a,
}

_BOOL: _Table = {
    "add": np.logical_or,
    "mul": np.logical_and,
    "max": np.logical_or,
    "bitand": np.logical_and,
}


def reduce(op: str, values: Array, axes: tuple[int, ...], dtype: DType) -> Array:
    """Held values combined along `axes` by sum, max or mul; integers wrap at their width."""
    with np.errstate(all="ignore"):
        if dtype == BOOL:
            return np.asarray(values.all(axes) if op == "mul" else values.any(axes))
        if op == "max":
            return np.asarray(values.max(axes, initial=identity(op, dtype)))
        function = np.sum if op == "sum" else np.prod
        return rounded(np.asarray(function(values, axis=axes, dtype=held(dtype))), dtype)


def identity(op: str, dtype: DType) -> Any:
    """The held value that leaves every other as it is."""
    if op == "max":
        return -np.inf if dtype.is_float else dtype.bounds[0]
    return 0 if op == "sum" else 1


COMBINE = {"sum": "add", "max": "max", "mul": "mul"}
"""The elementwise operator of each monoid."""
