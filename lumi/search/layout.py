"""Which axes of a kernel span the grid, are held whole, or are looped over, and in tiles of what size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lumi.search.dag import AXES, Dag, Final, Previous, Running, bits
from lumi.search.space import Space

LONGEST_RESIDENT = 128
"""Positions of a reduced axis that a tile holds whole unless the search says otherwise."""

DEFAULT_STEP = 64
"""Positions of a longer reduced axis in a tile."""

WIDEST_TILE = {0: 128, 1: 64}
"""Positions in a tile of the innermost grid axis and of the one outside it."""

SHORTEST_TILED = 16
"""Grid axes shorter than this get one position a cell."""


class Layout:
    """The axes of the kernel that computes `outs` (stored classes and their values), as masks.

    `accumulators` are all it needs, in the order they are met; `reduced` their axes, `chunks` the chunk
    axes of their domains.  Axes that a result is stored over span the grid, unless another value reduces
    them: those are `sequential`.
    """

    def __init__(self, dag: Dag, space: Space, outs: Sequence[tuple[int, int]]) -> None:
        self.dag, self.axes, self.names = dag, space.region.axes, space.names
        self.accumulators, self.stepwise = _accumulators(dag, [v for _, v in outs])
        domains = [dag.domains[dag.table[a].domain] for a in self.accumulators]
        self.reduced = self.chunks = free = 0
        for domain in domains:
            self.reduced |= domain.axes
            self.chunks |= domain.chunk
        for number, value in outs:
            free |= dag.free[value] & AXES | space.spanned(number)
        self.grid = free & ~self.reduced
        self.sequential = free & self.reduced
        self.used = free | self.reduced | self.chunks

    def tiles(
        self,
        sizes: Mapping[str, int],
        given: Mapping[str, int],
        joined: Mapping[str, str] | None = None,
        cells: int = 1,
    ) -> dict[str, int]:
        """A tile size for every axis: `given`, or one that suits its extent in `sizes`.

        Axes that are `joined` count as the one they are part of.  A chunk's range depends on its number:
        one chunk at a time.  Tiles of the grid that are not given shrink until it has `cells` cells.
        """
        whole = joined or {}

        def names(mask: int) -> tuple[str, ...]:
            return tuple(dict.fromkeys(whole.get(a, a) for a in self.names(mask)))

        tiles = dict.fromkeys(names(self.grid), 1)
        wide = [a for a in names(self.grid & ~self.chunks) if sizes[a] >= SHORTEST_TILED]
        for place, axis in enumerate(reversed(wide[-len(WIDEST_TILE) :])):
            tiles[axis] = min(WIDEST_TILE[place], sizes[axis])
        _spread(tiles, sizes, cells)
        for axis in names(self.reduced):
            tiles[axis] = sizes[axis] if sizes[axis] <= LONGEST_RESIDENT else DEFAULT_STEP
        tiles |= {a: t for a, t in given.items() if a in tiles}
        return {a: max(t, 1) for a, t in (tiles | dict.fromkeys(names(self.chunks), 1)).items()}

    def resident(self, sizes: Mapping[str, int], tiles: Mapping[str, int]) -> int:
        """Reduced axes held whole: of known extent, one tile long, and reduced in one step.

        A domain is wholly resident or not at all.
        """
        resident = 0
        for bit in bits(self.reduced & ~self.sequential):
            (name,) = self.names(bit)
            fits = not self.axes[name].is_symbolic and tiles[name] >= sizes[name]
            if fits and all(self._is_plain(a) for a in self.accumulators if self._over(a) & bit):
                resident |= bit
        while True:
            broken = 0
            for a in self.accumulators:
                if self._over(a) & ~resident:
                    broken |= self._over(a)
            if not resident & broken:
                return resident
            resident &= ~broken

    def _over(self, accumulator: int) -> int:
        return self.dag.domains[self.dag.table[accumulator].domain].axes

    def _is_plain(self, accumulator: int) -> bool:
        """Whether it is one reduction of a tile: nothing rescales it or sees it on the way."""
        made = self.dag.table[accumulator]
        domain = self.dag.domains[made.domain]
        bare = made.rho is None and made.tau is None and not domain.chunk and not domain.guards
        return bare and accumulator not in self.stepwise


def _spread(tiles: dict[str, int], sizes: Mapping[str, int], cells: int) -> None:
    """Halve the widest tiles until there are so many cells, or one a position."""
    while math.prod(-(-sizes[a] // t) for a, t in tiles.items()) < cells:
        widest = max(tiles, key=lambda a: tiles[a], default=None)
        if widest is None or tiles[widest] == 1:
            return
        tiles[widest] = -(-tiles[widest] // 2)


def _accumulators(dag: Dag, outs: Sequence[int]) -> tuple[tuple[int, ...], frozenset[int]]:
    """All accumulators under `outs` in order of first sight, and those seen during their loops."""
    found: dict[int, None] = {}
    stepwise: set[int] = set()
    if any(dag.accumulators[v] for v in outs):
        for number in dag.walk(outs):
            match dag.values[number]:
                case Final(accumulator):
                    found[accumulator] = None
                case Running(accumulator) | Previous(accumulator):
                    found[accumulator] = None
                    stepwise.add(accumulator)
                case _:
                    pass
    return tuple(found), frozenset(stepwise)
