"""How values that kernels leave for others lie in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lumi.llir.order import completed, laid
from lumi.search.dag import Dag, Read, Stored
from lumi.search.space import Space


class MemoryOrder:
    """The axes of stored values, outermost first: as they lie in the largest buffer each is made of.

    What is unpacked or converted is then read and written in runs.
    """

    def __init__(self, space: Space, dag: Dag, sizes: Mapping[str, int]) -> None:
        self.space, self.dag, self.sizes = space, dag, sizes
        self._known: dict[int, tuple[str, ...]] = {}

    def of(self, value: int) -> tuple[str, ...]:
        """The axes of a value."""
        known = self._known.get(value)
        if known is None:
            axes = self.space.names(self.dag.free[value])
            orders = [o for v in self.dag.walk([value]) if (o := self._read(v, axes)) is not None]
            largest = max(orders, key=self._size, default=())
            known = self._known[value] = completed(largest, axes)
        return known

    def _read(self, value: int, axes: tuple[str, ...]) -> tuple[str, ...] | None:
        match self.dag.values[value]:
            case Read(name, None):
                return laid(self.space.region.accesses[name], axes)
            case Stored(_, names):
                return tuple(a for a in names if a in axes)
            case _:
                return None

    def _size(self, axes: tuple[str, ...]) -> int:
        return math.prod(self.sizes[a] for a in axes)
