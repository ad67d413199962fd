"""Index maps as terms: positions as values, and whether they are within limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lumi.dim import Extent
from lumi.field.index import Data, Index, Look, Part, Quot, Rem, Sym
from lumi.field.term import Const, Term
from lumi.lower.maker import Maker
from lumi.lower.space import Space


@dataclass(frozen=True, slots=True)
class Limit:
    """That an index is at least 0 and less than `size`."""

    at: Index
    size: Extent


@dataclass(frozen=True, slots=True)
class Positions:
    """Builds i32 terms of index maps; `datum` gives the field that stands behind a data index."""

    make: Maker
    space: Space
    datum: Callable[[int], Term]

    def of(self, at: Index) -> Term:
        """The value of an index."""
        total: Term = self.make.number(at.offset)
        for part, coefficient in at.terms:
            total = self.make.plus(total, self.make.times(self._part(part), coefficient))
        return total

    def _part(self, part: Part) -> Term:
        match part:
            case str():
                return self.make.position(part)
            case Sym(extent):
                return self.make.extent(extent)
            case Data(number):
                return self.datum(number)
            case Quot(inner, divisor):
                return self.make.quotient(self.of(inner), divisor, self.space.starts(inner))
            case Rem(inner, divisor):
                return self.make.remainder(self.of(inner), divisor)
            case Look():
                raise AssertionError("what is looked up places stores, which are no values")

    def conditions(self, limits: Iterable[Limit]) -> list[Term] | None:
        """What must hold for every index to be within its limits; None when it never does.

        What ranges prove is left out.  Offsets stand on the constant's side, so that the lower bound of
        one piece of a concatenation is the opposite of the upper bound of the piece before.
        """
        found: list[Term] = []
        for limit in limits:
            whole, offset = self.of(Index(limit.at.terms)), limit.at.offset
            if not self.space.starts(limit.at):
                found.append(self._less(self.make.number(-1 - offset), whole))
            if not self.space.ends(limit.at, limit.size):
                found.append(self._less(whole, self.make.extent(limit.size - offset)))
        if not all(c.value for c in found if isinstance(c, Const)):
            return None
        return [c for c in found if not isinstance(c, Const)]

    def _less(self, a: Term, b: Term) -> Term:
        if isinstance(a, Const) and isinstance(b, Const):
            return self.make.number(a.value < b.value)
        return self.make.binary("lt", a, b)
