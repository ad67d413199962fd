"""How values that kernels leave for others lie in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lumi.llir.order import completed, laid
from lumi.llir.spell import step
from lumi.search.dag import Dag, Read, Stored
from lumi.search.space import Space


class MemoryOrder:
    """The axes of stored values, outermost first: as they lie in the largest buffer each is made of.

    What is unpacked or converted is then read and written in runs; a buffer of which a value takes no runs
    comes after those of which it does.  An axis that the largest buffer does not move with follows the one
    before it in the next largest that does: two nibbles of a byte lie apart as their scales do, so that the
    weights of a row lie in the order of the row.
    """

    def __init__(self, space: Space, dag: Dag, sizes: Mapping[str, int]) -> None:
        self.space, self.dag, self.sizes = space, dag, sizes
        self._known: dict[int, tuple[str, ...]] = {}

    def of(self, value: int) -> tuple[str, ...]:
        """The axes of a value."""
        known = self._known.get(value)
        if known is None:
            axes, found = self.space.names(self.dag.free[value]), tuple[str, ...]()
            read = [o for v in self.dag.walk([value]) if (o := self._read(v, axes)) is not None]
            for _, order in sorted(read, key=lambda r: (r[0], self._size(r[1])), reverse=True):
                if not found or not set(order).isdisjoint(found):
                    found = completed(found, order)
            known = self._known[value] = completed(found, axes)
        return known

    def _read(self, value: int, axes: tuple[str, ...]) -> tuple[bool, tuple[str, ...]] | None:
        """Whether a value that is read lies in runs along the last of some axes, and the order of these."""
        match self.dag.values[value]:
            case Read(name, None):
                access = self.space.region.accesses[name]
                order = laid(access, axes)
                return None if order is None else (bool(order) and step(access, order[-1]) == 1, order)
            case Stored(_, names):
                return bool(names) and names[-1] in axes, tuple(a for a in names if a in axes)
            case _:
                return None

    def _size(self, axes: tuple[str, ...]) -> int:
        return math.prod(self.sizes[a] for a in axes)
