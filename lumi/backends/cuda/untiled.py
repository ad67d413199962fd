"""Kernels without loops over tiles: every loop runs once, over all of its axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lumi.llir import arithmetic
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Map, Operand, Reduce, Statement, Store, walk


def untiled(kernel: Kernel) -> Kernel | None:
    """The kernel with all loops run in one tile; None where one takes chunks of an axis.

    What a loop carries begins as the identity, and ends as what its one turn makes of that.  Guards are
    dropped: they tell of tiles that would change nothing.
    """
    if any(s.chunk is not None for s in walk(kernel.body) if isinstance(s, Loop)):
        return None
    body, _ = _flat(kernel.body, {})
    return replace(kernel, body=body)


def _flat(
    body: tuple[Statement, ...], known: Mapping[str, Operand]
) -> tuple[tuple[Statement, ...], dict[str, Operand]]:
    """Statements without loops, and what stands for names that loops define; `known` does so already."""
    names, flat = dict(known), list[Statement]()
    for statement in body:
        if not isinstance(statement, Loop):
            flat.append(_renamed(statement, names))
            continue
        for carry in statement.carries:
            names[carry.previous] = float(arithmetic.identity(carry.op, carry.dtype))
        inner, names = _flat(statement.body, names)
        flat += inner
        for carry in statement.carries:
            names[carry.final] = names.get(carry.next, carry.next)
    return tuple(flat), names


def _renamed(statement: Statement, names: Mapping[str, Operand]) -> Statement:
    def one(operand: Operand) -> Operand:
        return names.get(operand, operand) if isinstance(operand, str) else operand

    match statement:
        case Load():
            return replace(statement, data=tuple(map(one, statement.data)))
        case Map():
            return replace(statement, args=tuple(map(one, statement.args)))
        case Reduce() | Store():
            return replace(statement, value=one(statement.value))
        case Dot():
            return replace(statement, a=one(statement.a), b=one(statement.b))
        case _:
            return statement
