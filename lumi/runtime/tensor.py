"""A tensor of a checkpoint: its type and shape, and its bytes in the memory map of a file."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from lumi.blocks import BlockFormat
from lumi.dtype import DType, from_memory, to_memory
from lumi.runtime.dequantize import dequantize, split_plane

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
"""A host array; floats that numpy lacks are held as unsigned integers."""

Stored: TypeAlias = "DType | BlockFormat | str"
"""How a tensor is held: plain elements, quantised blocks along the last dimension, or the format's own
name of a type that Lumi cannot read."""


def stored_bytes(stored: DType | BlockFormat, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor; the last dimension holds whole blocks."""
    count = math.prod(shape)
    if isinstance(stored, BlockFormat):
        return count // stored.elements * stored.bytes
    return count * stored.size


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """`data` are the bytes, u8; `order` gives the stored row of each row, where they differ."""

    name: str
    shape: tuple[int, ...]
    stored: Stored
    data: Array = field(repr=False)
    order: Array | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """`model.norm.weight f32 [640]`."""
        kind = self.stored if isinstance(self.stored, str) else self.stored.name
        return f"{self.name} {kind} [{' '.join(map(str, self.shape))}]"

    def converts_to(self, dtype: DType) -> bool:
        """Whether `array` can give `dtype`: floats and blocks become any float, others stay as they are."""
        match self.stored:
            case DType():
                return self.stored == dtype or (self.stored.is_float and dtype.is_float)
            case BlockFormat():
                return dtype.is_float
            case _:
                return False

    def array(self, dtype: DType) -> Array:
        """The values [*shape] as a C-contiguous array of `dtype`, rounded to nearest even.

        Blocks are dequantised exactly to f32 first.  Where nothing changes it is a view of the file.
        """
        if isinstance(self.stored, BlockFormat):
            values = self._rows(dequantize(self.data, self.stored, self.shape))
        else:
            assert isinstance(self.stored, DType)
            values = self._rows(self.data.view(self.stored.storage).reshape(self.shape))
            if self.stored == dtype:
                return np.require(values, requirements=["C", "A"])
            values = from_memory(values, self.stored)
        return np.ascontiguousarray(to_memory(values, dtype))

    def plane(self, name: str) -> Array:
        """The plane [*rows, blocks, *field] of packed weights, C-contiguous."""
        assert isinstance(self.stored, BlockFormat)
        plane = next(p for p in self.stored.planes if p.name == name)
        return np.ascontiguousarray(self._rows(split_plane(self.data, self.stored, plane, self.shape)))

    def _rows(self, values: Array) -> Array:
        return values if self.order is None else values[self.order]
