"""Points of named axes: which element of a buffer an access names at each, as numpy indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from lumi import dim
from lumi.dtype import DType
from lumi.field.access import Access
from lumi.field.index import Data, Index, Look, Quot, Rem, Sym

Array: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, slots=True)
class Field:
    """Values over named axes, one dimension an axis; `dtype` is None for a number without a type."""

    array: Array
    axes: tuple[str, ...]
    dtype: DType | None

    @property
    def type(self) -> DType:
        """The dtype of a field that has one."""
        if self.dtype is None:
            raise TypeError(f"{self.array} has no type")
        return self.dtype

    def part(self, axis: str, start: int, count: int) -> Field:
        """The same at some positions of an axis that it may vary along."""
        if axis not in self.axes:
            return self
        where = [slice(None)] * len(self.axes)
        where[self.axes.index(axis)] = slice(start, start + count)
        return replace(self, array=self.array[tuple(where)])


@dataclass(slots=True)
class Points:
    """The positions that each axis runs over, in the order of arrays' dimensions, dims and buffers."""

    ranges: Mapping[str, range]
    dims: Mapping[str, int]
    buffers: dict[str, Array]

    def places(self, access: Access, data: Field | None) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """A numpy index into the buffer under the access's shape, and the axes of what it selects."""
        shape = self.shape(access)
        plain = [i.axis for i in access.index if i.terms]
        if None not in plain and len(set(plain)) == len(plain) and not access.clamp:
            places: list[Any] = []
            for at, size in zip(access.index, shape, strict=True):
                along = self.ranges[at.axis] if at.axis else range(at.offset, at.offset + 1)
                self._check(access, along, size)
                places.append(slice(along.start, along.stop) if at.axis else at.offset)
            return tuple(places), tuple(a for a in plain if a)
        axes = self.ordered({*access.axes(), *(data.axes if data else ())})
        arrays = [self._position(at, axes, data) for at in access.index]
        if access.clamp:
            return tuple(np.clip(p, 0, max(z - 1, 0)) for p, z in zip(arrays, shape, strict=True)), axes
        for p, z in zip(arrays, shape, strict=True):
            self._check(access, p, z)
        return tuple(arrays), axes

    def _check(self, access: Access, positions: range | Array, size: int) -> None:
        empty = len(positions) == 0 if isinstance(positions, range) else positions.size == 0
        if not empty and (np.min(positions) < 0 or np.max(positions) >= size):
            raise ValueError(
                f"{access} leaves its buffer: {np.min(positions)} … {np.max(positions)} of {size}"
            )

    def _position(self, at: Index, axes: tuple[str, ...], data: Field | None) -> Array:
        """The values of an index map over `axes`."""
        total = np.full((1,) * len(axes), at.offset, np.int64)
        for part, coefficient in at.terms:
            match part:
                case str():
                    value = self.spread(np.asarray(self.ranges[part], np.int64), (part,), axes)
                case Sym(extent):
                    value = np.asarray(dim.value(extent, self.dims))
                case Data():
                    assert data is not None
                    value = self.spread(data.array.astype(np.int64), data.axes, axes)
                case Quot(inner, divisor):
                    value = self._position(inner, axes, data) // divisor
                case Rem(inner, divisor):
                    value = self._position(inner, axes, data) % divisor
                case Look():
                    value = self._looked(part, axes, data)
            total = total + coefficient * value
        return total

    def _looked(self, look: Look, axes: tuple[str, ...], data: Field | None) -> Array:
        """What an index is looked up to be."""
        table = self.buffers[look.buffer].reshape([dim.value(size, self.dims) for size in look.shape])
        found = table[tuple(self._position(at, axes, data) for at in look.index)] if look.index else table
        return np.clip(found.astype(np.int64), 0, max(dim.value(look.size, self.dims) - 1, 0))

    def shape(self, access: Access) -> tuple[int, ...]:
        """The sizes of an access's dimensions."""
        return tuple(dim.value(z, self.dims) for z in access.shape)

    def ordered(self, axes: Iterable[str]) -> tuple[str, ...]:
        """The axes in the order of the frame."""
        wanted = set(axes)
        return tuple(a for a in self.ranges if a in wanted)

    def spread(self, array: Array, axes: tuple[str, ...], names: tuple[str, ...]) -> Array:
        """`array` over `axes`, with its dimensions in the order of `names` and 1 for those it lacks."""
        present = [a for a in names if a in axes]
        moved = array.transpose([axes.index(a) for a in present])
        sizes = iter(moved.shape)
        return moved.reshape([next(sizes) if a in axes else 1 for a in names])
