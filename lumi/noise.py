"""Seeded made-up numbers, each a function of its place: the same from every device that can make them.

Number i of a seed is `mixed(seed + (i + 1) · STRIDE)`, the output function of SplitMix64 (Steele, Lea &
Flood, 2014): 64 bits.  A float is the sum of its four 16-bit parts, centred and scaled, which is nearly
normal and needs no arithmetic that devices round differently; an integer is `low` and the upper 32 bits
scaled to `span`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lumi.dtype import DType, to_memory

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
"""A host array; floats that numpy lacks are held as unsigned integers."""

STRIDE = 0x9E3779B97F4A7C15
FACTORS = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
"""Of the output function, with shifts of 30, 27 and 31."""

CENTRE = 2 * 0xFFFF
SPREAD = math.sqrt((2**32 - 1) / 3)
"""Mean and standard deviation of the sum of four parts."""

_CHUNK = 1 << 20
"""Numbers made at once on the host."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Numbers of `dtype`: floats of standard deviation `scale`, or integers from `low`, `span` of them."""

    seed: int
    dtype: DType
    scale: float = 1.0
    low: int = 0
    span: int = 1

    @property
    def factor(self) -> np.float32:
        """What a centred sum is multiplied by."""
        return np.float32(self.scale / SPREAD)

    def array(self, count: int) -> Array:
        """The first `count` numbers, in the storage type of the dtype."""
        found = np.empty(count, self.dtype.storage)
        for start in range(0, count, _CHUNK):
            part = found[start : start + _CHUNK]
            part[:] = self._part(start, len(part))
        return found

    def _part(self, start: int, count: int) -> Array:
        bits = _mixed(self.seed, start, count)
        if not self.dtype.is_float:
            return (((bits >> np.uint64(32)) * np.uint64(self.span)) >> np.uint64(32)).astype(
                np.int64
            ) + self.low
        parts = bits.view(np.uint16).reshape(count, 4).astype(np.int32)
        values = (parts.sum(1, dtype=np.int32) - CENTRE).astype(np.float32) * self.factor
        return to_memory(values, self.dtype)


def _mixed(seed: int, start: int, count: int) -> Array:
    places = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    bits = places * np.uint64(STRIDE) + np.uint64(seed)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(FACTORS[0])
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(FACTORS[1])
    return bits ^ (bits >> np.uint64(31))
