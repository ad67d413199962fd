"""Guards of loops as C: interval evaluation over the current tile, as in `llir.interval`."""

from __future__ import annotations

from collections.abc import Iterable

from lumi.backends.cpu.ctype import literal
from lumi.backends.cpu.scope import Writer
from lumi.dtype import F64
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
"""C for the ends of an operator's interval from the ends of its operands' (all double)."""

_UNKNOWN = ("-INFINITY", "INFINITY")


def holds_nowhere(w: Writer, guards: Iterable[Term]) -> str:
    """C for "some guard holds nowhere in the current tile"; empty when that cannot be known."""
    tests = []
    for guard in guards:
        high = _ends(w, guard)[1]
        if high != _UNKNOWN[1]:
            tests.append(f"!({high} > 0)")
    return " || ".join(tests)


def _ends(w: Writer, term: Term) -> tuple[str, str]:
    match term:
        case Const(value):
            number = literal(value, F64)
            return number, number
        case Pos(axis):
            return _position(w, axis)
        case In(name, _, _) if name.startswith("$"):
            symbol = f"(double){spell.dim_name(name[1:])}"
            return symbol, symbol
        case Un("not", a):
            low, high = _ends(w, a)
            return _declared(w, f"{high} <= 0", f"{low} <= 0")
        case Bin(op, a, b) if op in _ENDS:
            ends = (*_ends(w, a), *_ends(w, b))
            if op in ("and", "or") or not set(ends) & set(_UNKNOWN):
                low, high = _ENDS[op]
                return _declared(w, low.format(*ends), high.format(*ends))
            return _UNKNOWN
        case Sel(_, a, b):
            (p, q), (r, s) = _ends(w, a), _ends(w, b)
            return _declared(w, f"fmin({p}, {r})", f"fmax({q}, {s})")
        case _:
            return _UNKNOWN


def _position(w: Writer, axis: str) -> tuple[str, str]:
    opened = w.opened(axis)
    if opened is not None:
        return f"(double){opened.variable}", f"(double)({opened.variable} + {opened.width - 1})"
    span = w.ranges[axis]
    return f"(double)({span.start})", f"(double)({span.stop} - 1)"


def _declared(w: Writer, low: str, high: str) -> tuple[str, str]:
    return w.declare("double", low, "low"), w.declare("double", high, "high")
