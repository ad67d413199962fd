"""Element types: name, kind, width, and how numpy holds them.

bf16 has no numpy type of its own: arrays users see are `ml_dtypes.bfloat16`, buffers in memory are
`uint16`.  `ml_dtypes` is imported only when a bf16 array is asked for, so that the runtime stays light.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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
    def is_half(self) -> bool:
        """Whether arithmetic widens to f32 and rounds back (f16, bf16)."""
        return self.is_float and self.size == 2

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy type of raw memory: bf16 is held as uint16."""
        return np.dtype(np.uint16 if self.name == "bf16" else _NUMPY[self.name])

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy type users see; bf16 needs `ml_dtypes`."""
        if self.name != "bf16":
            return np.dtype(_NUMPY[self.name])
        import ml_dtypes

        half: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
        return half

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

BOOL = DType("bool", "bool", 1)
I8 = DType("i8", "int", 1)
U8 = DType("u8", "uint", 1)
I32 = DType("i32", "int", 4)
I64 = DType("i64", "int", 8)
F16 = DType("f16", "float", 2)
BF16 = DType("bf16", "float", 2)
F32 = DType("f32", "float", 4)
F64 = DType("f64", "float", 8)

DTYPES: dict[str, DType] = {d.name: d for d in (BOOL, I8, U8, I32, I64, F16, BF16, F32, F64)}


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """The Lumi type of a numpy type.  Raises `KeyError` when Lumi has none."""
    if dtype.name == "bfloat16":
        return BF16
    for d in DTYPES.values():
        if d is not BF16 and d.storage == dtype:
            return d
    raise KeyError(dtype.name)


def round_to_bf16(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Raw uint16 bf16 of float values, rounded to nearest even; NaN stays NaN."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def widen_bf16(raw: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """f32 values of raw uint16 bf16, exactly."""
    return np.asarray(np.asarray(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
