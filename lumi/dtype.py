"""Element types: name, kind, width, and how numpy holds them.

bf16 and the two float types of one byte have no numpy type of their own: arrays users see have the types
of `ml_dtypes`, buffers in memory are unsigned integers.  `ml_dtypes` is imported only when such an array
is asked for, so that the runtime stays light.

f8e4m3 has 4 bits of exponent and 3 of fraction, no infinity, and one NaN of each sign; its greatest value
is 448.  f8e5m2 has 5 and 2, with infinities as f16 has them; its greatest value is 57344.  (Micikevicius
et al., FP8 Formats for Deep Learning, 2022.)  A value beyond the greatest becomes NaN or infinity.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True)
class DType:
    """An element type.  `kind` is "float", "int", "uint" or "bool"; `size` is in bytes."""

    name: str
    kind: str
    size: int

    @property
    def is_float(self) -> bool:
        """Whether values are floating point."""
        return self.kind == "float"

    @property
    def is_narrow(self) -> bool:
        """Whether arithmetic widens to f32 and rounds back: floats of fewer than four bytes."""
        return self.is_float and self.size < 4

    @property
    def is_raw(self) -> bool:
        """Whether numpy has no such type, and memory is held as unsigned integers."""
        return self.name in _RAW

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy type of memory."""
        return np.dtype(_NUMPY.get(self.name, f"u{self.size}"))

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type users see; raw ones need `ml_dtypes`."""
        if self.name not in _RAW:
            return np.dtype(_NUMPY[self.name])
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _RAW[self.name]))
        return found

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest value of an integer type; (0, 1) for bool."""
        if self.kind == "bool":
            return 0, 1
        bits = 8 * self.size
        return (0, 2**bits - 1) if self.kind == "uint" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def __str__(self) -> str:
        """The name, as the language spells it."""
        return self.name


_NUMPY = {
    "bool": np.bool_,
    "i8": np.int8,
    "u8": np.uint8,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}

_RAW = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
"""What `ml_dtypes` calls the types that numpy lacks."""

BOOL = DType("bool", "bool", 1)
I8 = DType("i8", "int", 1)
U8 = DType("u8", "uint", 1)
I32 = DType("i32", "int", 4)
I64 = DType("i64", "int", 8)
F8E4M3 = DType("f8e4m3", "float", 1)
F8E5M2 = DType("f8e5m2", "float", 1)
F16 = DType("f16", "float", 2)
BF16 = DType("bf16", "float", 2)
F32 = DType("f32", "float", 4)
F64 = DType("f64", "float", 8)

DTYPES: dict[str, DType] = {d.name: d for d in (BOOL, I8, U8, I32, I64, F16, BF16, F32, F64, F8E4M3, F8E5M2)}


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """The Lumi type of a numpy type.  Raises `KeyError` when Lumi has none."""
    for d in DTYPES.values():
        if dtype.name == _RAW[d.name] if d.is_raw else dtype == d.storage:
            return d
    raise KeyError(dtype.name)


def to_memory(values: Array, dtype: DType) -> Array:
    """Values in the type that memory holds them in; raw floats are rounded to nearest even."""
    if not dtype.is_raw:
        return values.astype(dtype.storage, copy=False)
    return round_to_bf16(values) if dtype == BF16 else _round_to_byte(values, LAYOUTS[dtype.name])


def from_memory(raw: Array, dtype: DType) -> Array:
    """Memory as numbers that numpy knows: raw floats as f32, exactly, others as they are."""
    if not dtype.is_raw:
        return raw
    return widen_bf16(raw) if dtype == BF16 else _widened(LAYOUTS[dtype.name])[np.asarray(raw, np.uint8)]


def round_to_bf16(values: Array) -> Array:
    """Raw uint16 bf16 of float values, rounded to nearest even; NaN stays NaN."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def round_to_tf32(values: Array) -> Array:
    """f32 or f64 with 10 bits of mantissa: the nearest such value, of two the one farther from 0."""
    kind: Any = np.uint64 if values.dtype == np.float64 else np.uint32
    spare = np.finfo(values.dtype).nmant - 10
    bits = np.ascontiguousarray(values).view(kind) + kind(1 << (spare - 1)) >> kind(spare) << kind(spare)
    return np.where(np.isfinite(values), bits.view(values.dtype).reshape(values.shape), values)


def widen_bf16(raw: Array) -> Array:
    """f32 values of raw uint16 bf16, exactly."""
    return np.asarray(np.asarray(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)


@dataclass(frozen=True, slots=True)
class Layout:
    """The bits of a narrow float under its sign.

    How many are its fraction's, the exponent of its least normal value, what stands for what is beyond its
    greatest value, and for NaN.
    """

    fraction: int
    least: int
    above: int
    nan: int


LAYOUTS = {
    "f16": Layout(10, -14, 0x7C00, 0x7E00),
    "f8e4m3": Layout(3, -6, 0x7F, 0x7F),
    "f8e5m2": Layout(2, -14, 0x7C, 0x7E),
}
"""bf16 is missing: it is the upper half of a f32."""


def _round_to_byte(values: Array, kind: Layout) -> Array:
    """The codes of float values: how many spacings they are from the least value of their exponent."""
    single = np.asarray(values, np.float32)
    size = np.where(np.isfinite(single), np.abs(single), 0).astype(np.float64)
    exponent = np.maximum(np.where(size > 0, np.frexp(size)[1] - 1, kind.least), kind.least)
    count = np.rint(np.ldexp(size, kind.fraction - exponent)).astype(np.int32)
    code = np.minimum(((exponent - kind.least) << kind.fraction) + count, kind.above)
    code = np.where(np.isinf(single), kind.above, code) | np.where(np.signbit(single), 0x80, 0)
    return np.where(np.isnan(single), kind.nan, code).astype(np.uint8)


@cache
def _widened(kind: Layout) -> Array:
    """The f32 values of all 256 codes."""
    code = np.arange(128)
    field, rest = code >> kind.fraction, code & ((1 << kind.fraction) - 1)
    whole = np.where(field > 0, rest + (1 << kind.fraction), rest)
    size = np.ldexp(whole, kind.least - kind.fraction + np.maximum(field - 1, 0)).astype(np.float32)
    size[code >= kind.above] = np.nan
    if kind.above != kind.nan:
        size[kind.above] = np.inf
    return np.concatenate([size, -size])
