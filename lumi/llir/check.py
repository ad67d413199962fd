"""Whether a kernel is well formed: axes exist, values are assigned once and before use, operators known.

Whatever makes code from a kernel may rely on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from lumi.dtype import DTYPES
from lumi.errors import LumiError
from lumi.field.term import BINARY, UNARY
from lumi.llir.kernel import (
    Dot,
    Kernel,
    Load,
    Loop,
    Map,
    Operand,
    Position,
    Reduce,
    Statement,
    Step,
    Store,
    Symbol,
    accesses,
    are_apart,
    buffers,
    walk,
    written,
)

ARITY = dict.fromkeys(UNARY, 1) | dict.fromkeys(BINARY, 2) | {"sel": 3}
"""Operands of every operator that `Map` takes, casts apart."""

MONOIDS = ("sum", "max", "mul")
"""What `Reduce` and `Carry` combine with."""


def check(kernel: Kernel, name: str) -> None:
    """Raise `LumiError` ("kernel error") for the first fault; `name` is what the kernel is called."""
    fault = next(_faults(kernel), None)
    if fault:
        raise LumiError("kernel error", f"kernel {name} {fault}")


def check_step(step: Step, name: str) -> None:
    """Raise `LumiError` ("kernel error") for the first fault of what a launch runs.

    That is one of its kernels, or a kernel that touches what one beside it writes.
    """
    for kernel in step.kernels:
        check(kernel, name)
    for turn in step.turns:
        if turn.then:
            raise LumiError("kernel error", f"what comes in turn in {name} has turns of its own")
        for one, other in combinations(turn.kernels, 2):
            if not are_apart(one, other):
                shared = (written(one) & set(buffers(other))) | (written(other) & set(buffers(one)))
                raise LumiError("kernel error", f"kernels that run together in {name} share {min(shared)}")


def _faults(kernel: Kernel) -> Iterator[str]:
    yield from _axis_faults(kernel)
    yield from _access_faults(kernel)
    yield from _operator_faults(kernel)
    yield from _value_faults(kernel.body, set(), set())


def _axis_faults(kernel: Kernel) -> Iterator[str]:
    used = {*kernel.grid, *kernel.resident, *kernel.tiles}
    for statement in walk(kernel.body):
        used |= set(axes_of(statement))
    for access, _ in accesses(kernel):
        used |= access.axes()
    for axis in sorted(used - set(kernel.axes)):
        yield f"has no axis {axis}"
    if any(tile < 1 for tile in kernel.tiles.values()):
        yield "has an empty tile"


def _access_faults(kernel: Kernel) -> Iterator[str]:
    for statement in walk(kernel.body):
        if isinstance(statement, Load | Store):
            access = statement.access
            if len(access.index) != len(access.shape):
                yield f"takes {len(access.index)} indices of {access.buffer}, which has {len(access.shape)}"
            count = len(statement.data) if isinstance(statement, Load) else 0
            if any(not 0 <= number < count for number in access.data()):
                yield f"indexes {access.buffer} by data that is not given"
            looks = access.looks()
            if looks and isinstance(statement, Load):
                yield f"looks up where to load of {access.buffer}, as only stores may"
            for look in looks:
                if len(look.index) != len(look.shape):
                    yield f"takes {len(look.index)} indices of {look.buffer}, which has {len(look.shape)}"


def _operator_faults(kernel: Kernel) -> Iterator[str]:
    for statement in walk(kernel.body):
        match statement:
            case Map(_, op, args):
                if _arity(op) != len(args):
                    yield f"gives {len(args)} operands to {op}"
            case Reduce(_, op) if op not in MONOIDS:
                yield f"reduces by {op}"
            case Loop(_, _, _, carries) if any(c.op not in MONOIDS for c in carries):
                yield f"carries by {next(c.op for c in carries if c.op not in MONOIDS)}"
            case _:
                pass


def _arity(op: str) -> int:
    head, dot, dtype = op.partition(".")
    if dot and head in ("cast", "bits") and dtype in DTYPES:
        return 1
    return ARITY.get(op, -1)


def _value_faults(body: tuple[Statement, ...], known: set[str], assigned: set[str]) -> Iterator[str]:
    """Faults of a block in which `known` values may be used; adds what stays known after it."""

    def assign(names: tuple[str, ...]) -> Iterator[str]:
        for name in names:
            if name in assigned:
                yield f"assigns {name} twice"
            assigned.add(name)
            known.add(name)

    for statement in body:
        for operand in operands(statement):
            if isinstance(operand, str) and operand not in known:
                yield f"uses {operand}, which has no value there"
        if isinstance(statement, Loop):
            before = set(known)
            yield from assign(tuple(c.previous for c in statement.carries))
            yield from _value_faults(statement.body, known, assigned)
            for carry in statement.carries:
                if carry.next not in known:
                    yield f"carries {carry.next}, which has no value there"
            known.intersection_update(before)
            yield from assign(tuple(c.final for c in statement.carries))
        elif not isinstance(statement, Store):
            yield from assign((statement.var,))


def axes_of(statement: Statement) -> tuple[str, ...]:
    """Every axis that a statement names, its body apart."""
    match statement:
        case Position(_, axis):
            return (axis,)
        case Symbol():
            return ()
        case Reduce() | Dot():
            return (*statement.over, *statement.axes)
        case Loop():
            chunk = () if statement.chunk is None else (statement.chunk,)
            return (*statement.axes, *chunk, *(a for carry in statement.carries for a in carry.axes))
        case Load() | Map() | Store():
            return statement.axes


def operands(statement: Statement) -> tuple[Operand, ...]:
    """The values and numbers that a statement uses; a loop's are those of its body."""
    match statement:
        case Load(data=data):
            return data
        case Map(args=args):
            return args
        case Reduce(value=value) | Store(value=value):
            return (value,)
        case Dot(a=a, b=b):
            return a, b
        case Position() | Symbol() | Loop():
            return ()
