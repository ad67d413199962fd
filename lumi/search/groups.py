"""Gathers the stored classes of a draft into kernels, and kernels into launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lumi.llir.order import agree, laid
from lumi.search.draft import Draft
from lumi.search.launch import Launch, Piece, alone

if TYPE_CHECKING:
    from lumi.search.planner import Planner


@dataclass(slots=True)
class Group:
    """Stored classes that one launch computes, as bits: by one kernel, until kernels are gathered.

    `axes` are those of its widest class, `below` every class that it waits for, directly or not.  One that
    is `gone` has become part of another.
    """

    launch: Launch
    members: int
    axes: int
    below: int
    gone: bool = False


class Groups:
    """Stored classes gathered into kernels."""

    def __init__(
        self, planner: Planner, draft: Draft, stored: Mapping[int, frozenset[int]], apart: bool
    ) -> None:
        """With `apart`, what can share a launch becomes one kernel only where that is faster still."""
        self.planner, self.apart = planner, apart
        self.groups: list[Group] = []
        made: dict[int, Group] = {}
        for place, (number, sources) in enumerate(stored.items()):
            value, below = draft.bodies[number], 0
            for source in sources:
                below |= made[source].members | made[source].below
            axes = planner.dag.free[value] | planner.space.spanned(number)
            group = Group(alone(planner.piece(((number, value),))), 1 << place, axes, below)
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
                if not group.gone and self._absorb(group):
                    fresh.append(group)

    def _absorb(self, group: Group) -> bool:
        """Join every group to this one that gains by it."""
        grew, axes = False, group.axes
        for other in tuple(self.groups):
            both = axes | other.axes
            if both not in (axes, other.axes) or not _are_free(group, other):
                continue
            joined = self._joined(*group.launch.pieces, *other.launch.pieces)
            if joined is not None:
                self._join(group, other, alone(joined))
                grew, axes = True, both
        return grew

    def gather(self) -> None:
        """Let one launch run kernels that do not wait for each other while that saves time."""
        for group in tuple(self.groups):
            for other in () if group.gone else tuple(self.groups):
                if _are_free(group, other):
                    one, two = group.launch, other.launch
                    both = self.planner.together((*one.pieces, *two.pieces))
                    if both is not None and both.seconds < one.seconds + two.seconds:
                        self._join(group, other, both)
        for group in tuple(self.groups):
            if not group.gone:
                self._gather_readers(group)

    def _gather_readers(self, group: Group) -> None:
        """Let one launch run all kernels that read what a group reads, if only all of them gain by it.

        The cells of two may be too few for the device, where those of three are not.
        """
        found, launch, reads = [group], group.launch, self.planner.reads(group.launch)
        for other in self.groups:
            if not reads & self.planner.reads(other.launch) or not all(
                _are_free(one, other) for one in found
            ):
                continue
            more = self.planner.together((*launch.pieces, *other.launch.pieces))
            if more is not None:
                found, launch = [*found, other], more
        if len(found) > 1 and launch.seconds < sum(one.launch.seconds for one in found):
            for other in found[1:]:
                self._join(group, other, launch)

    def _joined(self, one: Piece, other: Piece) -> Piece | None:
        """The kernel that computes the values of both, if it is faster than the two."""
        known, key = self.planner.joins, (id(one), id(other), self.apart)
        if key not in known:
            known[key] = self._join_of(one, other)
        return known[key]

    def _join_of(self, one: Piece, other: Piece) -> Piece | None:
        """Results that lie in different orders are not written by one kernel: it could run along one only."""
        if not all(agree(a, b) for a in self._orders(one) for b in self._orders(other)):
            return None
        joined = self.planner.untuned(tuple(sorted(one.outs + other.outs)))
        if joined is None:
            return None
        both = self.planner.together((one, other)) if self.apart else None
        limit = one.seconds + other.seconds if both is None else both.seconds
        return joined if joined.seconds < limit else None

    def _orders(self, piece: Piece) -> Iterator[tuple[str, ...]]:
        """The axes of each result of a kernel, as they lie in memory."""
        space, orders = self.planner.space, self.planner.orders
        for number, value in piece.outs:
            axes = orders.of(value)
            for access in space.outputs.get(number, ()):
                axes = laid(access, axes) or axes
            yield axes

    def _join(self, group: Group, other: Group, joined: Launch) -> None:
        """Make `other` part of `group`; whoever waited for either now waits for what both need."""
        other.gone = True
        self.groups = [g for g in self.groups if g is not other]
        group.launch, group.axes = joined, group.axes | other.axes
        group.members |= other.members
        group.below |= other.below
        for waiting in self.groups:
            if waiting.below & group.members:
                waiting.below |= group.members | group.below

    def ordered(self) -> tuple[Launch, ...]:
        """The launches, producers first."""
        done, left, order = 0, self.groups, list[Launch]()
        while left:
            ready = next(g for g in left if not g.below & ~done)
            order.append(ready.launch)
            done |= ready.members
            left = [g for g in left if g is not ready]
        return tuple(order)


def _are_free(one: Group, other: Group) -> bool:
    """Whether two groups do not wait for each other."""
    return one is not other and not (one.below & other.members or other.below & one.members)
