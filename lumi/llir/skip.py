"""Guards of loops in the syntax that C and CUDA share: interval evaluation, as in `llir.interval`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from lumi.field.term import Bin, Const, In, Pos, Sel, Term, Un
from lumi.llir import spell

_ENDS = {
    "add": ("{0} + {2}", "{1} + {3}"),
    "sub": ("{0} - {3}", "{1} - {2}"),
    "mul": (
        "fmin(fmin({0} * {2}, {0} * {3}), fmin({1} * {2}, {1} * {3}))",
        "fmax(fmax({0} * {2}, {0} * {3}), fmax({1} * {2}, {1} * {3}))",
    ),
    "max": ("fmax({0}, {2})", "fmax({1}, {3})"),
    "lt": ("{1} < {2}", "{0} < {3}"),
    "le": ("{1} <= {2}", "{0} <= {3}"),
    "eq": ("{0} == {1} && {2} == {3} && {0} == {2}", "{0} <= {3} && {2} <= {1}"),
    "and": ("{0} > 0 && {2} > 0", "{1} > 0 && {3} > 0"),
    "or": ("{0} > 0 || {2} > 0", "{1} > 0 || {3} > 0"),
}
"""Code for the ends of an operator's interval from the ends of its operands' (all double)."""

_UNKNOWN = ("-INFINITY", "INFINITY")

Ends: TypeAlias = "tuple[str, str]"
"""Code for the least and the greatest value, both double."""


def holds_nowhere(
    guards: Iterable[Term], positions: Callable[[str], Ends], declare: Callable[[str, str], str]
) -> str:
    """Code for "some guard holds nowhere in the current tile"; empty when that cannot be known.

    `positions` gives the ends of an axis in the tile; `declare` makes a double constant from code and the
    stem of its name, and returns the name.
    """
    writer = _Writer(positions, declare)
    tests = []
    for guard in guards:
        high = writer.ends(guard)[1]
        if high != _UNKNOWN[1]:
            tests.append(f"!({high} > 0)")
    return " || ".join(tests)


def holds_everywhere(
    conditions: Iterable[Term], positions: Callable[[str], Ends], declare: Callable[[str, str], str]
) -> str:
    """Code for "all conditions hold everywhere in the current tile"; empty when there are none.

    One of which nothing is known counts as not holding.
    """
    writer = _Writer(positions, declare)
    return " && ".join(f"{writer.ends(condition)[0]} > 0" for condition in conditions)


@dataclass(frozen=True, slots=True)
class _Writer:
    positions: Callable[[str], Ends]
    declare: Callable[[str, str], str]

    def ends(self, term: Term) -> Ends:
        match term:
            case Const(value):
                number = _number(value)
                return number, number
            case Pos(axis):
                return self.positions(axis)
            case In(name, _, _) if name.startswith("$"):
                symbol = f"(double){spell.dim_name(name[1:])}"
                return symbol, symbol
            case Un("cast.i32" | "cast.i64", Const(value)) if math.isfinite(value) and value == int(value):
                return self.ends(Const(value))
            case Un("not", a):
                low, high = self.ends(a)
                return self._declared(f"{high} <= 0", f"{low} <= 0")
            case Bin(op, a, b) if op in _ENDS:
                ends = (*self.ends(a), *self.ends(b))
                if op in ("and", "or") or not set(ends) & set(_UNKNOWN):
                    low, high = _ENDS[op]
                    return self._declared(low.format(*ends), high.format(*ends))
                return _UNKNOWN
            case Sel(_, a, b):
                (p, q), (r, s) = self.ends(a), self.ends(b)
                return self._declared(f"fmin({p}, {r})", f"fmax({q}, {s})")
            case _:
                return _UNKNOWN

    def _declared(self, low: str, high: str) -> Ends:
        return self.declare(low, "low"), self.declare(high, "high")


def _number(value: float) -> str:
    """A double constant that keeps every bit."""
    if math.isinf(value):
        return _UNKNOWN[value > 0]
    return repr(float(value)) if value == int(value) and abs(value) < 2**24 else float(value).hex()
