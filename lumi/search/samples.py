"""Seeded random contents for the buffers of a region, the same from every device that can make them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from lumi import dim
from lumi.dtype import DType, from_memory
from lumi.field.access import Access
from lumi.field.region import Region
from lumi.llir.arithmetic import Array
from lumi.noise import Noise

BLOCK = 1_000_003
"""Numbers after which those of a large buffer repeat; a prime, so that no dimension lines up with it."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What lies in a buffer: the first `BLOCK` numbers of a noise, again and again."""

    noise: Noise
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes of memory."""
        return self.count * self.noise.dtype.size

    def array(self) -> Array:
        """The raw memory."""
        if not self.count:
            return np.empty(self.shape, self.noise.dtype.storage)
        return np.resize(self.noise.array(min(self.count, BLOCK)), self.shape)


def sampled(region: Region, dims: Mapping[str, int], seed: int = 0) -> dict[str, Sample]:
    """What lies in every buffer of the region, by canonical name (`B0` …).

    Floats are nearly normal, small integers cover their type, others are legal indices of whatever the
    region gathers from.
    """
    found = {a.buffer: a for a in accesses(region)}
    limit = _index_limit(region, dims)
    return {
        name: Sample(_noise(found[name].dtype, limit, seed + 1 + k), _shape(found[name], dims))
        for k, name in enumerate(f"B{k}" for k in range(len(region.buffers)))
        if name in found
    }


def samples(region: Region, dims: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """The same as raw memory."""
    return {name: sample.array() for name, sample in sampled(region, dims, seed).items()}


def accesses(region: Region) -> Iterator[Access]:
    """How the region touches its buffers."""
    yield from region.accesses.values()
    for store in region.stores:
        yield store.access
        yield from store.access.looks()


def _shape(access: Access, dims: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(dim.value(e, dims) for e in access.shape)


def _index_limit(region: Region, dims: Mapping[str, int]) -> int | None:
    """The least size of a dimension that data index; None when nothing is gathered."""
    sizes = [
        dim.value(size, dims)
        for access in region.accesses.values()
        for index, size in zip(access.index, access.shape, strict=True)
        if index.data()
    ]
    return min(sizes, default=None)


def _noise(dtype: DType, limit: int | None, seed: int) -> Noise:
    if dtype.is_float:
        return Noise(_apart(seed), dtype)
    low, high = dtype.bounds if dtype.size == 1 else (-9, 9)
    if limit is not None and dtype.size > 1:
        low, high = 0, max(limit - 1, 0)
    return Noise(_apart(seed), dtype, low=low, span=high - low + 1)


def _apart(seed: int) -> int:
    """A seed whose numbers are not those of its neighbours."""
    return seed * 0x9E3779B1 % 2**64


def cut_to_tf32(values: Array) -> Array:
    """f32 with the 10 upper bits of their mantissas, which devices make by cutting off or by rounding.

    Cutting off errs most: always to one side, by a whole spacing at worst.
    """
    raw = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return (raw & np.uint32(0xFFFFE000)).view(np.float32)


def wide(raw: Array, dtype: DType) -> Array:
    """A copy that the reference may write: floats in f64."""
    if not dtype.is_float:
        return raw.copy()
    return from_memory(raw, dtype).astype(np.float64)
