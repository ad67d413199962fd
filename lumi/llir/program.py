"""A kernel in the form that code is made from: nests of loops over definitions.

- A loop that only accumulates (`next = previous op reduction`) becomes `Fold`s: reductions with their
  own range, evaluated wherever they are used, in registers.
- A loop of stores alone becomes nests.  Any other loop stays a `TileLoop`.
- Everything else is a definition, evaluated where it is used, once for each point of its own axes.  A
  value that would be computed many times over for that is put into an array first: `arrays`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lumi.dtype import I32, DType
from lumi.llir.kernel import (
    Carry,
    Dot,
    Kernel,
    Load,
    Loop,
    Map,
    Operand,
    Position,
    Reduce,
    Statement,
    Store,
    Symbol,
    walk,
)
from lumi.memo import Memo

_COMBINE = {"sum": "add", "max": "max", "mul": "mul"}


@dataclass(frozen=True, slots=True)
class Fold:
    """The combination by `op` over `over` of a value, or of the product of two.

    Each axis runs over its current range, which is the whole axis or chunk when the fold was a loop of
    its own (`loop`).  Folds of one loop with equal axes are computed together.
    """

    var: str
    op: str
    over: tuple[str, ...]
    terms: tuple[Operand, ...]
    axes: tuple[str, ...]
    dtype: DType
    loop: Loop | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """A value that lies in an array of its own: a carry, during its loop or after."""

    var: str
    axes: tuple[str, ...]
    dtype: DType


Definition: TypeAlias = "Load | Position | Symbol | Map | Fold | Slot"


@dataclass(frozen=True, slots=True)
class Write:
    """Put the value of `var` into its array."""

    var: str
    axes: tuple[str, ...]


Root: TypeAlias = "Store | Write"


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops over `axes` whose body computes and writes the roots, all of which have those axes."""

    axes: tuple[str, ...]
    roots: tuple[Root, ...]


@dataclass(frozen=True, slots=True)
class TileLoop:
    """A loop over tiles whose carries lie in arrays."""

    loop: Loop
    items: tuple[Item, ...]


Item: TypeAlias = "Nest | TileLoop"


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel as nests, with tiles as they are run.

    `levels[v]` is the number of tile loops that v must be inside of.  `carried` are the values that need
    what a tile loop carries, and so belong to one cell.  `loops` are those that became folds or nests.
    `arrays` are the values that lie in memory of the cell, `in_place` the carries whose next
    value may be written over the previous one.
    """

    kernel: Kernel
    tiles: Mapping[str, int]
    definitions: Mapping[str, Definition]
    levels: Mapping[str, int]
    carried: frozenset[str]
    loops: tuple[Loop, ...]
    arrays: frozenset[str]
    in_place: frozenset[str]
    items: tuple[Item, ...]


def dtype_of(definition: Definition) -> DType:
    """The type of a definition's value."""
    return I32 if isinstance(definition, (Position, Symbol)) else definition.dtype


def axes_of(definition: Definition) -> tuple[str, ...]:
    """The axes of a definition's value."""
    match definition:
        case Position(_, axis):
            return (axis,)
        case Symbol():
            return ()
        case _:
            return definition.axes


def arguments(definition: Definition) -> tuple[str, ...]:
    """The values a definition reads."""
    match definition:
        case Load(_, _, data, _, _):
            found: tuple[Operand, ...] = data
        case Map(_, _, args, _, _):
            found = args
        case Fold(_, _, _, terms, _, _, _):
            found = terms
        case _:
            found = ()
    return tuple([a for a in found if isinstance(a, str)])


@Memo
def carries(body: tuple[Statement, ...]) -> bool:
    """Whether some loop of a tile program holds tiles of what it carries around, and is not plain."""
    return not all(is_plain(s) for s in body if isinstance(s, Loop))


@Memo
def is_plain(loop: Loop) -> bool:
    """Whether a loop only accumulates reductions over its tiles, or only stores."""
    if not all(is_plain(s) for s in loop.body if isinstance(s, Loop)):
        return False
    if not loop.carries:
        return not loop.guards and loop.chunk is None
    inner = list(walk(loop.body))
    if any(isinstance(s, Store) for s in inner):
        return False
    readers = Counter(o for s in inner for o in frozenset(operands(s)))
    return all(_accumulates(c, loop, readers) for c in loop.carries)


def _accumulates(carry: Carry, loop: Loop, readers: Mapping[Operand, int]) -> bool:
    """Whether the carry is `next = previous op (reduction over the loop's axes)` and nothing else.

    `readers` counts the statements that read each value; those of a carry and of what it becomes are one.
    """
    partial = partial_of(carry, loop)
    if (
        partial is None
        or partial.axes != carry.axes
        or (readers[carry.previous], readers[carry.next]) != (1, 0)
    ):
        return False
    return not any(c is not carry and carry.next in (c.next, c.previous) for c in loop.carries)


def partial_of(carry: Carry, loop: Loop) -> Reduce | Dot | None:
    """The reduction of one tile that a carry takes in, when it takes in just that."""
    made = {s.var: s for s in loop.body if isinstance(s, (Map, Reduce, Dot))}
    update = made.get(carry.next)
    if not isinstance(update, Map) or update.op != _COMBINE[carry.op] or carry.previous not in update.args:
        return None
    others = [a for a in update.args if a != carry.previous]
    partial = made.get(others[0]) if len(others) == 1 and isinstance(others[0], str) else None
    if not isinstance(partial, (Reduce, Dot)) or not set(loop.axes) <= set(partial.over):
        return None
    same = carry.op == (partial.op if isinstance(partial, Reduce) else "sum")
    return partial if same and partial.dtype == carry.dtype else None


def operands(statement: Statement) -> tuple[Operand, ...]:
    """What a statement computes with."""
    match statement:
        case Load(_, _, data, _, _):
            return data
        case Map(_, _, args, _, _):
            return args
        case Reduce(_, _, _, value, _, _) | Store(_, value, _):
            return (value,)
        case Dot(_, _, a, b, _, _):
            return (a, b)
        case _:
            return ()


def fold(statement: Reduce | Dot) -> Fold:
    """A reduction statement as a fold over the current ranges."""
    if isinstance(statement, Dot):
        terms: tuple[Operand, ...] = (statement.a, statement.b)
        return Fold(statement.var, "sum", statement.over, terms, statement.axes, statement.dtype)
    return Fold(
        statement.var, statement.op, statement.over, (statement.value,), statement.axes, statement.dtype
    )
