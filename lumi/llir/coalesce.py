"""Fewer axes for a kernel: neighbours that every access sees as one run of memory become one axis.

Axes split where some reader of a value needs the parts (the blocks of a packed weight, the heads of a
projection).  A kernel that never tells the parts apart gets the whole axis back: long loops, wide tiles,
and products that a library knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from lumi import dim
from lumi.dim import Extent
from lumi.field.access import Access
from lumi.field.index import Index, hides, index
from lumi.field.term import In, Pos, Term, children
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Map, Position, Reduce, Statement, Store, accesses, walk

Axes = tuple[str, ...]

LONGEST = 1 << 30
"""Positions of a joined axis at most: with room to step over its end, 32 bits count them."""


@dataclass(frozen=True, slots=True)
class Coalesced:
    """The kernel, and the axes that each new one stands for, outermost first."""

    kernel: Kernel
    members: Mapping[str, Axes]


def coalesce(kernel: Kernel) -> Coalesced:
    """Join neighbouring axes of known extent until none can be joined; tiles of joined axes are dropped.

    The new axis is called by its parts, joined with `_`.
    """
    members: dict[str, Axes] = {}
    names = list(kernel.axes)
    place = 0
    while place + 1 < len(names):
        pair = _Pair(kernel, names[place], names[place + 1])
        if not pair.joinable():
            place += 1
            continue
        kernel = pair.joined()
        parts = (members.pop(n, (n,)) for n in (pair.outer, pair.inner))
        members[pair.name] = tuple(a for part in parts for a in part)
        names[place : place + 2] = [pair.name]
    return Coalesced(kernel, members)


class _Pair:
    """Two neighbouring axes of a kernel."""

    def __init__(self, kernel: Kernel, outer: str, inner: str) -> None:
        self.kernel, self.outer, self.inner = kernel, outer, inner
        self.name = f"{outer}_{inner}"
        self.size = kernel.axes[inner]

    def joinable(self) -> bool:
        """Whether no statement tells the two apart."""
        count = self.kernel.axes[self.outer]
        if not isinstance(self.size, int) or not isinstance(count, int) or count * self.size > LONGEST:
            return False
        together = all(self._together(axes) for axes in _axis_lists(self.kernel))
        told_apart = any(a in (self.outer, self.inner) for a in _single_axes(self.kernel.body))
        if not together or told_apart or self.name in self.kernel.axes:
            return False
        return all(self.access(a) is not None for a, _ in accesses(self.kernel))

    def joined(self) -> Kernel:
        """The kernel with one axis in the place of both."""
        extents: dict[str, Extent] = {}
        for axis, extent in self.kernel.axes.items():
            if axis == self.outer:
                extents[self.name] = extent * self.size
            elif axis != self.inner:
                extents[axis] = extent
        return replace(
            self.kernel,
            axes=extents,
            grid=self.axes(self.kernel.grid),
            resident=self.axes(self.kernel.resident),
            tiles={a: t for a, t in self.kernel.tiles.items() if a not in (self.outer, self.inner)},
            body=mapped(self.kernel.body, self.axes, self._certain),
        )

    def axes(self, axes: Axes) -> Axes:
        """A list of axes with the pair replaced."""
        return tuple(self.name if a == self.outer else a for a in axes if a != self.inner)

    def access(self, access: Access) -> Access | None:
        """The same elements under the new axis; None where the two are no run of memory."""
        places = [{k for k, i in enumerate(access.index) if a in i.axes()} for a in (self.outer, self.inner)]
        if places == [set(), set()]:
            return access
        if access.clamp or any(len(p) != 1 for p in places):
            return None
        (outer,), (inner,) = places
        if outer + 1 == inner:
            access = _one_dimension(access, outer)
        elif outer != inner:
            return None
        found = self._index(access.index[outer])
        if found is None:
            return None
        return replace(access, index=(*access.index[:outer], found, *access.index[outer + 1 :]))

    def _index(self, found: Index) -> Index | None:
        coefficients = {part: c for part, c in found.terms if isinstance(part, str)}
        step = coefficients.get(self.inner, 0)
        hidden = any(hides(part, (self.outer, self.inner)) for part, _ in found.terms)
        if hidden or not step or coefficients.get(self.outer, 0) != step * dim.value(self.size, {}):
            return None
        rest = [(part, c) for part, c in found.terms if part not in (self.outer, self.inner)]
        return index([*rest, (self.name, step)], found.offset)

    def _certain(self, access: Access) -> Access:
        found = self.access(access)
        assert found is not None, "a pair is joined after it was found joinable"
        return found

    def _together(self, axes: Axes) -> bool:
        if self.outer not in axes and self.inner not in axes:
            return True
        return (self.outer, self.inner) in pairwise(axes)


def _one_dimension(access: Access, place: int) -> Access:
    """The buffer seen with dimensions `place` and `place + 1` as one."""
    size = access.shape[place + 1]
    if not isinstance(size, int):
        return access
    joined = access.index[place].scale(size) + access.index[place + 1]
    return replace(
        access,
        index=(*access.index[:place], joined, *access.index[place + 2 :]),
        shape=(*access.shape[:place], access.shape[place] * size, *access.shape[place + 2 :]),
    )


def _axis_lists(kernel: Kernel) -> Iterator[Axes]:
    """Every list of axes that a tile, a reduction or a loop goes over."""
    yield kernel.grid
    yield kernel.resident
    for statement in walk(kernel.body):
        match statement:
            case Load(_, _, _, axes, _) | Store(_, _, axes) | Map(_, _, _, axes, _):
                yield axes
            case Reduce(_, _, over, _, axes, _) | Dot(_, over, _, _, axes, _):
                yield from (over, axes)
            case Loop():
                yield statement.axes
                yield from (carry.axes for carry in statement.carries)
            case _:
                pass


def _single_axes(body: tuple[Statement, ...]) -> Iterator[str]:
    """Axes whose positions matter by themselves: they are read, guard a loop, or come in chunks."""
    for statement in walk(body):
        match statement:
            case Position(_, axis):
                yield axis
            case Loop():
                for guard in statement.guards:
                    yield from _positions(guard)
                if statement.chunk is not None:
                    yield from (*statement.axes, statement.chunk)
            case _:
                pass


def _positions(term: Term) -> Iterator[str]:
    match term:
        case Pos(axis):
            yield axis
        case In(_, axes, _):
            yield from axes
        case _:
            for child in children(term):
                yield from _positions(child)


def mapped(
    body: tuple[Statement, ...], axes: Callable[[Axes], Axes], access: Callable[[Access], Access]
) -> tuple[Statement, ...]:
    """Statements with every list of axes and every access changed."""

    def one(statement: Statement) -> Statement:
        match statement:
            case Load():
                return replace(statement, access=access(statement.access), axes=axes(statement.axes))
            case Store():
                return replace(statement, access=access(statement.access), axes=axes(statement.axes))
            case Map():
                return replace(statement, axes=axes(statement.axes))
            case Reduce() | Dot():
                return replace(statement, over=axes(statement.over), axes=axes(statement.axes))
            case Loop():
                carries = tuple(replace(c, axes=axes(c.axes)) for c in statement.carries)
                inner = tuple(map(one, statement.body))
                return replace(statement, axes=axes(statement.axes), carries=carries, body=inner)
            case _:
                return statement

    return tuple(map(one, body))
