"""Turns drafts into plans: kernels, siblings merged or launched together, in an order that runs, with
their modelled time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from lumi import dim
from lumi.dtype import F32
from lumi.egraph.encode import may_be_empty
from lumi.llir.coalesce import Coalesced
from lumi.llir.kernel import Kernel, Schedule, are_apart, buffers, written
from lumi.memo import Memo
from lumi.search.alias import Aliases
from lumi.search.dag import AXES, Dag, Read, Stored
from lumi.search.draft import Draft, InfeasibleError
from lumi.search.formed import formed
from lumi.search.former import Former
from lumi.search.groups import Groups
from lumi.search.launch import Assembly, Launch, Outs, Piece
from lumi.search.layout import Layout
from lumi.search.order import MemoryOrder
from lumi.search.room import Room
from lumi.search.settings import Settings
from lumi.search.space import Genome, Space

CLIFF = 1.1
"""How much faster smaller tiles must make a kernel that is not tuned yet to replace the default ones."""

Price = Callable[[Kernel], tuple[float, Schedule]]
"""Modelled seconds of a kernel and the schedule they are for."""

Fits = Callable[[Kernel, Schedule], bool]
"""Whether a cell can hold the tiles of a kernel under a schedule."""

Together = Callable[[tuple[Kernel, ...]], "tuple[float, Schedule] | None"]
"""The same of kernels in one launch; None where no schedule can run them so."""


def _seconds(piece: Piece) -> float:
    return piece.seconds


def _reads(launch: Launch) -> frozenset[str]:
    """The buffers that kernels of a launch read and none of them writes."""
    touched = (b for k in launch.kernels for b in buffers(k))
    return frozenset(touched).difference(*map(written, launch.kernels))


class Planner:
    """Everything that plans of one region share: values, kernels, prices.

    `joins` is what is known of two kernels, untuned both, by their ids: the one that is faster than they are,
    if there is one, among launches or `apart`.  All of them are kept as long as the planner.

    Without `together` every kernel has a launch of its own, without `fits` tiles are not narrowed.  `empty`
    are the axes that may have no points.
    """

    def __init__(
        self,
        space: Space,
        settings: Settings,
        price: Price,
        together: Together | None = None,
        fits: Fits | None = None,
    ) -> None:
        self.space, self.settings = space, settings
        self.price, self.price_together, self._fit = price, together, fits
        self.dag = Dag()
        self.aliases = Aliases(space.region, self.dag)
        self.refusals: Counter[str] = Counter()
        self.evaluations = 0
        axes = space.region.axes
        hint: Mapping[str, int] = {n: max(h[n] for h in settings.hints) for n in settings.hints[0]}
        self.sizes = {a.name: max(dim.value(a.extent, hint), 1) for a in axes}
        self.empty = sum(a.bit for a in axes if may_be_empty(a.extent, settings.ranges))
        self.orders = MemoryOrder(space, self.dag, self.sizes)
        self.room = Room(space, self.dag, settings)
        self._layouts: dict[Outs, Layout] = {}
        self._wholes: dict[tuple[Outs, int], Coalesced | None] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self._growing: dict[int, bool] = {}
        self._pieces: dict[Outs, Piece | None] = {}
        self._tiled: dict[tuple[Outs, tuple[tuple[str, int], ...]], Piece | None] = {}
        self._launches: dict[frozenset[int], Launch | None] = {}
        self.joins: dict[tuple[int, int, bool], Piece | None] = {}
        self.reads = Memo(_reads)

    def draft(self, genome: Genome) -> Draft:
        """The values of a genome.  Raises `InfeasibleError`."""
        return Draft(self.space, self.dag, self.aliases, self.orders, genome).build()

    def assemble(self, draft: Draft) -> Assembly:
        """The plan of a draft.  Raises `InfeasibleError` when there is none."""
        self.evaluations += 1
        try:
            stored = self._live(draft)
            ways = (False,) if self.price_together is None else (False, True)
            found = [self._gathered(draft, stored, apart) for apart in ways]
        except InfeasibleError as error:
            self.refusals[str(error)] += 1
            raise
        return min(found, key=lambda a: a.seconds)

    def _gathered(self, draft: Draft, stored: Mapping[int, frozenset[int]], apart: bool) -> Assembly:
        """The plan whose values are gathered in one of two ways: neither is always the better one."""
        groups = Groups(self, draft, stored, apart)
        groups.merge()
        if self.price_together is not None:
            groups.gather()
        launches = groups.ordered()
        charge = self.room.charge(draft, stored, launches)
        return Assembly(draft, launches, charge * sum(x.seconds for x in launches))

    def _live(self, draft: Draft) -> dict[int, frozenset[int]]:
        """The stored classes that the outputs need, producers first, with what each waits for."""
        found: dict[int, frozenset[int]] = {}
        reads, bodies, earlier = self.dag.reads, draft.bodies, self.space.earlier
        open_: set[int] = set()

        def visit(number: int) -> None:
            if number in open_:
                raise InfeasibleError("kernels wait for each other")
            open_.add(number)
            needed = reads[bodies[number]] | earlier.get(number, frozenset())
            for source in sorted(needed):
                if source not in found:
                    visit(source)
            open_.discard(number)
            found[number] = needed

        for root in self.space.outputs:
            if root not in found:
                visit(root)
        for number in found:
            self._check(number, bodies[number])
        return found

    def _check(self, number: int, value: int) -> None:
        if self.dag.free[value] & ~AXES:
            raise InfeasibleError("a running value would be stored")
        if number not in self.space.outputs and not self.room.fits(number, value):
            raise InfeasibleError("a temporary does not fit memory")

    def is_worth(self, draft: Draft, number: int) -> bool:
        """Whether to try and store a class: not if it is a mere step of what is computed point by point.

        Such a step, as in the unpacking of a weight, is as large as all that it is computed from, so that
        to store it saves no traffic, and what it is a step to is reduced in its place.
        """
        return not self._grows(number, draft.bodies[number]) or draft.is_factor(number)

    def _grows(self, number: int, body: int) -> bool:
        """Whether a class is computed point by point, and no smaller than what is read for it."""
        known = self._growing.get(body)
        if known is None:
            values, free, dtypes = self.dag.values, self.dag.free, self.dag.dtype
            own = self._elements(free[body]) * self.space.storage(number).size
            read = [v for v in self.dag.walk([body]) if isinstance(values[v], Read | Stored)]
            size = sum(self._elements(free[v]) * (dtypes[v] or F32).size for v in read)
            known = self._growing[body] = not self.dag.accumulators[body] and bool(read) and own >= size
        return known

    def _elements(self, axes: int) -> int:
        return math.prod(self.sizes[a] for a in self.space.names(axes & AXES))

    def piece(self, outs: Outs, tiles: Mapping[str, int] | None = None) -> Piece:
        """The kernel for some stored classes.  Raises `InfeasibleError` when they do not fit one."""
        piece = self._pieced(outs, tiles) if tiles else self.untuned(outs)
        if piece is None:
            raise InfeasibleError("values do not fit one kernel")
        return piece

    def untuned(self, outs: Outs) -> Piece | None:
        """The kernel for some stored classes with tiles that are not tuned yet; None where there is none."""
        if outs not in self._pieces:
            self._pieces[outs] = self._form(outs, {})
        return self._pieces[outs]

    def together(self, pieces: Sequence[Piece]) -> Launch | None:
        """One launch of pieces with tiles that are not tuned yet; None where they cannot share one."""
        key = frozenset(map(id, pieces))
        if key not in self._launches:
            self._launches[key] = self._launched(tuple(sorted(pieces, key=lambda p: p.outs)))
        return self._launches[key]

    def _launched(self, pieces: tuple[Piece, ...]) -> Launch | None:
        kernels = tuple(p.kernel for p in pieces)
        if self.price_together is None or not all(are_apart(a, b) for a, b in combinations(kernels, 2)):
            return None
        found = self.price_together(kernels)
        return None if found is None else Launch(pieces, found[1], found[0])

    def _pieced(self, outs: Outs, tiles: Mapping[str, int]) -> Piece | None:
        key = (outs, tuple(sorted(tiles.items())))
        if key not in self._tiled:
            self._tiled[key] = self._form(outs, tiles)
        return self._tiled[key]

    def _form(self, outs: Outs, given: Mapping[str, int]) -> Piece | None:
        layout = self._layouts.get(outs)
        if layout is None:
            layout = self._layouts[outs] = Layout(self.dag, self.space, outs)
        resident = layout.resident(self.sizes, layout.tiles(self.sizes, self._parted(given)))
        whole = self._whole(outs, layout, resident)
        if whole is None:
            return None
        joined = {a: name for name, members in whole.members.items() for a in members}
        tiles = layout.tiles(self.sizes, given, joined, self.settings.cells)
        looped = [a for a in whole.kernel.axes if a not in whole.kernel.resident]
        kernel = replace(whole.kernel, tiles={a: tiles[a] for a in looped})
        seconds, schedule = self.price(kernel)
        if not math.isfinite(seconds):
            return None
        piece = Piece(outs, kernel, schedule, seconds)
        return piece if given else self._narrowed(piece)

    def _narrowed(self, piece: Piece) -> Piece:
        """The kernel with tiles that a cell can hold, if that is what slows it: then halving all helps."""
        choices: list[tuple[str, ...]] = [tuple(piece.kernel.axes)]
        while self._fit is not None and not self._fit(piece.kernel, piece.schedule):
            found = min(self._halved(piece, choices), key=_seconds, default=piece)
            if found.seconds * CLIFF >= piece.seconds:
                break
            piece, choices = found, [(axis,) for axis in found.kernel.axes]
        return piece

    def _halved(self, piece: Piece, choices: Iterable[tuple[str, ...]]) -> Iterator[Piece]:
        """The kernel with half the tile of some axes; half an axis held whole makes it looped over."""
        tiles = {a: piece.kernel.tiles.get(a, self.sizes[a]) for a in piece.kernel.axes}
        for axes in choices:
            halves = {**tiles, **{a: -(-tiles[a] // 2) for a in axes}}
            other = self._pieced(piece.outs, halves) if halves != tiles else None
            if other is not None:
                yield other

    def _parted(self, given: Mapping[str, int]) -> dict[str, int]:
        """Tiles of joined axes as tiles of the axes they consist of, the innermost filled first."""
        found: dict[str, int] = {}
        for name, tile in given.items():
            for axis in reversed(self._members.get(name, (name,))):
                found[axis] = min(tile, self.sizes[axis])
                tile = max(1, tile // self.sizes[axis])
        return found

    def _whole(self, outs: Outs, layout: Layout, resident: int) -> Coalesced | None:
        """The kernel without tiles, the same for all that leave the same axes resident; None without one."""
        key = (outs, resident)
        if key not in self._wholes:
            try:
                self._wholes[key] = self._coalesced(outs, layout, resident)
            except InfeasibleError as error:
                self.refusals[str(error)] += 1
                self._wholes[key] = None
        return self._wholes[key]

    def _coalesced(self, outs: Outs, layout: Layout, resident: int) -> Coalesced:
        names, axes = self.space.names, self.space.region.axes
        for number, value in outs:
            if layout.grid & self.empty & ~(self.dag.free[value] | self.space.spanned(number)):
                raise InfeasibleError("a result would be missing where another has no points")
        kernel = Kernel(
            axes={n: axes[n].extent for n in names(layout.used)},
            grid=names(layout.grid),
            resident=names(resident),
            tiles={},
            body=Former(self.space, self.dag, self.orders, outs, layout, resident).body(),
        )
        found = formed(kernel)
        for name, members in found.members.items():
            self._members[name] = members
            self.sizes[name] = math.prod(self.sizes[a] for a in members)
        return found
