"""Elementwise operators as terms, exactly as HLIR defines them for every dtype.

Arithmetic on floats of fewer than four bytes widens to f32, computes, and rounds once.  Arithmetic on i8
and u8 computes in i32 and wraps by a cast.  On bool, add is or, mul is and.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lumi.dtype import BOOL, F32, I32, DType
from lumi.field.term import Const, Term
from lumi.hlir.op import BinaryKind, Monoid, UnaryKind
from lumi.lower.maker import EXACT, Maker, as_narrow

OPERATORS = {
    BinaryKind.ADD: "add",
    BinaryKind.MUL: "mul",
    BinaryKind.MOD: "mod",
    BinaryKind.LESS: "lt",
    BinaryKind.DIV: "div",
    BinaryKind.REM: "rem",
}


def working(dtype: DType) -> DType:
    """The type that arithmetic on a dtype is computed in."""
    if dtype.is_narrow:
        return F32
    return I32 if dtype.kind in ("int", "uint") and dtype.size == 1 else dtype


@dataclass(frozen=True, slots=True)
class Legaliser:
    """Builds the terms of operators on terms of given dtypes."""

    make: Maker

    # -- between a dtype and the type it is computed in

    def widen(self, a: Term, dtype: DType) -> Term:
        """A term in its working type."""
        return a if isinstance(a, Const) or working(dtype) is dtype else self.make.cast(a, working(dtype))

    def narrow(self, a: Term, dtype: DType) -> Term:
        """A term of the working type of `dtype`, rounded or wrapped to it."""
        return a if working(dtype) is dtype else self.make.cast(a, dtype)

    def _typed(self, a: Term, dtype: DType) -> Term:
        return self.make.typed(a, working(dtype))

    # -- elementwise

    def unary(self, kind: UnaryKind, a: Term, dtype: DType) -> Term:
        """A function of one float."""
        return self.narrow(self.make.unary(kind.value, self._typed(self.widen(a, dtype), dtype)), dtype)

    def binary(self, kind: BinaryKind, a: Term, b: Term, dtype: DType) -> Term:
        """A function of two values of `dtype`."""
        op = OPERATORS[kind]
        x, y = self._pair(a, b, dtype)
        if dtype is BOOL:
            op = {"add": "or"}.get(op, "and")
            x = self.make.unary("not", self._typed(x, dtype)) if kind is BinaryKind.LESS else x
        made = self.make.binary(op, x, y)
        return made if kind is BinaryKind.LESS else self.narrow(made, dtype)

    def minus(self, a: Term, b: Term, dtype: DType) -> Term:
        """a - b."""
        return self.narrow(self.make.binary("sub", *self._pair(a, b, dtype)), dtype)

    def equal(self, a: Term, b: Term, dtype: DType) -> Term:
        """Whether two values of `dtype` are equal."""
        return self.make.binary("eq", *self._pair(a, b, dtype))

    def _pair(self, a: Term, b: Term, dtype: DType) -> tuple[Term, Term]:
        x, y = self.widen(a, dtype), self.widen(b, dtype)
        return (self._typed(x, dtype) if isinstance(y, Const) else x), y

    def select(self, condition: Term, a: Term, b: Term, dtype: DType) -> Term:
        """`a` where the condition holds, else `b`; a constant condition chooses here."""
        if isinstance(condition, Const):
            return a if condition.value else b
        if isinstance(b, Const):
            a = self.make.typed(a, dtype)
        return self.make.select(condition, a, b)

    def cast(self, a: Term, source: DType, target: DType) -> Term:
        """A value of `source` as the nearest one of `target`.

        Between a narrow float and anything but f32 the value passes through f32.
        """
        if source is target:
            return a
        if isinstance(a, Const):
            if _holds(target, a.value):
                return a
            a = self.make.typed(a, source)
        if source.is_narrow and target is not F32:
            a = self.make.cast(a, F32)
        if target.is_narrow and source is not F32 and not source.is_narrow:
            a = self.make.cast(a, F32)
        return self.make.cast(a, target)

    # -- axes

    def reduce(self, kind: Monoid, axes: Sequence[str], a: Term, dtype: DType, empty: bool) -> Term:
        """The reduction of a value of `dtype` over axes, of which one may be `empty`."""
        body = self._typed(self.widen(a, dtype), dtype)
        made = self.make.reduce(kind.value, axes, body)
        if empty and kind is Monoid.MAX and working(dtype) is I32 and dtype is not I32:
            made = self.make.binary("max", made, self.make.number(dtype.bounds[0]))
        return self.narrow(made, dtype)

    def scan(self, kind: Monoid, axes: Sequence[str], before: Term, a: Term, dtype: DType) -> Term:
        """The reduction of a value over the points that come before."""
        return self.narrow(self._masked(kind, axes, before, a, dtype), dtype)

    def scatter(self, base: Term, axes: Sequence[str], hit: Term, update: Term, dtype: DType) -> Term:
        """A value and the sum of the updates that hit it, rounded once."""
        if dtype is BOOL:
            hits = self.make.binary("and", self.make.typed(update, BOOL), hit)
            some = self.make.cast(self.make.reduce("sum", axes, self.make.cast(hits, I32)), BOOL)
            return self.make.binary("or", some, base)
        total = self._masked(Monoid.SUM, axes, hit, update, dtype)
        return self.narrow(self.make.binary("add", self.widen(base, dtype), total), dtype)

    def _masked(self, kind: Monoid, axes: Sequence[str], where: Term, a: Term, dtype: DType) -> Term:
        """The reduction of a value over the points where a condition holds, in the working type."""
        body = self._typed(self.widen(a, dtype), dtype)
        return self.make.reduce(kind.value, axes, self.make.select(where, body, self.identity(kind, dtype)))

    def identity(self, kind: Monoid, dtype: DType) -> Term:
        """What a reduction of `dtype` starts with, in its working type."""
        if kind is not Monoid.MAX:
            return self.make.number(0 if kind is Monoid.SUM else 1)
        return self.make.number(float("-inf") if dtype.is_float else working(dtype).bounds[0])


def _holds(dtype: DType, value: float) -> bool:
    """Whether a constant is the same number in a dtype, so that casting it there changes nothing."""
    if dtype.is_narrow:
        return as_narrow(value, dtype) == value
    if dtype.is_float:
        return float(np.float32(value)) == value
    low, high = dtype.bounds
    return low <= value <= high and abs(value) <= EXACT and value == value // 1
