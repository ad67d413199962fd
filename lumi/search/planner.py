"""Turns drafts into plans: kernels, siblings merged, in an order that runs, with their modelled time."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lumi import dim
from lumi.llir.kernel import Kernel, Schedule
from lumi.search.alias import Aliases
from lumi.search.dag import AXES, Dag
from lumi.search.draft import Draft, InfeasibleError
from lumi.search.former import Former
from lumi.search.settings import Settings
from lumi.search.space import Genome, Space

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
        self.sizes = {a.name: dim.value(a.extent, hint) for a in axes}
        self.most = {a.name: dim.value(a.extent, largest) for a in axes}
        self._pieces: dict[tuple[Outs, tuple[tuple[str, int], ...]], Piece | None] = {}

    def draft(self, genome: Genome) -> Draft:
        """The values of a genome.  Raises `InfeasibleError`."""
        return Draft(self.space, self.dag, self.aliases, genome).build()

    def assemble(self, draft: Draft) -> Assembly:
        """The plan of a draft.  Raises `InfeasibleError` when there is none."""
        self.evaluations += 1
        try:
            stored = self._live(draft)
            groups = _Groups(self, draft, stored)
            groups.merge()
            pieces = groups.ordered()
        except InfeasibleError as error:
            self.refusals[str(error)] += 1
            raise
        return Assembly(draft, pieces, sum(p.seconds for p in pieces))

    def _live(self, draft: Draft) -> dict[int, frozenset[int]]:
        """The stored classes that the outputs need, producers first, with what each reads."""
        found: dict[int, frozenset[int]] = {}
        reads, bodies = self.dag.reads, draft.bodies
        open_: set[int] = set()

        def visit(number: int) -> None:
            if number in open_:
                raise InfeasibleError("kernels wait for each other")
            open_.add(number)
            for source in sorted(reads[bodies[number]]):
                if source not in found:
                    visit(source)
            open_.discard(number)
            found[number] = reads[bodies[number]]

        for root in self.space.outputs:
            if root not in found:
                visit(root)
        for number in found:
            self._check(number, bodies[number])
        return found

    def _check(self, number: int, value: int) -> None:
        free = self.dag.free[value]
        if free & ~AXES:
            raise InfeasibleError("a running value would be stored")
        if number not in self.space.outputs:
            elements = math.prod(self.most[a] for a in self.space.region.axes.names(free))
            if elements * self.space.storage(number).size > self.settings.memory:
                raise InfeasibleError("a temporary does not fit memory")

    def piece(self, outs: Outs, tiles: Mapping[str, int] | None = None) -> Piece:
        """The kernel for some stored classes.  Raises `InfeasibleError` when they do not fit one."""
        key = (outs, tuple(sorted(tiles.items())) if tiles else ())
        if key not in self._pieces:
            self._pieces[key] = self._form(outs, tiles or {})
        piece = self._pieces[key]
        if piece is None:
            raise InfeasibleError("values do not fit one kernel")
        return piece

    def _form(self, outs: Outs, tiles: Mapping[str, int]) -> Piece | None:
        try:
            kernel = Former(self.space, self.dag, outs, self.sizes, tiles).kernel()
        except InfeasibleError as error:
            self.refusals[str(error)] += 1
            return None
        seconds, schedule = self.price(kernel)
        return Piece(outs, kernel, schedule, seconds) if math.isfinite(seconds) else None


class _Groups:
    """Stored classes gathered into kernels."""

    def __init__(self, planner: Planner, draft: Draft, stored: Mapping[int, frozenset[int]]) -> None:
        self.planner = planner
        free, bodies = planner.dag.free, draft.bodies
        self.bit = {c: 1 << k for k, c in enumerate(stored)}
        self.needs: dict[int, int] = {}
        below: dict[int, int] = {}
        for number, sources in stored.items():
            direct = transitive = 0
            for source in sources:
                direct |= self.bit[source]
                transitive |= self.bit[source] | below[source]
            self.needs[number], below[number] = direct, transitive
        self.pieces = [planner.piece(((c, bodies[c]),)) for c in stored]
        self.members = [self.bit[c] for c in stored]
        self.axes = [free[bodies[c]] for c in stored]
        self.reads = [self.needs[c] for c in stored]
        self.below = [below[c] for c in stored]

    def merge(self) -> None:
        """Join kernels that do not depend on each other while that saves time.

        Their axes must be nested, so that one grid serves both.
        """
        merged = True
        while merged:
            merged = False
            for i, k in itertools.combinations(range(len(self.pieces)), 2):
                if self._try(i, k):
                    merged = True
                    break

    def _try(self, i: int, k: int) -> bool:
        axes = self.axes[i] | self.axes[k]
        if axes not in (self.axes[i], self.axes[k]):
            return False
        if self.below[i] & self.members[k] or self.below[k] & self.members[i] or self._linked(i, k):
            return False
        outs = tuple(sorted(self.pieces[i].outs + self.pieces[k].outs))
        try:
            joined = self.planner.piece(outs)
        except InfeasibleError:
            return False
        if joined.seconds >= self.pieces[i].seconds + self.pieces[k].seconds:
            return False
        self.pieces[i], self.axes[i] = joined, axes
        for masks in (self.members, self.reads, self.below):
            masks[i] |= masks[k]
            del masks[k]
        del self.pieces[k], self.axes[k]
        return True

    def _linked(self, i: int, k: int) -> bool:
        """Whether one kernel needs the other through further kernels that were merged."""
        return self._reaches(i, k) or self._reaches(k, i)

    def _reaches(self, start: int, goal: int) -> bool:
        seen, reached = {start}, self.reads[start]
        grew = True
        while grew:
            if reached & self.members[goal]:
                return True
            grew = False
            for k, members in enumerate(self.members):
                if k not in seen and reached & members:
                    seen.add(k)
                    reached |= self.reads[k]
                    grew = True
        return False

    def ordered(self) -> tuple[Piece, ...]:
        """The kernels, producers first."""
        done, left, order = 0, list(range(len(self.pieces))), list[Piece]()
        while left:
            ready = next((k for k in left if not self.reads[k] & ~self.members[k] & ~done), None)
            if ready is None:
                raise InfeasibleError("kernels wait for each other")
            order.append(self.pieces[ready])
            done |= self.members[ready]
            left.remove(ready)
        return tuple(order)
