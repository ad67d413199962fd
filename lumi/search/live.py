"""How much of a cell's tiles is alive at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
)

Count = Callable[[tuple[str, ...]], int]
"""Elements of a tile over some axes."""


def live_bytes(kernel: Kernel, count: Count) -> float:
    """The most bytes of tiles alive at once: a value dies after its last use in its own block."""
    return _peak(kernel.body, frozenset(), count)


def _peak(body: tuple[Statement, ...], kept: frozenset[str], count: Count) -> float:
    """The peak of a block; values in `kept` outlive it."""
    last: dict[str, int] = {}
    for place, statement in enumerate(body):
        for name in _uses(statement):
            last[name] = place
    alive = peak = 0.0
    dying: dict[int, float] = {}
    for place, statement in enumerate(body):
        if isinstance(statement, Loop):
            carried = sum(_carry_size(c, count) for c in statement.carries)
            inner = _peak(statement.body, frozenset(c.next for c in statement.carries), count)
            peak = max(peak, alive + carried + inner)
        for name, size in _defines(statement, count):
            alive += size
            if name not in kept:
                end = max(last.get(name, place), place)
                dying[end] = dying.get(end, 0.0) + size
        peak = max(peak, alive)
        alive -= dying.pop(place, 0.0)
    return peak


def _carry_size(carry: Carry, count: Count) -> float:
    return count(carry.axes) * carry.dtype.size


def _defines(statement: Statement, count: Count) -> Iterator[tuple[str, float]]:
    """The values a statement leaves in its block, with their bytes."""
    match statement:
        case Load(var, _, _, axes, dtype) | Map(var, _, _, axes, dtype):
            yield var, count(axes) * dtype.size
        case Reduce(var, _, _, _, axes, dtype) | Dot(var, _, _, _, axes, dtype):
            yield var, count(axes) * dtype.size
        case Position(var, axis):
            yield var, count((axis,)) * 4
        case Symbol(var, _):
            yield var, 4
        case Loop(_, _, _, carries, _):
            for carry in carries:
                yield carry.final, _carry_size(carry, count)
        case Store():
            pass


def _uses(statement: Statement) -> Iterator[str]:
    """The values of the enclosing block that a statement needs."""
    match statement:
        case Load(_, _, data, _, _):
            yield from _names(data)
        case Map(_, _, args, _, _):
            yield from _names(args)
        case Reduce(_, _, _, value, _, _) | Store(_, value, _):
            yield from _names((value,))
        case Dot(_, _, a, b, _, _):
            yield from _names((a, b))
        case Loop(_, _, _, _, body):
            for inner in body:
                yield from _uses(inner)
        case Position() | Symbol():
            pass


def _names(operands: tuple[Operand, ...]) -> Iterator[str]:
    return (o for o in operands if isinstance(o, str))
