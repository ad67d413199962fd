"""Makes terms so that equal ones are one object, and every operator meets a typed operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lumi.dim import Extent, Monomial
from lumi.dtype import I32, I64, DType, from_memory, to_memory
from lumi.field.term import Bin, Const, Gat, In, Pos, Red, Sel, Term, Un

EXACT = 2**53
"""Integers up to which every one is an f64, which is what a constant holds."""


@dataclass(slots=True)
class Maker:
    """Terms made so far, by what they are made of.

    A constant takes the type of what it meets, so where it would meet nothing it is cast to its own.
    """

    _made: dict[tuple[object, ...], Term] = field(default_factory=dict)
    _numbers: dict[str, Const] = field(default_factory=dict)
    _integers: set[int] = field(default_factory=set)

    def _one(self, key: tuple[object, ...], term: Term) -> Term:
        return self._made.setdefault((type(term), *key), term)

    # -- leaves

    def read(self, name: str, axes: tuple[str, ...], dtype: DType, index: Term | None = None) -> Term:
        """The value of an access, at a data index if there is one."""
        if index is None:
            return self._one((name, axes, dtype), In(name, axes, dtype))
        return self._one((name, axes, dtype, id(index)), Gat(name, axes, dtype, index))

    def symbol(self, name: str) -> Term:
        """The runtime value of a dim."""
        return self.read(f"${name}", (), I32)

    def position(self, axis: str) -> Term:
        """The position along an axis."""
        return self._integer(self._one((axis,), Pos(axis)))

    def number(self, value: float) -> Const:
        """A number without a type."""
        return self._numbers.setdefault(repr(float(value)), Const(float(value)))

    def const(self, value: float | int | bool, dtype: DType) -> Term:
        """A constant of a dtype: narrow floats are rounded; integers no f64 holds are made of two."""
        if dtype.is_narrow:
            return self.number(as_narrow(float(value), dtype))
        if dtype is I64 and abs(value) > EXACT:
            high, low = divmod(int(value), 2**32)
            upper = self.binary("mul", self.cast(self.number(high), I64), self.number(2**32))
            return self.binary("add", upper, self.number(low))
        return self.number(float(value))

    # -- operators

    def unary(self, op: str, a: Term) -> Term:
        """`op` of a typed term."""
        return self._one((op, id(a)), Un(op, a))

    def binary(self, op: str, a: Term, b: Term) -> Term:
        """`op` of two terms of one type, of which one may be a number."""
        return self._one((op, id(a), id(b)), Bin(op, a, b))

    def select(self, condition: Term, a: Term, b: Term) -> Term:
        """`a` where the condition holds, else `b`; what a choice inside is known to be is chosen here."""
        if isinstance(a, Sel) and a.condition is condition:
            a = a.a
        if isinstance(b, Sel) and b.condition is condition:
            b = b.b
        elif isinstance(b, Sel) and self._opposite(condition, b.condition):
            b = b.a
        if isinstance(a, Sel) and a.b is b:  # both choose b: one choice by both conditions
            inner = _conjuncts(a.condition)
            outer = [c for c in _conjuncts(condition) if not any(c is i for i in inner)]
            return self.select(self.both([*outer, a.condition]), a.a, b) if outer else a
        return self._one((id(condition), id(a), id(b)), Sel(condition, a, b))

    def reduce(self, op: str, axes: Sequence[str], body: Term) -> Term:
        """The reduction of a typed term; the term itself over no axes."""
        return self._one((op, tuple(axes), id(body)), Red(op, tuple(axes), body)) if axes else body

    def cast(self, a: Term, dtype: DType) -> Term:
        """A term converted to a dtype."""
        return self.unary(f"cast.{dtype}", a)

    def typed(self, a: Term, dtype: DType) -> Term:
        """A term of this dtype that has it even by itself."""
        return self.cast(a, dtype) if isinstance(a, Const) else a

    def both(self, conditions: Sequence[Term]) -> Term:
        """The conjunction of one or more conditions."""
        total = conditions[0]
        for each in conditions[1:]:
            total = self.binary("and", total, each)
        return total

    def _opposite(self, a: Term, b: Term) -> bool:
        """Whether `b` holds exactly where `a` does not: an integer is below n, or above n - 1."""
        match a, b:
            case Bin("lt", x, Const(n)), Bin("lt", Const(m), y):
                return x is y and id(x) in self._integers and m == n - 1
            case _:
                return False

    # -- index arithmetic, in i32

    def plus(self, a: Term, b: Term) -> Term:
        """a + b; numbers are added here."""
        if isinstance(a, Const) and isinstance(b, Const):
            return self.number(a.value + b.value)
        if isinstance(a, Const):
            a, b = b, a
        return a if b == Const(0.0) else self._integer(self.binary("add", a, b))

    def times(self, a: Term, factor: int) -> Term:
        """a · factor."""
        if isinstance(a, Const):
            return self.number(a.value * factor)
        return a if factor == 1 else self._integer(self.binary("mul", a, self.number(factor)))

    def _integer(self, a: Term) -> Term:
        self._integers.add(id(a))
        return a

    def quotient(self, a: Term, divisor: int, starts: bool) -> Term:
        """⌊a / divisor⌋; `starts` says that a is not negative, where truncation does."""
        if isinstance(a, Const):
            return self.number(a.value // divisor)
        n = self.number(divisor)
        if not starts:
            a = self.binary("sub", a, self.binary("mod", a, n))
        return self.binary("div", a, n)

    def remainder(self, a: Term, divisor: int) -> Term:
        """a mod divisor, which is not negative."""
        if isinstance(a, Const):
            return self.number(a.value % divisor)
        return self.binary("mod", a, self.number(divisor))

    def extent(self, extent: Extent) -> Term:
        """The runtime value of a dim expression."""
        if isinstance(extent, int):
            return self.number(extent)
        total: Term = self.number(0)
        for monomial, coefficient in extent.terms:
            total = self.plus(total, self.times(self._monomial(monomial), coefficient))
        return total

    def _monomial(self, monomial: Monomial) -> Term:
        product: Term | None = None
        for atom in monomial:
            if isinstance(atom, str):
                factor = self.symbol(atom)
            else:
                factor = self.quotient(self.extent(atom.value), atom.divisor, starts=False)
            product = factor if product is None else self.binary("mul", product, factor)
        return self.number(1) if product is None else product


def _conjuncts(condition: Term) -> list[Term]:
    """The conditions that `and` joins."""
    match condition:
        case Bin("and", a, b):
            return [*_conjuncts(a), *_conjuncts(b)]
        case _:
            return [condition]


def as_narrow(value: float, dtype: DType) -> float:
    """A number as a narrow float holds it."""
    with np.errstate(over="ignore"):  # beyond its range is infinity
        return float(from_memory(to_memory(np.asarray(value, np.float32), dtype), dtype))
