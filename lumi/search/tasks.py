"""What a tile program does, for the analytic model: the same whatever its tiles and dims.

Nothing here says how often or how much; a kernel's sizes and tiles do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lumi.llir import bytedot
from lumi.llir.bytedot import ByteDots
from lumi.llir.kernel import Dot, Load, Loop, Map, Operand, Position, Reduce, Statement, Store, Symbol
from lumi.memo import Memo

PRICES = {"exp2": 8, "log2": 8, "recip": 8, "recipz": 9, "sqrt": 8, "sin": 12, "div": 8, "rem": 8, "mod": 8}
"""Elementwise operators that cost more than an addition, in additions."""

Axes: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """A tile of elements of so many bytes is loaded; `key` names what of which buffer."""

    axes: Axes
    bytes: int
    key: object


@dataclass(frozen=True, slots=True)
class Computed:
    """Each element of a tile takes as long as `price` additions."""

    axes: Axes
    price: int


@dataclass(frozen=True, slots=True)
class Reduced:
    """A tile is reduced over some axes."""

    axes: Axes
    over: Axes


@dataclass(frozen=True, slots=True)
class Multiplied:
    """A contraction, with the axes of one factor alone and of the other alone."""

    axes: Axes
    rows: Axes
    columns: Axes
    over: Axes


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Factors of bytes are unpacked, or products of them summed up over some axes."""

    axes: Axes
    over: Axes | None
    price: int = 1


@dataclass(frozen=True, slots=True)
class Written:
    """A tile of elements of so many bytes is stored."""

    axes: Axes
    bytes: int


@dataclass(frozen=True, slots=True)
class Repeated:
    """What a loop does in a turn."""

    loop: Loop
    inner: tuple[Task, ...]


Task: TypeAlias = "Read | Computed | Reduced | Multiplied | Unpacked | Written | Repeated"


@Memo
def tasks(body: tuple[Statement, ...]) -> tuple[Task, ...]:
    """What the program of a kernel does in a cell."""
    return tuple(_tasks(body, bytedot.find(body), {}))


def _tasks(body: tuple[Statement, ...], dots: ByteDots, shapes: dict[str, Axes]) -> Iterator[Task]:
    """`shapes` are the axes of the values so far."""
    for statement in body:
        match statement:
            case Load(var, access, _, axes, _):
                shapes[var] = axes
                yield Read(axes, access.dtype.size, (access.buffer, access.index))
            case Position(var, axis):
                shapes[var] = (axis,)
            case Symbol(var, _):
                shapes[var] = ()
            case Map(var, op, _, axes, _):
                shapes[var], price = axes, PRICES.get(op, 1)
                yield Unpacked(axes, None, price) if var in dots.unpacked else Computed(axes, price)
            case Reduce(var, _, over, _, axes, _):
                shapes[var] = axes
                yield Reduced(axes, over)
            case Dot(var, over, a, b, axes, _):
                shapes[var], left, right = axes, _axes(a, shapes), _axes(b, shapes)
                rows, columns = (tuple(x for x in p if x not in q) for p, q in ((left, right), (right, left)))
                is_of_bytes = var in dots.sums
                yield Unpacked(axes, over) if is_of_bytes else Multiplied(axes, rows, columns, over)
            case Store(access, _, axes):
                yield Written(axes, access.dtype.size)
            case Loop():
                shapes |= {name: c.axes for c in statement.carries for name in (c.previous, c.final)}
                yield Repeated(statement, tuple(_tasks(statement.body, dots, shapes)))


def _axes(operand: Operand, shapes: Mapping[str, Axes]) -> Axes:
    return shapes.get(operand, ()) if isinstance(operand, str) else ()
