"""Where in a loop over tiles nothing is masked, and which tiles can be skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lumi.backends.cuda.mma.form import Cascade
from lumi.backends.cuda.scope import Writer
from lumi.dtype import I32
from lumi.field.term import BINARY, Bin, Const, In, Pos, Term, Un
from lumi.llir import skip
from lumi.llir.kernel import Map, Operand, Position, Symbol
from lumi.llir.program import Program

Ends = Mapping[str, tuple[str, str]]
Test = Callable[[Writer, Ends, str], str]
"""CUDA for a test of a tile, from the ends of its axes and from a test that it ends within the loop."""


@dataclass(frozen=True, slots=True)
class Masks:
    """The conditions of selections in a loop that positions and dims alone decide, and what they say."""

    terms: tuple[Term, ...]
    tests: frozenset[str]


def find(program: Program, cascade: Cascade) -> Masks:
    """The conditions in a cascade."""
    found: dict[str, Term] = {}
    for statement in cascade.loop.body:
        if isinstance(statement, Map) and statement.op == "sel" and cascade.axis in statement.axes:
            test = statement.args[0]
            term = _term(program, test)
            if isinstance(test, str) and term is not None:
                found[test] = term
    return Masks(tuple(found.values()), frozenset(found))


def _term(program: Program, operand: Operand) -> Term | None:
    """A value as a term over positions and dims; None where it depends on more."""
    if not isinstance(operand, str):
        return Const(operand)
    match program.definitions[operand]:
        case Position(_, axis):
            return Pos(axis)
        case Symbol(_, name):
            return In(f"${name}", (), I32)
        case Map(_, "not", (a,)):
            inner = _term(program, a)
            return None if inner is None else Un("not", inner)
        case Map(_, op, (a, b)) if op in BINARY:
            first, second = _term(program, a), _term(program, b)
            return None if first is None or second is None else Bin(op, first, second)
        case _:
            return None


def may_hold(guards: Iterable[Term]) -> Test:
    """A test for whether all guards may hold somewhere in a tile."""

    def text(w: Writer, ends: Ends, within: str) -> str:
        nowhere = skip.holds_nowhere(guards, _positions(w, ends), _declare(w))
        return f"!({nowhere})" if nowhere else "true"

    return text


def is_whole(masks: Masks) -> Test:
    """A test for whether all conditions hold everywhere in a tile that ends within the loop."""

    def text(w: Writer, ends: Ends, within: str) -> str:
        everywhere = skip.holds_everywhere(masks.terms, _positions(w, ends), _declare(w))
        return f"{within} && {everywhere}" if everywhere else within

    return text


def _positions(w: Writer, ends: Ends) -> Callable[[str], tuple[str, str]]:
    def positions(axis: str) -> tuple[str, str]:
        if axis in ends:
            return ends[axis]
        opened = w.opened(axis)
        assert opened is not None, f"axis {axis} is not open"
        return w.ends(opened)

    return positions


def _declare(w: Writer) -> Callable[[str, str], str]:
    return lambda text, stem: w.declare("double", text, stem)
