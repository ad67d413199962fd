"""How the points of a nest are dealt out to the threads of a block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lumi.backends.cuda.scope import Writer
from lumi.backends.cuda.streams import Streams, widest
from lumi.llir import spell
from lumi.llir.kernel import Load, Store
from lumi.llir.program import Root

WARP = 32


@dataclass(frozen=True, slots=True)
class Dealing:
    """How points are dealt out: `team` threads share a point; `axis` has `copies` points a thread.

    With `adjacent` these are neighbours that are moved together.  Threads that share a point lie side by side
    unless they are `apart`: then neighbouring threads have neighbouring points.
    """

    team: int = 1
    axis: str = ""
    copies: int = 1
    adjacent: bool = False
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Dealer:
    """Chooses by where neighbours in memory lie: along the points, or along what is reduced at each."""

    w: Writer
    streams: Streams

    def dealing(self, order: Sequence[str], roots: tuple[Root, ...]) -> Dealing:
        """The dealing of the points along axes in that order, at which roots are computed."""
        operands = [r.value if isinstance(r, Store) else r.var for r in roots]
        folds = [f for f in self.streams.folds(operands) if set(f.axes) & set(order)]
        loads = list(self.streams.reads(operands))
        last = order[-1]
        if folds:
            inner = [self.streams.lane_axis(f) for f in folds]
            along = max(self.streams.score(loads, a) for a in inner)
            team = max(self._team(a, loads) for a in inner)
            if along >= self.streams.score(loads, last):
                return self._rows(order, loads, team)
            idle = self.w.blocking.threads // math.prod(self._length(a) for a in order)
            if min(idle, team) > 1:
                found = self._apart(order, roots, loads, min(self._length(a) for a in inner))
                return found or Dealing(min(1 << (idle.bit_length() - 1), team))
        return self._wide(order, roots, loads)

    def _apart(
        self, order: Sequence[str], roots: tuple[Root, ...], loads: list[Load], length: int
    ) -> Dealing | None:
        """Threads apart share reductions over `length` positions, where that brings several to each point."""
        if not all(isinstance(r, Store) for r in roots):
            return None
        count, team = self._widest(order[-1], roots, loads), 1
        points = math.prod(self._length(a) for a in order) // count
        while 2 * team * points <= self.w.blocking.threads and 2 * team <= length:
            team *= 2
        return Dealing(team, order[-1], count, count > 1, apart=True) if team > 1 else None

    def _team(self, axis: str, loads: list[Load]) -> int:
        """How many threads share a reduction along `axis`: no more than have something to do."""
        span = self.w.ranges[axis]
        width = self.streams.width(loads, axis, span.multiple)
        length = span.bound if span.bound is not None else self.streams.length(axis)
        turns = max(-(-length // width), 1)
        return min(WARP, 1 << (turns - 1).bit_length())

    def _rows(self, order: Sequence[str], loads: list[Load], team: int) -> Dealing:
        """Several points a team along the last axis that some operand lacks."""
        shared = [a for a in order if self._length(a) > 1 and any(a not in x.axes for x in loads)]
        if not shared:
            return Dealing(team)
        points = math.prod(self._length(a) for a in order)
        fair = max(points * team // self.w.blocking.threads, 1)
        return Dealing(team, shared[-1], min(self.w.blocking.rows, self._length(shared[-1]), fair))

    def _wide(self, order: Sequence[str], roots: tuple[Root, ...], loads: list[Load]) -> Dealing:
        """Neighbours along the last axis as far as they can be moved together and all threads have some."""
        axis = order[-1]
        count = self._widest(axis, roots, loads)
        points = math.prod(self._length(a) for a in order)
        while count > 1 and points < count * self.w.blocking.threads:
            count //= 2
        return Dealing(1, axis, count, adjacent=True) if count > 1 else Dealing()

    def _widest(self, axis: str, roots: tuple[Root, ...], loads: list[Load]) -> int:
        """How many neighbours along an axis can be moved together."""
        multiple = self.w.ranges[axis].multiple
        accesses = [x.access for x in loads] + [r.access for r in roots if isinstance(r, Store)]
        lines = [a for a in accesses if spell.step(a, axis) == 1]
        return max((widest(a, axis, multiple) for a in lines), default=1)

    def _length(self, axis: str) -> int:
        span = self.w.ranges[axis]
        return span.bound if span.bound is not None else self.streams.length(axis)
