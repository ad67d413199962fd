"""Guards of a loop as field terms: what can be known about a tile before it is computed."""

from __future__ import annotations

from collections.abc import Iterable

from lumi.dtype import I32
from lumi.field.axis import AxisTable
from lumi.field.term import Bin, Const, In, Pos, Sel, Term, Un
from lumi.search.dag import Apply, Dag, Dimension, Number, Position


def guards(dag: Dag, axes: AxisTable, predicates: Iterable[int]) -> tuple[Term, ...]:
    """The conjuncts of the predicates that depend on positions and dims alone.

    A guard only allows to skip a tile, so one that depends on data may be left out.
    """
    found: dict[int, Term] = {}
    stack = list(predicates)
    while stack:
        number = stack.pop(0)
        match dag.values[number]:
            case Apply("and", (a, b)):
                stack += [a, b]
            case _:
                term = _term(dag, axes, number)
                if term is not None:
                    found[number] = term
    return tuple(found.values())


def _term(dag: Dag, axes: AxisTable, number: int) -> Term | None:
    match dag.values[number]:
        case Number(value):
            return Const(value)
        case Position(axis):
            return Pos(axes.names(axis)[0])
        case Dimension(dim):
            return In(f"${dim}", (), I32)
        case Apply(op, args):
            parts = [_term(dag, axes, a) for a in args]
            return _apply(op, [p for p in parts if p is not None]) if None not in parts else None
        case _:
            return None


def _apply(op: str, parts: list[Term]) -> Term:
    if op == "sel":
        return Sel(*parts)
    return Un(op, *parts) if len(parts) == 1 else Bin(op, *parts)
