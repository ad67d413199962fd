"""Fewer axes for a kernel: neighbours that every access sees as one run of memory become one axis.

Axes split where some reader of a value needs the parts (the blocks of a packed weight, the heads of a
projection).  A kernel that never tells the parts apart gets the whole axis back: long loops, wide tiles,
and products that a library knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from lumi import dim
from lumi.dim import Extent
from lumi.field.access import Access
from lumi.field.index import Index, hides, index
from lumi.field.term import In, Pos, Term, children
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Map, Position, Reduce, Statement, Store, walk

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
    joining = _Joining(kernel, dict(kernel.axes))
    place = 0
    while place + 1 < len(names):
        pair = _Pair(names[place], names[place + 1], joining.extents[names[place + 1]])
        if not joining.join(pair):
            place += 1
            continue
        parts = (members.pop(n, (n,)) for n in (pair.outer, pair.inner))
        members[pair.name] = tuple(a for part in parts for a in part)
        names[place : place + 2] = [pair.name]
    return Coalesced(joining.joined() if members else kernel, members)


@dataclass(slots=True)
class _Joining:
    """A kernel whose axes are being joined: its `extents`, and what becomes of lists and accesses.

    `accesses` are by their ids: each as it was, as it is, and whether it writes.
    """

    kernel: Kernel
    extents: dict[str, Extent]
    lists: dict[Axes, Axes] = field(init=False)
    accesses: dict[int, tuple[Access, Access, bool]] = field(init=False)
    single: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        body = self.kernel.body
        self.lists = {axes: axes for axes in _axis_lists(self.kernel)}
        self.accesses = {}
        for kind in (Load, Store):
            found = (s.access for s in walk(body) if isinstance(s, kind))
            self.accesses |= {id(a): (a, a, kind is Store) for a in found}
        self.single = frozenset(_single_axes(body))

    def join(self, pair: _Pair) -> bool:
        """Make a pair one axis, if no statement tells the two apart."""
        count, both = self.extents[pair.outer], {pair.outer, pair.inner}
        if not isinstance(pair.size, int) or not isinstance(count, int) or count * pair.size > LONGEST:
            return False
        if (
            pair.name in self.extents
            or self.single & both
            or not all(map(pair.together, self.lists.values()))
        ):
            return False
        found = {}
        for key, (old, now, writes) in self.accesses.items():
            new = pair.access(now)
            if new is None or (writes and any(pair.access(look) is None for look in now.looks())):
                return False
            found[key] = old, new, writes
        self.accesses = found
        self.lists = {old: pair.axes(now) for old, now in self.lists.items()}
        names = {pair.outer: pair.name}
        sizes = {**self.extents, pair.outer: count * pair.size}
        self.extents = {names.get(a, a): n for a, n in sizes.items() if a != pair.inner}
        return True

    def joined(self) -> Kernel:
        """The kernel with the axes that there are now."""
        kernel = self.kernel
        return replace(
            kernel,
            axes=self.extents,
            grid=self.lists[kernel.grid],
            resident=self.lists[kernel.resident],
            tiles={a: t for a, t in kernel.tiles.items() if a in self.extents or a not in kernel.axes},
            body=mapped(kernel.body, self.lists.__getitem__, lambda access: self.accesses[id(access)][1]),
        )


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two neighbouring axes, of the inner of which `size` is the extent."""

    outer: str
    inner: str
    size: Extent

    @property
    def name(self) -> str:
        """What both are called as one."""
        return f"{self.outer}_{self.inner}"

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

    def together(self, axes: Axes) -> bool:
        """Whether a list has both side by side, or neither."""
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
