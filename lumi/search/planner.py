"""Turns drafts into plans: kernels, siblings merged, in an order that runs, with their modelled time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from lumi import dim
from lumi.llir.coalesce import Coalesced, coalesce
from lumi.llir.kernel import Kernel, Schedule
from lumi.llir.order import agree, as_stored, laid
from lumi.search.alias import Aliases
from lumi.search.dag import AXES, Dag
from lumi.search.draft import Draft, InfeasibleError
from lumi.search.former import Former
from lumi.search.layout import Layout
from lumi.search.order import MemoryOrder
from lumi.search.settings import Settings
from lumi.search.space import Genome, Space

CLIFF = 1.1
"""How much faster smaller tiles must make a kernel that is not tuned yet to replace the default ones."""

Outs = tuple[tuple[int, int], ...]
"""The classes a kernel stores with their values, sorted."""

Price = Callable[[Kernel], tuple[float, Schedule]]
"""Modelled seconds of a kernel and the schedule they are for."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A kernel of a plan under comparison."""

    outs: Outs
    kernel: Kernel
    schedule: Schedule
    seconds: float


def _seconds(piece: Piece) -> float:
    return piece.seconds


@dataclass(frozen=True, slots=True)
class Assembly:
    """A whole plan: its pieces, producers first, and their modelled seconds together."""

    draft: Draft
    pieces: tuple[Piece, ...]
    seconds: float


class Planner:
    """Everything that plans of one region share: values, kernels, prices."""

    def __init__(self, space: Space, settings: Settings, price: Price) -> None:
        self.space, self.settings, self.price = space, settings, price
        self.dag = Dag()
        self.aliases = Aliases(space.region, self.dag)
        self.refusals: Counter[str] = Counter()
        self.evaluations = 0
        axes, largest = space.region.axes, settings.largest
        hint: Mapping[str, int] = {n: max(h[n] for h in settings.hints) for n in settings.hints[0]}
        self.sizes = {a.name: max(dim.value(a.extent, hint), 1) for a in axes}
        self.most = {a.name: dim.value(a.extent, largest) for a in axes}
        self.orders = MemoryOrder(space, self.dag, self.sizes)
        self.room = min(settings.memory, settings.growth * self._largest_buffer(largest))
        self._layouts: dict[Outs, Layout] = {}
        self._wholes: dict[tuple[Outs, int], Coalesced | None] = {}
        self._members: dict[str, tuple[str, ...]] = {}
        self._pieces: dict[tuple[Outs, tuple[tuple[str, int], ...]], Piece | None] = {}

    def _largest_buffer(self, largest: Mapping[str, int]) -> int:
        """Bytes of the largest buffer that the region reads or must write."""
        region = self.space.region
        touched = [*region.accesses.values(), *(s.access for s in region.stores)]
        return max(dim.value(dim.product(a.shape), largest) * a.dtype.size for a in touched)

    def draft(self, genome: Genome) -> Draft:
        """The values of a genome.  Raises `InfeasibleError`."""
        return Draft(self.space, self.dag, self.aliases, self.orders, genome).build()

    def assemble(self, draft: Draft) -> Assembly:
        """The plan of a draft.  Raises `InfeasibleError` when there is none."""
        self.evaluations += 1
        try:
            stored = self._live(draft)
            groups = _Groups(self, draft, stored)
            groups.merge()
        except InfeasibleError as error:
            self.refusals[str(error)] += 1
            raise
        pieces = groups.ordered()
        return Assembly(draft, pieces, sum(p.seconds for p in pieces))

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
        if number not in self.space.outputs and not self.fits(number, value):
            raise InfeasibleError("a temporary does not fit memory")

    def fits(self, number: int, value: int) -> bool:
        """Whether a class may be stored: it fits the room for a temporary at the largest dims."""
        elements = math.prod(self.most[a] for a in self.space.names(self.dag.free[value]))
        return elements * self.space.storage(number).size <= self.room

    def piece(self, outs: Outs, tiles: Mapping[str, int] | None = None) -> Piece:
        """The kernel for some stored classes.  Raises `InfeasibleError` when they do not fit one."""
        piece = self._pieced(outs, tiles or {})
        if piece is None:
            raise InfeasibleError("values do not fit one kernel")
        return piece

    def _pieced(self, outs: Outs, tiles: Mapping[str, int]) -> Piece | None:
        key = (outs, tuple(sorted(tiles.items())))
        if key not in self._pieces:
            self._pieces[key] = self._form(outs, tiles)
        return self._pieces[key]

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
        return self._narrowed(piece) if self.settings.cells > 1 and not given else piece

    def _narrowed(self, piece: Piece) -> Piece:
        """The kernel with tiles that a cell can hold, if that is what slows it: then halving all helps."""
        found = [*self._halved(piece, [tuple(piece.kernel.axes)])]
        while found and min(found, key=_seconds).seconds * CLIFF < piece.seconds:
            piece = min(found, key=_seconds)
            found = [*self._halved(piece, [(axis,) for axis in piece.kernel.axes])]
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
        kernel = Kernel(
            axes={n: axes[n].extent for n in names(layout.used)},
            grid=names(layout.grid),
            resident=names(resident),
            tiles={},
            body=Former(self.space, self.dag, self.orders, outs, layout, resident).body(),
        )
        found = coalesce(as_stored(kernel))
        for name, members in found.members.items():
            self._members[name] = members
            self.sizes[name] = math.prod(self.sizes[a] for a in members)
        return found


@dataclass(slots=True)
class _Group:
    """Stored classes that one kernel computes, as bits.

    `axes` are those of its widest class, `below` every class that it waits for, directly or not.
    """

    piece: Piece
    members: int
    axes: int
    below: int


class _Groups:
    """Stored classes gathered into kernels."""

    def __init__(self, planner: Planner, draft: Draft, stored: Mapping[int, frozenset[int]]) -> None:
        self.planner = planner
        self.groups: list[_Group] = []
        made: dict[int, _Group] = {}
        for place, (number, sources) in enumerate(stored.items()):
            value, below = draft.bodies[number], 0
            for source in sources:
                below |= made[source].members | made[source].below
            axes = planner.dag.free[value] | planner.space.spanned(number)
            group = _Group(planner.piece(((number, value),)), 1 << place, axes, below)
            made[number] = group
            self.groups.append(group)

    def merge(self) -> None:
        """Join kernels that do not wait for each other while that saves time.

        Their axes must be nested, so that one grid serves both.
        """
        fresh = self.groups
        while fresh:
            before, fresh = fresh, []
            for group in before:
                if any(group is g for g in self.groups) and self._absorb(group):
                    fresh.append(group)

    def _absorb(self, group: _Group) -> bool:
        """Join every group to this one that gains by it."""
        grew, axes = False, group.axes
        for other in tuple(self.groups):
            both = axes | other.axes
            if both not in (axes, other.axes) or other is group:
                continue
            if group.below & other.members or other.below & group.members:
                continue
            joined = self._joined(group.piece, other.piece)
            if joined is not None:
                self._join(group, other, joined)
                grew, axes = True, both
        return grew

    def _joined(self, one: Piece, other: Piece) -> Piece | None:
        """The kernel that computes the values of both, if it is faster than the two.

        Results that lie in different orders are not written by one kernel: it could run along one only.
        """
        if not all(agree(a, b) for a in self._orders(one) for b in self._orders(other)):
            return None
        try:
            joined = self.planner.piece(tuple(sorted(one.outs + other.outs)))
        except InfeasibleError:
            return None
        return joined if joined.seconds < one.seconds + other.seconds else None

    def _orders(self, piece: Piece) -> Iterator[tuple[str, ...]]:
        """The axes of each result of a kernel, as they lie in memory."""
        space, orders = self.planner.space, self.planner.orders
        for number, value in piece.outs:
            axes = orders.of(value)
            for access in space.outputs.get(number, ()):
                axes = laid(access, axes) or axes
            yield axes

    def _join(self, group: _Group, other: _Group, joined: Piece) -> None:
        """Make `other` part of `group`; whoever waited for either now waits for what both need."""
        self.groups = [g for g in self.groups if g is not other]
        group.piece, group.axes = joined, group.axes | other.axes
        group.members |= other.members
        group.below |= other.below
        for waiting in self.groups:
            if waiting.below & group.members:
                waiting.below |= group.members | group.below

    def ordered(self) -> tuple[Piece, ...]:
        """The kernels, producers first."""
        done, left, order = 0, self.groups, list[Piece]()
        while left:
            ready = next(g for g in left if not g.below & ~done)
            order.append(ready.piece)
            done |= ready.members
            left = [g for g in left if g is not ready]
        return tuple(order)
