"""Sums over rows as polynomials: what is summed is a sum of products, and nested sums are one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lumi.dtype import F32
from lumi.llir.kernel import Map, Operand
from lumi.llir.program import Fold, Program, axes_of

MOST = 4
"""Products that a sum is expanded into at most."""


@dataclass(frozen=True, slots=True)
class Monomial:
    """A product of factors, negated or not, that is summed over `over`."""

    factors: tuple[Operand, ...]
    negative: bool = False
    over: frozenset[str] = frozenset()

    def times(self, other: Monomial) -> Monomial | None:
        """The product of two, unless both are summed over one axis."""
        if self.over & other.over:
            return None
        return Monomial(
            (*self.factors, *other.factors), self.negative != other.negative, self.over | other.over
        )


def expand(program: Program, operand: Operand, rows: frozenset[str]) -> tuple[Monomial, ...] | None:
    """A value that depends on `rows` as a sum of products; None where it has too many.

    Sums of f32 are taken apart as far as they depend on the rows.  Products are distributed over sums and
    differences: each of the terms that results is as large as one that the value itself rounds.
    """
    definition = program.definitions[operand] if isinstance(operand, str) else None
    if definition is None or not rows & set(axes_of(definition)):
        return (Monomial((operand,)),)
    match definition:
        case Fold(_, "sum", over, terms, _, dtype) if dtype == F32:
            return _summed(_product(program, terms, rows), frozenset(over))
        case Map(_, "mul", args, _, dtype) if dtype == F32:
            return _product(program, args, rows)
        case Map(_, "add" | "sub" as op, (a, b), _, dtype) if dtype == F32:
            first, second = expand(program, a, rows), expand(program, b, rows)
            if first is None or second is None or len(first) + len(second) > MOST:
                return None
            return (*first, *(_negated(m, op == "sub") for m in second))
        case _:
            return (Monomial((operand,)),)


def _negated(one: Monomial, is_negated: bool) -> Monomial:
    return Monomial(one.factors, one.negative != is_negated, one.over)


def _product(
    program: Program, operands: Iterable[Operand], rows: frozenset[str]
) -> tuple[Monomial, ...] | None:
    found: tuple[Monomial, ...] = (Monomial(()),)
    for operand in operands:
        more = expand(program, operand, rows)
        if more is None or len(found) * len(more) > MOST:
            return None
        pairs = [a.times(b) for a in found for b in more]
        found = tuple(p for p in pairs if p is not None)
        if len(found) < len(pairs):
            return None
    return found


def _summed(terms: tuple[Monomial, ...] | None, over: frozenset[str]) -> tuple[Monomial, ...] | None:
    sums = [m.times(Monomial((), over=over)) for m in terms or ()]
    return tuple(m for m in sums if m is not None) if sums and None not in sums else None
