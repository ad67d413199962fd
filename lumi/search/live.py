"""How much of a cell's tiles is alive at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

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
from lumi.llir.program import operands
from lumi.memo import Memo

Count = Callable[[tuple[str, ...]], int]
"""Elements of a tile over some axes."""

Tile = tuple[tuple[str, ...], int]
"""The axes of a value and the bytes of an element."""


class _Moment(NamedTuple):
    """What happens at a statement: a loop runs its `inner` block beside what it carries; then values begin.

    `ends[k]` is the number of the statement after which the k-th of them dies; None where it outlives the
    block.
    """

    inner: tuple[_Moment, ...] | None
    carried: Sequence[Tile]
    begun: Sequence[Tile]
    ends: Sequence[int | None]


def live_bytes(kernel: Kernel, count: Count) -> float:
    """The most bytes of tiles alive at once: a value dies after its last use in its own block."""
    return float(_peak(_moments(kernel.body), count))


def _peak(block: tuple[_Moment, ...], count: Count) -> int:
    """The peak of a block."""
    alive = peak = 0
    dying: dict[int, int] = {}
    for place, moment in enumerate(block):
        if moment.inner is not None:
            inside = sum([count(axes) * size for axes, size in moment.carried])
            peak = max(peak, alive + inside + _peak(moment.inner, count))
        for (axes, bytes_), end in zip(moment.begun, moment.ends, strict=True):
            size = count(axes) * bytes_
            alive += size
            if end is not None:
                dying[end] = dying.get(end, 0) + size
        peak = max(peak, alive)
        alive -= dying.pop(place, 0)
    return peak


@Memo
def _moments(body: tuple[Statement, ...]) -> tuple[_Moment, ...]:
    """A kernel's body, the same for all tiles."""
    return _block(body, frozenset())[0]


def _block(
    body: tuple[Statement, ...], kept: frozenset[str]
) -> tuple[tuple[_Moment, ...], frozenset[Operand]]:
    """A block, and all that is used in it; values in `kept` outlive it."""
    last: dict[Operand, int] = {}
    inside: dict[int, tuple[_Moment, ...]] = {}
    for place, statement in enumerate(body):
        used: Iterable[Operand] = operands(statement)
        if isinstance(statement, Loop):
            inside[place], used = _block(statement.body, frozenset([c.next for c in statement.carries]))
        for operand in used:
            last[operand] = place
    found = []
    for place, statement in enumerate(body):
        made = list(_defines(statement))
        ends = [None if n in kept else max(last.get(n, place), place) for n, _ in made]
        carried = list(map(_of_carry, statement.carries)) if isinstance(statement, Loop) else []
        found.append(_Moment(inside.get(place), carried, [tile for _, tile in made], ends))
    return tuple(found), frozenset(last)


def _of_carry(carry: Carry) -> Tile:
    return carry.axes, carry.dtype.size


def _defines(statement: Statement) -> Iterator[tuple[str, Tile]]:
    """The values a statement leaves in its block."""
    match statement:
        case Load(var, _, _, axes, dtype) | Map(var, _, _, axes, dtype):
            yield var, (axes, dtype.size)
        case Reduce(var, _, _, _, axes, dtype) | Dot(var, _, _, _, axes, dtype):
            yield var, (axes, dtype.size)
        case Position(var, axis):
            yield var, ((axis,), 4)
        case Symbol(var, _):
            yield var, ((), 4)
        case Loop(_, _, _, carries, _):
            for carry in carries:
                yield carry.final, _of_carry(carry)
        case Store():
            pass
