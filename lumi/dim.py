"""Symbolic integers: polynomials over named dims, with floor division and remainder, and their ranges.

A size is an `Extent`: a plain `int`, or a `Dim` that no simplification could make one.  All arithmetic
goes through the operators and returns an `Extent` in canonical form, so `==` is structural equality.  A
remainder is what floor division leaves, so that blocks and what fills the last one add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Atom: TypeAlias = "str | Quotient"
Monomial: TypeAlias = "tuple[Atom, ...]"
Extent: TypeAlias = "int | Dim"


@dataclass(frozen=True, slots=True)
class DimRange:
    """A declared dim: `low <= name <= high`; search measures at `hints`."""

    name: str
    low: int
    high: int
    hints: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Quotient:
    """`floor(value / divisor)`."""

    value: Dim
    divisor: int


@dataclass(frozen=True, slots=True)
class Dim:
    """A sum of integer multiples of products of atoms; `terms` is sorted and has no zero coefficient."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Extent) -> Extent:
        return _sum(self.terms, _terms(other))

    __radd__ = __add__

    def __neg__(self) -> Extent:
        return self * -1

    def __sub__(self, other: Extent) -> Extent:
        return self + other * -1

    def __rsub__(self, other: Extent) -> Extent:
        return (self * -1) + other

    def __mul__(self, other: Extent) -> Extent:
        products = [
            (tuple(sorted((*a, *b), key=repr)), x * y) for a, x in self.terms for b, y in _terms(other)
        ]
        return _sum(products)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Extent:
        """Floor division by a positive int: what is divisible leaves the quotient."""
        if divisor <= 0:
            raise ValueError(f"a dim is divided by {divisor}, not by a positive integer")
        parts = [(m, c // divisor if c >= 0 or not m else -(-c // divisor)) for m, c in self.terms]
        rest = _sum(self.terms, [(m, -c * divisor) for m, c in parts])
        return _sum(parts) + (rest // divisor if isinstance(rest, int) else _quotient(rest, divisor))

    def __mod__(self, divisor: int) -> Extent:
        """Floor remainder by a positive int."""
        return self - self // divisor * divisor

    def names(self) -> frozenset[str]:
        """Every declared dim that the value depends on."""
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                found |= {atom} if isinstance(atom, str) else atom.value.names()
        return frozenset(found)

    def __str__(self) -> str:
        """An s-expression that the reader takes back: `(+ past seq)`."""
        parts = [_show_term(m, c) for m, c in self.terms]
        return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"

    def __repr__(self) -> str:
        return str(self)


def var(name: str) -> Dim:
    """The dim called `name`."""
    return Dim((((name,), 1),))


def bind(extent: Extent, values: Mapping[str, int]) -> Extent:
    """Replace the dims in `values` by their integers; the result is an int when all are given."""
    if isinstance(extent, int):
        return extent
    total: Extent = 0
    for monomial, coefficient in extent.terms:
        product: Extent = coefficient
        for atom in monomial:
            product = product * _bind_atom(atom, values)
        total = total + product
    return total


def value(extent: Extent, values: Mapping[str, int]) -> int:
    """The integer an extent is under `values`.  Raises `KeyError` naming a missing dim."""
    if isinstance(extent, int):
        return extent
    total = 0
    for monomial, product in extent.terms:
        for atom in monomial:
            product *= values[atom] if isinstance(atom, str) else value(atom.value, values) // atom.divisor
        total += product
    return total


def bounds(extent: Extent, ranges: Mapping[str, DimRange]) -> tuple[float, float]:
    """Least and greatest value over the declared ranges; an undeclared dim counts as 0 … ∞.

    Exact for sums of independent monomials with nonnegative dims and for remainders, conservative otherwise.
    """
    low, high = _interval(extent, ranges)
    if isinstance(extent, int) or not any(isinstance(a, Quotient) for m, _ in extent.terms for a in m):
        return low, high
    whole, factor, rests = _undivided(extent)
    least, most = (end / factor for end in _interval(whole, {**ranges, **rests}))
    return max(low, math.ceil(least) if math.isfinite(least) else least), min(
        high, math.floor(most) if math.isfinite(most) else most
    )


def _undivided(extent: Dim) -> tuple[Extent, int, dict[str, DimRange]]:
    """A multiple of an extent in which each quotient is what it divides less a remainder; the factor.

    Remainders are dims of their own, whose ranges come third.
    """
    divisors = [[a.divisor for a in m if isinstance(a, Quotient)] for m, _ in extent.terms]
    factor, rests = math.lcm(*map(math.prod, divisors)), dict[str, DimRange]()
    total: Extent = 0
    for (monomial, coefficient), divided in zip(extent.terms, divisors, strict=True):
        part: Extent = coefficient * (factor // math.prod(divided))
        for atom in monomial:
            if isinstance(atom, str):
                part = part * var(atom)
            else:
                rest = f"{atom.value} mod {atom.divisor}"
                rests[rest] = DimRange(rest, 0, atom.divisor - 1, ())
                part = part * (atom.value - var(rest))
        total = total + part
    return total, factor, rests


def _interval(extent: Extent, ranges: Mapping[str, DimRange]) -> tuple[float, float]:
    """Bounds of a sum, each of whose atoms has any value between its own."""
    if isinstance(extent, int):
        return extent, extent
    low = high = 0.0
    for monomial, coefficient in extent.terms:
        a, b = 1.0, 1.0
        for atom in monomial:
            c, d = _atom_bounds(atom, ranges)
            corners = [0.0 if 0 in (x, y) else x * y for x in (a, b) for y in (c, d)]
            a, b = min(corners), max(corners)
        low += min(coefficient * a, coefficient * b)
        high += max(coefficient * a, coefficient * b)
    return low, high


def product(extents: Iterable[Extent]) -> Extent:
    """The product of extents; 1 for none."""
    total: Extent = 1
    for extent in extents:
        total = total * extent
    return total


def divide(a: Extent, b: Extent) -> Extent | None:
    """`a / b` where `b` divides `a` exactly as a polynomial, else None.

    Long division by the leading term: the quotient of an exact division is unique, so any order that
    multiplication keeps will do; here more factors lead, then the spelling.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    divisor = _terms(b)
    if not divisor:
        return None
    lead, coefficient = max(divisor, key=_rank)
    quotient: Extent = 0
    rest = a
    while rest != 0:
        monomial, factor = max(_terms(rest), key=_rank)
        left = _without(monomial, lead)
        if left is None or factor % coefficient:
            return None
        part = _sum([(left, factor // coefficient)])
        quotient, rest = quotient + part, rest - part * b
    return quotient


def _rank(term: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    return len(term[0]), tuple(sorted((repr(a) for a in term[0]), reverse=True))


def _without(monomial: Monomial, part: Monomial) -> Monomial | None:
    rest = list(monomial)
    for atom in part:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _terms(extent: Extent) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(extent, Dim):
        return extent.terms
    return (((), extent),) if extent else ()


def _sum(*groups: Iterable[tuple[Monomial, int]]) -> Extent:
    total: dict[Monomial, int] = {}
    for group in groups:
        for monomial, coefficient in group:
            total[monomial] = total.get(monomial, 0) + coefficient
    terms = tuple(sorted(((m, c) for m, c in total.items() if c), key=lambda t: (len(t[0]) == 0, repr(t[0]))))
    if not terms:
        return 0
    if len(terms) == 1 and terms[0][0] == ():
        return terms[0][1]
    return Dim(terms)


def _quotient(value: Dim, divisor: int) -> Extent:
    """`floor(value / divisor)` of what has no multiple of the divisor, written one way only."""
    (monomial, coefficient), *more = value.terms
    constant = sum(c for m, c in more if not m)
    if coefficient < 0:
        return -1 * ((divisor - 1 - value) // divisor)
    shared = math.gcd(divisor, *(c for m, c in value.terms if m))
    if shared > 1:
        scaled = _sum([(m, c // shared) for m, c in value.terms])
        return scaled // (divisor // shared)
    is_single = coefficient == 1 and all(not m for m, _ in more) and len(monomial) == 1
    if is_single and isinstance(monomial[0], Quotient):
        inner = monomial[0]
        return (inner.value + constant * inner.divisor) // (inner.divisor * divisor)
    return Dim((((Quotient(value, divisor),), 1),))


def _bind_atom(atom: Atom, values: Mapping[str, int]) -> Extent:
    if isinstance(atom, str):
        return values[atom] if atom in values else var(atom)
    return bind(atom.value, values) // atom.divisor


def _atom_bounds(atom: Atom, ranges: Mapping[str, DimRange]) -> tuple[float, float]:
    if isinstance(atom, str):
        return (ranges[atom].low, ranges[atom].high) if atom in ranges else (0, math.inf)
    low, high = bounds(atom.value, ranges)
    return low // atom.divisor, high // atom.divisor if math.isfinite(high) else high


def _show_term(monomial: Monomial, coefficient: int) -> str:
    if not monomial:
        return str(coefficient)
    factors = [a if isinstance(a, str) else f"(div {a.value} {a.divisor})" for a in monomial]
    if coefficient != 1:
        factors.insert(0, str(coefficient))
    return factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})"
