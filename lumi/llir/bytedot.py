"""Sums of products of bytes: i32 sums whose two factors are i8 values that were widened.

Machines multiply bytes several times as fast as they multiply 32-bit integers, so that such a sum is worth
computing from bytes that are never widened one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lumi.dtype import I8, I32, U8, DType
from lumi.llir.kernel import Dot, Load, Map, Operand, Reduce, Statement, walk
from lumi.llir.program import Definition, Fold
from lumi.memo import Memo

Made: TypeAlias = "Definition | Dot | Reduce"
Table: TypeAlias = Mapping[str, Made]
"""Values of a kernel, as statements or as definitions of a program, by their names."""


@dataclass(frozen=True, slots=True)
class ByteDots:
    """The sums of products of bytes in a kernel, and the elementwise values that unpack their factors."""

    sums: frozenset[str] = frozenset()
    unpacked: frozenset[str] = frozenset()


@Memo
def find(body: tuple[Statement, ...]) -> ByteDots:
    """The sums of products of bytes in the body of a kernel."""
    dots = [s for s in walk(body) if isinstance(s, Dot) and s.dtype == I32]
    if not dots:
        return ByteDots()
    values: dict[str, Made] = {s.var: s for s in walk(body) if isinstance(s, Load | Map | Dot | Reduce)}
    dots = [d for d in dots if is_byte_dot(d, values)]
    below = (v for d in dots for v in _below((d.a, d.b), frozenset(d.over), values))
    return ByteDots(frozenset(d.var for d in dots), frozenset(below))


def is_byte_dot(made: Made, values: Table) -> bool:
    """Whether a value is a sum of products of bytes that integers alone make, down to their loads.

    What is rounded to bytes in the same kernel is not: it lies in no memory as bytes.
    """
    match made:
        case Dot(_, _, a, b, _, dtype):
            terms: Sequence[Operand] = (a, b)
        case Fold(_, "sum", _, terms, _, dtype, _):
            pass
        case _:
            return False
    return dtype == I32 and len(terms) == 2 and all(_is_widened(t, values) for t in terms)


def _is_widened(operand: Operand, values: Table) -> bool:
    made = values.get(operand) if isinstance(operand, str) else None
    if not isinstance(made, Map) or made.op != "cast.i32" or not isinstance(made.args[0], str):
        return False
    return _dtype(made.args[0], values) == I8 and _is_whole(made.args[0], values)


def _is_whole(var: str, values: Table) -> bool:
    """Whether a value is made by integers; what is in no table, as a position is."""
    made = values.get(var)
    if made is not None and _dtype(var, values) not in (I8, U8, I32, None):
        return False
    return not isinstance(made, Map) or all(_is_whole(a, values) for a in made.args if isinstance(a, str))


def _dtype(var: str, values: Table) -> DType | None:
    return getattr(values.get(var), "dtype", None)


def _below(operands: Sequence[Operand], over: frozenset[str], values: Table) -> Iterator[str]:
    for operand in operands:
        made = values.get(operand) if isinstance(operand, str) else None
        if isinstance(made, Map) and over & set(made.axes):
            yield made.var
            yield from _below(made.args, over, values)
