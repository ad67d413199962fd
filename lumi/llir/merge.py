"""Several axes of a kernel as one, whatever is done with them: the rows of an image become one long axis.

Unlike what `coalesce` joins, such axes need not be one run of memory for every access.  Where they are not,
an access or a position takes the long axis apart again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lumi.dim import Extent
from lumi.dtype import I32
from lumi.field.access import Access
from lumi.field.index import Index, Part, Quot, Rem, hides, index, of_axis
from lumi.llir.coalesce import mapped
from lumi.llir.kernel import Kernel, Loop, Map, Position, Statement, walk

Axes = tuple[str, ...]


def merge(kernel: Kernel, members: Sequence[str]) -> Kernel | None:
    """The kernel with one axis, called by its parts joined with `_`, in the place of several of its grid.

    Members stand in the order of the kernel's axes, and the extents of all but the first are known.  None
    where a loop runs over one of them.
    """
    one = _Merged(kernel, tuple(members))
    return one.kernel() if one.is_possible else None


@dataclass(frozen=True, slots=True)
class _Merged:
    whole: Kernel
    members: Axes

    @property
    def name(self) -> str:
        """What the long axis is called."""
        return "_".join(self.members)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The extents of all members but the first."""
        return tuple(e for a in self.members[1:] if isinstance(e := self.whole.axes[a], int))

    @property
    def steps(self) -> tuple[int, ...]:
        """By how much the position on the long axis moves with each member."""
        return tuple(math.prod(self.sizes[k:]) for k in range(len(self.members)))

    @property
    def is_possible(self) -> bool:
        """Whether all are of the grid and none is looped over, in chunks or otherwise."""
        loops = [s for s in walk(self.whole.body) if isinstance(s, Loop)]
        inner = {a for s in loops for a in (*s.axes, s.chunk)}
        apart = len(self.sizes) == len(self.members) - 1 and self.name not in self.whole.axes
        return apart and set(self.members) <= set(self.whole.grid) and not inner & set(self.members)

    def kernel(self) -> Kernel:
        """The kernel over the long axis.  No guard speaks of it: a guard only allows to skip tiles."""
        whole, members = self.whole, self.members
        extents: dict[str, Extent] = {}
        for axis, extent in whole.axes.items():
            if axis == members[0]:
                extents[self.name] = extent * math.prod(self.sizes)
            elif axis not in members:
                extents[axis] = extent
        body = tuple(self._without_guards(s) for s in whole.body)
        body = tuple(s for statement in body for s in self._split(statement))
        return replace(
            whole,
            axes=extents,
            grid=self.axes(whole.grid),
            resident=self.axes(whole.resident),
            tiles={a: t for a, t in whole.tiles.items() if a not in members},
            body=mapped(body, self.axes, self.access),
        )

    def axes(self, axes: Axes) -> Axes:
        """A list of axes with the long one where the first member stood."""
        return tuple(dict.fromkeys(self.name if a in self.members else a for a in axes))

    # -- positions

    def _without_guards(self, statement: Statement) -> Statement:
        if not isinstance(statement, Loop):
            return statement
        return replace(statement, guards=(), body=tuple(map(self._without_guards, statement.body)))

    def _split(self, statement: Statement) -> Iterator[Statement]:
        """A statement, or the position of a member as what it is of the long axis."""
        match statement:
            case Position(var, axis) if axis in self.members:
                place, part = self.members.index(axis), f"{var}_long"
                yield Position(part, self.name)
                yield from self._taken_apart(var, part, place)
            case Loop():
                yield replace(
                    statement, body=tuple(s for inner in statement.body for s in self._split(inner))
                )
            case _:
                yield statement

    def _taken_apart(self, var: str, long: str, place: int) -> Iterator[Statement]:
        step, axes = self.steps[place], (self.name,)
        if place == 0:
            yield Map(var, "div", (long, float(step)), axes, I32)
            return
        size = float(self.sizes[place - 1])
        if step == 1:
            yield Map(var, "rem", (long, size), axes, I32)
            return
        yield Map(f"{var}_outer", "div", (long, float(step)), axes, I32)
        yield Map(var, "rem", (f"{var}_outer", size), axes, I32)

    # -- accesses

    def access(self, access: Access) -> Access:
        """The same elements."""
        if not access.axes() & set(self.members):
            return access
        found = self._in_one(access)
        if found is not None:
            return found
        parts = dict(zip(self.members, map(self._part, range(len(self.members))), strict=True))
        return replace(access, index=tuple(i.map(lambda p: _found(parts, p)) for i in access.index))

    def _part(self, place: int) -> Index:
        step = self.steps[place]
        outer = of_axis(self.name) if step == 1 else index([(Quot(of_axis(self.name), step), 1)])
        return outer if place == 0 else index([(Rem(outer, self.sizes[place - 1]), 1)])

    def _in_one(self, access: Access) -> Access | None:
        """The access along the long axis, where its members are one run of memory; else None."""
        places = [k for k, i in enumerate(access.index) if i.axes() & set(self.members)]
        first, last = places[0], places[-1]
        sizes = access.shape[first + 1 : last + 1]
        if access.clamp or not all(isinstance(n, int) for n in sizes):
            return None
        joined, size = access.index[first], access.shape[first]
        for place in range(first + 1, last + 1):
            inner = access.shape[place]
            assert isinstance(inner, int), "sizes of inner dimensions are known"
            joined, size = joined.scale(inner) + access.index[place], size * inner
        steps = {part: c for part, c in joined.terms if isinstance(part, str)}
        step = steps.get(self.members[-1], 0)
        hidden = any(hides(p, self.members) for p, _ in joined.terms)
        if hidden or [steps.get(a, 0) for a in self.members] != [step * n for n in self.steps]:
            return None
        rest = [(part, c) for part, c in joined.terms if part not in self.members]
        found = index([*rest, (self.name, step)], joined.offset)
        return replace(
            access,
            index=(*access.index[:first], found, *access.index[last + 1 :]),
            shape=(*access.shape[:first], size, *access.shape[last + 1 :]),
        )


def _found(parts: Mapping[str, Index], part: Part) -> Part | Index:
    return parts.get(part, part) if isinstance(part, str) else part
