"""A region's random data, laid out in memory for a candidate, and whether its results are right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lumi import dim
from lumi.dtype import DType
from lumi.field.evaluate import evaluate
from lumi.field.region import Region
from lumi.llir.arithmetic import Array
from lumi.llir.kernel import KernelGraph
from lumi.search.accuracy import depends_on_rounding, difference, rounds_to_tf32, tolerance
from lumi.search.child import SharedMemory
from lumi.search.samples import cut_to_tf32, samples, wide

ALIGNMENT = 256
"""Bytes: every buffer begins at a multiple of it, as the buffers of a plan do."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each buffer of a graph lies in the shared memory, for each copy of the region's buffers.

    The graph's own buffers begin at `temporaries`.
    """

    copies: tuple[Mapping[str, int], ...]
    temporaries: int
    size: int


@dataclass(slots=True)
class Bench:
    """A region's random data at some dims, and the results it must give."""

    region: Region
    values: Mapping[str, int]
    given: dict[str, Array] = field(init=False)
    wanted: dict[str, Array] = field(init=False)
    limit: float = field(init=False)
    filled: int = -1
    narrow: dict[bool, dict[str, Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.given = samples(self.region, self.values)
        stored = {s.access.buffer for s in self.region.stores}
        arrays = {k: wide(v, self._dtype(k)) if k in stored else v for k, v in self.given.items()}
        evaluate(self.region, arrays, self.values)
        self.wanted = {name: arrays[name] for name in stored}
        self.limit = tolerance(self.region, self.values)

    def _dtype(self, buffer: str) -> DType:
        accesses = [*self.region.accesses.values(), *(s.access for s in self.region.stores)]
        return next(a.dtype for a in accesses if a.buffer == buffer)

    def fits(self, region: Region, values: Mapping[str, int]) -> bool:
        """Whether it is the data of that region at those dims."""
        return region.key == self.region.key and values == self.values

    @property
    def size(self) -> int:
        """Bytes of the region's buffers."""
        return sum(a.nbytes for a in self.given.values())

    def layout(self, graph: KernelGraph, number: int = 1) -> Layout:
        """Places for `number` copies of the region's buffers, then for the graph's temporaries."""
        place, copies = 0, []
        for _ in range(number):
            offsets = {}
            for name, array in self.given.items():
                offsets[name] = place
                place += _aligned(array.nbytes)
            copies.append(offsets)
        first, shared = place, {}
        for name, temporary in graph.temporaries.items():
            shared[name] = place
            count = math.prod(dim.value(e, self.values) for e in temporary.shape)
            place += _aligned(count * temporary.dtype.size)
        return Layout(tuple({**c, **shared} for c in copies), first, max(place, ALIGNMENT))

    def fill(self, memory: SharedMemory, layout: Layout) -> None:
        """Write the data: all of it into new memory, else what the last run changed; spoil the rest."""
        fresh = memory.generation != self.filled
        for offsets in layout.copies:
            for name, array in self.given.items():
                if fresh or name in self.wanted:
                    memory.view(offsets[name], array)[...] = array
        memory.bytes[layout.temporaries : layout.size] = 0xFF
        self.filled = memory.generation

    def compare(self, memory: SharedMemory, layout: Layout, tf32: bool = False) -> str:
        """What is wrong with the results in memory; empty when nothing is.

        With `tf32` products of f32 may have been made of rounded factors.  Those of a region that rounds
        some itself may have been: a factor may be rounded before or after it is scaled, and each device
        has its own way to leave digits out.
        """
        tf32 = tf32 or rounds_to_tf32(self.region)
        for store in self.region.stores:
            name = store.access.buffer
            got = memory.view(layout.copies[0][name], self.given[name])
            want, dtype, rounded = self.wanted[name], store.access.dtype, depends_on_rounding(store.term)
            found = difference(got, want, dtype)
            if found.wrong(dtype, self.limit, rounded):
                drift = difference(self._narrowed(tf32)[name], want, dtype).drift
                wrong = found.wrong(dtype, max(self.limit, drift), rounded)
                if wrong:
                    return f"{name}: {wrong}"
        return ""

    def _narrowed(self, tf32: bool) -> dict[str, Array]:
        """The results as the region's own dtypes, and with `tf32` its factors in TF32, give them."""
        if tf32 not in self.narrow:
            found = {k: v.copy() if k in self.wanted else v for k, v in self.given.items()}
            evaluate(self.region, found, self.values, wide=False, factors=cut_to_tf32 if tf32 else None)
            self.narrow[tf32] = found
        return self.narrow[tf32]


def _aligned(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
