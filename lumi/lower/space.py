"""The index space of a region: its axes, and what is known of index maps over them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import TypeAlias

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.field.axis import AxisTable
from lumi.field.index import Data, Index, Look, Part, Quot, Rem, Sym, index
from lumi.hlir.graph import Node
from lumi.lower.factor import Atom, Factors

Role: TypeAlias = "tuple[Index, ...]"
"""The element of a node that is read, one index a dimension."""

ZERO = Index()


class AxisLimitError(Exception):
    """A part needs more axes than it may have."""


@dataclass(frozen=True, slots=True)
class Datum:
    """The element `role` of a node, used as an index; with `size`, clamped into so many elements."""

    node: Node
    role: Role
    size: Extent | None


@dataclass(slots=True)
class Space:
    """Axes, named by atom and occurrence: the k-th name of an atom is used where k others are taken.

    So equal roles get equal names without a comparison of terms, and a value under two roles gets two.
    A field used as an index is `Data`, numbered here.
    """

    factors: Factors
    dims: Mapping[str, DimRange]
    limit: int
    axes: AxisTable = field(default_factory=AxisTable)
    data: list[Datum] = field(default_factory=list)
    _names: dict[tuple[Atom, int], str] = field(default_factory=dict)
    _numbers: dict[tuple[int, Role, Extent | None], int] = field(default_factory=dict)
    _inside: dict[tuple[Index, Extent], bool] = field(default_factory=dict)

    # -- axes

    def fresh(self, node: Node, k: int, used: set[str]) -> Index:
        """A dimension of a node under names that are not `used`, which they then are."""
        made: list[tuple[str, Extent]] = []
        for atom, size in self.factors.of(node, k):  # major first: axes are in memory order
            occurrence = 0
            while self._names.get((atom, occurrence)) in used:
                occurrence += 1
            name = self._name(atom, occurrence, size)
            used.add(name)
            made.append((name, size))
        terms: list[tuple[Part, int]] = []
        stride = 1
        for name, size in reversed(made):
            terms.append((name, stride))
            stride *= size if isinstance(size, int) else 1  # only the major factor can be symbolic
        return index(terms)

    def canonical(self, node: Node) -> Role:
        """The role under which a node is stored."""
        used: set[str] = set()
        return tuple(self.fresh(node, k, used) for k in range(node.type.rank))

    def _name(self, atom: Atom, occurrence: int, size: Extent) -> str:
        if (atom, occurrence) not in self._names:
            if len(self.axes) >= self.limit:
                raise AxisLimitError
            name = _letters(len(self.axes))
            self.axes.add(name, size)
            self._names[atom, occurrence] = name
        return self._names[atom, occurrence]

    def datum(self, node: Node, role: Role, size: Extent | None) -> Index:
        """The element of a node, used as an index; with `size`, clamped into so many elements."""
        number = self._numbers.setdefault((node.id, role, size), len(self.data))
        if number == len(self.data):
            self.data.append(Datum(node, role, size))
        return Index(((Data(number), 1),))

    def used(self, role: Iterable[Index]) -> set[str]:
        """The axes of a role, those of its data included."""
        found: set[str] = set()
        for each in role:
            found |= each.axes()
            for number in each.data():
                found |= self.used(self.data[number].role)
        return found

    # -- what is known of an index

    def bounds(self, at: Index) -> tuple[Extent, Extent] | None:
        """Least and greatest value of an index; None when data decides it."""
        low: Extent = at.offset
        high: Extent = at.offset
        for part, coefficient in at.terms:
            found = self._part_bounds(part)
            if found is None:
                return None
            least, greatest = found if coefficient > 0 else found[::-1]
            low, high = low + least * coefficient, high + greatest * coefficient
        return low, high

    def _part_bounds(self, part: Part) -> tuple[Extent, Extent] | None:
        match part:
            case str():
                return 0, self.axes[part].extent - 1
            case Sym(extent):
                return extent, extent
            case Data():
                return None
            case Quot(inner, divisor):
                found = self.bounds(inner)
                return found and (found[0] // divisor, found[1] // divisor)
            case Rem(_, divisor):
                return 0, divisor - 1
            case Look(_, _, _, size):
                return 0, size - 1

    def starts(self, at: Index) -> bool:
        """Whether an index is never negative."""
        found = self.bounds(at)
        return found is not None and dim.bounds(found[0], self.dims)[0] >= 0

    def ends(self, at: Index, size: Extent) -> bool:
        """Whether an index is always less than `size`."""
        found = self.bounds(at)
        return found is not None and dim.bounds(size - 1 - found[1], self.dims)[0] >= 0

    def inside(self, role: Role, shape: tuple[Extent, ...]) -> bool:
        """Whether a role provably names an element of a tensor of this shape."""
        return all(map(self._within, role, shape))

    def _within(self, at: Index, size: Extent) -> bool:
        if (at, size) not in self._inside:
            self._inside[at, size] = self.starts(at) and self.ends(at, size)
        return self._inside[at, size]

    def divide(self, at: Index, divisor: int) -> tuple[Index, Index]:
        """Quotient and remainder of an index by a positive integer, as simple as its range allows."""
        whole = index([(p, c // divisor) for p, c in at.terms if c % divisor == 0], at.offset // divisor)
        rest = index([(p, c) for p, c in at.terms if c % divisor], at.offset % divisor)
        if self._within(rest, divisor):
            return whole, rest
        return whole + _quotient(rest, divisor), _remainder(rest, divisor)

    def is_digits(self, at: Index) -> bool:
        """Whether an index is an offset and digits, so that it names no element twice."""
        reach: Extent | None = 1
        for part, coefficient in sorted(at.terms, key=lambda t: abs(t[1])):
            if isinstance(part, Sym):
                continue
            if not isinstance(part, str) or not isinstance(reach, int) or abs(coefficient) < reach:
                return False
            reach = self.axes[part].extent * abs(coefficient)
        return True


def _letters(number: int) -> str:
    """a … z, then aa, ab …"""
    head, tail = divmod(number, len(ascii_lowercase))
    return (_letters(head - 1) if head else "") + ascii_lowercase[tail]


def _quotient(at: Index, divisor: int) -> Index:
    match at:
        case Index(((Quot(inner, first), 1),), 0):
            return Index(((Quot(inner, first * divisor), 1),))
        case _:
            return Index(((Quot(at, divisor), 1),))


def _remainder(at: Index, divisor: int) -> Index:
    match at:
        case Index(((Rem(inner, first), 1),), 0) if first % divisor == 0:
            return Index(((Rem(inner, divisor), 1),))
        case _:
            return Index(((Rem(at, divisor), 1),))
