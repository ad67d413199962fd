"""Factors whose lines lie anywhere: each is looked up, and one that a condition leaves out is 0.

So are the rows of an image under a window of a convolution, which may lie outside of it, and rows that other
data choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from lumi.backends.cuda.mma.form import Stored
from lumi.dim import Extent
from lumi.field.access import Access
from lumi.field.index import Index, Quot, Rem, index, of_axis
from lumi.llir.kernel import Kernel, Load, Map, Operand, Position
from lumi.llir.program import Definition, Program

Table = Mapping[str, Definition]


def selected(table: Table, operand: Operand) -> tuple[Operand, str | None]:
    """A factor without the selection that makes it 0 elsewhere, and the condition of that."""
    definition = table[operand] if isinstance(operand, str) else None
    match definition:
        case Map(_, "cast.f32", (str(narrow),)):
            inner, seen = selected(table, narrow)
            return (operand, None) if seen is None else (inner, seen)
        case Map(_, "sel", (str(seen), str(inner), 0.0)):
            return inner, seen
        case _:
            return operand, None


def is_line(kernel: Kernel, load: Load, along: str) -> bool:
    """Whether neighbours along an axis are neighbours in memory, wherever their line lies."""
    access = load.access
    last = access.index[-1]
    if any(along in i.axes() for i in access.index[:-1]) or (along, 1) not in last.terms or last.data():
        return False
    if any(isinstance(p, Quot | Rem) and along in p.index.axes() for p, _ in last.terms):
        return False
    return not access.clamp or _is_inside(kernel, last, access.shape[-1], [])


def multiples(factor: Stored) -> Access:
    """An access that stands at a multiple of some number of elements where all lines do."""
    access = factor.load.access
    anywhere = [access.clamp or bool(i.data()) for i in access.index[:-1]]
    line = factor.outer if factor.is_summed_along else factor.summed
    places = [of_axis(line) if away else i for i, away in zip(access.index, anywhere, strict=False)]
    return replace(access, index=(*places, access.index[-1]), clamp=False)


def exact(program: Program, factor: Stored) -> Access:
    """The access of a factor where it is seen: not clamped, if it is known to be inside of its buffer."""
    access = factor.load.access
    facts = list(_facts(program.definitions, factor.seen)) if factor.seen is not None else []
    inside = [
        _is_inside(program.kernel, i, size, facts) for i, size in zip(access.index, access.shape, strict=True)
    ]
    return replace(access, clamp=False) if all(inside) else access


# -- what conditions say of positions


def _facts(table: Table, condition: Operand) -> Iterator[Index]:
    """Indices that are not negative where a condition holds."""
    match table[condition] if isinstance(condition, str) else None:
        case Map(_, "and", (a, b)):
            yield from _facts(table, a)
            yield from _facts(table, b)
        case Map(_, "lt", (a, b)):
            low, high = _linear(table, a), _linear(table, b)
            if low is not None and high is not None:
                yield high + low.scale(-1) + -1
        case Map(_, "not", (str(inner),)):
            yield from _denied(table, inner)
        case _:
            pass


def _denied(table: Table, condition: str) -> Iterator[Index]:
    """Indices that are not negative where a comparison does not hold."""
    match table[condition]:
        case Map(_, "lt", (a, b)):
            low, high = _linear(table, a), _linear(table, b)
            if low is not None and high is not None:
                yield low + high.scale(-1)
        case _:
            pass


def _linear(table: Table, operand: Operand) -> Index | None:
    """A value as an index over positions; None where it is none."""
    if not isinstance(operand, str):
        return Index((), int(operand)) if float(operand).is_integer() else None
    match table[operand]:
        case Position(_, axis):
            return of_axis(axis)
        case Map(_, "add" | "sub" as op, (a, b)):
            first, second = _linear(table, a), _linear(table, b)
            if first is None or second is None:
                return None
            return first + (second if op == "add" else second.scale(-1))
        case Map(_, "mul", (str(a), float(c)) | (float(c), str(a))) if c.is_integer():
            inner = _linear(table, a)
            return None if inner is None else inner.scale(int(c))
        case Map(_, "div" | "rem" as op, (str(a), float(c))) if c.is_integer() and c > 0:
            inner = _linear(table, a)
            if inner is None or not _is_positive(inner):
                return None
            return index([(Quot(inner, int(c)) if op == "div" else Rem(inner, int(c)), 1)])
        case _:
            return None


def _is_positive(inner: Index) -> bool:
    """Whether an index of positions alone is nowhere negative."""
    return inner.offset >= 0 and all(c > 0 for _, c in inner.terms) and not inner.data()


def _is_inside(kernel: Kernel, place: Index, size: Extent, facts: list[Index]) -> bool:
    """Whether an index is one of a dimension of that size, where some indices are not negative."""
    match place:
        case Index(((str(axis), 1),), 0) if kernel.axes[axis] == size:
            return True
        case Index(((Quot(Index(((str(axis), 1),), 0), step), 1),), 0) if kernel.axes[axis] == size * step:
            return True
        case _:
            pass
    if not isinstance(size, int):
        return False
    return all(_holds(kernel, end, facts) for end in (place, place.scale(-1) + (size - 1)))


def _holds(kernel: Kernel, end: Index, facts: list[Index]) -> bool:
    """Whether an index is known not to be negative."""
    for fact in (Index(), *facts):
        rest = end + fact.scale(-1)
        lows = [_low(kernel, part, c) for part, c in rest.terms]
        if all(low is not None for low in lows) and rest.offset + sum(low or 0 for low in lows) >= 0:
            return True
    return False


def _low(kernel: Kernel, part: object, coefficient: int) -> int | None:
    """The least value of a part of an index, times its coefficient; None when it is not known."""
    if coefficient > 0:
        known = isinstance(part, str | Rem) or (isinstance(part, Quot) and _is_positive(part.index))
        return 0 if known else None
    high = _high(kernel, part)
    return None if high is None else coefficient * high


def _high(kernel: Kernel, part: object) -> int | None:
    match part:
        case str():
            extent = kernel.axes[part]
            return extent - 1 if isinstance(extent, int) else None
        case Rem(_, divisor):
            return divisor - 1
        case Quot(Index(((str(axis), 1),), 0), divisor):
            extent = kernel.axes[axis]
            return (extent - 1) // divisor if isinstance(extent, int) else None
        case _:
            return None
