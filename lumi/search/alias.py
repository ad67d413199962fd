"""Equality of values up to the names of their axes: what one kernel stored serves every such value."""

from __future__ import annotations

from collections.abc import Hashable

from lumi.field.access import Access
from lumi.field.index import Index, Look, Part, Quot, Rem
from lumi.field.region import Region
from lumi.search.dag import (
    Apply,
    Dag,
    Dimension,
    Final,
    Number,
    Position,
    Previous,
    Read,
    Running,
    Stored,
)

Form = tuple[Hashable, ...]
"""A value with its axes numbered in order of first mention."""


class Aliases:
    """Canonical numbers of values; equal numbers mean equal up to a renaming of axes."""

    def __init__(self, region: Region, dag: Dag) -> None:
        self.region, self.dag = region, dag
        self._forms: dict[Form, int] = {}
        self._known: dict[int, tuple[int, tuple[str, ...]]] = {}

    def of(self, value: int) -> tuple[int, tuple[str, ...]]:
        """The canonical number of a value, and its axes in order of first mention.

        Two values with one number are equal when the axes of one are renamed, position by position, to
        those of the other.
        """
        known = self._known.get(value)
        if known is None:
            form = _Form(self.region, self.dag)
            key = form.of(value)
            number = self._forms.setdefault(key, len(self._forms))
            known = self._known[value] = (number, tuple(form.order))
        return known


class _Form:
    def __init__(self, region: Region, dag: Dag) -> None:
        self.region, self.dag = region, dag
        self.order: dict[str, tuple[int, Hashable]] = {}

    def of(self, root: int) -> Form:
        """Each distinct value below the root once, children by their position in the list."""
        place: dict[int, int] = {}
        out: list[Hashable] = []
        for number in self.dag.walk([root]):
            out.append(self._one(number, place))
            place[number] = len(place)
        return tuple(out)

    def _axis(self, name: str) -> Hashable:
        if name not in self.order:
            self.order[name] = (len(self.order), self.region.axes[name].extent)
        return self.order[name]

    def _mask(self, mask: int) -> Hashable:
        return tuple(self._axis(a) for a in self.region.axes.names(mask))

    def _one(self, number: int, place: dict[int, int]) -> Hashable:
        match self.dag.values[number]:
            case Read(name, index):
                access = self.region.accesses[name]
                return "read", self._access(access), None if index is None else place[index]
            case Stored(stored, axes):
                return "stored", stored, tuple(self._axis(a) for a in axes)
            case Dimension(dim):
                return "dim", dim
            case Number(value):
                return "number", value.hex()
            case Position(axis):
                return "position", self._mask(axis)
            case Apply(op, args):
                return "apply", op, tuple(place[a] for a in args)
            case (Final(acc) | Running(acc) | Previous(acc)) as seen:
                return type(seen).__name__, self._accumulator(acc, place)

    def _accumulator(self, number: int, place: dict[int, int]) -> Hashable:
        made = self.dag.table[number]
        domain = self.dag.domains[made.domain]
        parts = tuple(None if p is None else place[p] for p in (made.step, made.rho, made.tau))
        return made.op, self._mask(domain.axes), self._mask(domain.chunk), parts

    def _access(self, access: Access) -> Hashable:
        return access.buffer, access.dtype, access.clamp, access.shape, tuple(map(self._index, access.index))

    def _index(self, index: Index) -> Hashable:
        terms = sorted(index.terms, key=lambda t: t[1])
        return tuple((self._part(p), c) for p, c in terms), index.offset

    def _part(self, part: Part) -> Hashable:
        match part:
            case str():
                return self._axis(part)
            case Quot(index, divisor):
                return "div", self._index(index), divisor
            case Rem(index, divisor):
                return "mod", self._index(index), divisor
            case Look(buffer, place, shape, size):
                return "look", buffer, tuple(map(self._index, place)), shape, size
            case _:
                return part
