"""Whether a kernel may write its result over one of its inputs, and the kernel that does.

A kernel runs its cells in any order, and a device may delay a load until its value is used.  Writing in
place is safe when each element is read only by the cell and the step that then writes it, and when
nothing after the write needs what was read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lumi.field.access import Access
from lumi.field.index import Index
from lumi.llir.check import operands
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Map, Operand, Reduce, Statement, Store


def merge(kernel: Kernel, old: str, new: str) -> Kernel | None:
    """The kernel with its output `new` laid over its input `old`, called `old`; None when that is unsafe."""
    if not _is_safe(kernel, old, new):
        return None
    return replace(kernel, body=tuple(_rename(s, new, old) for s in kernel.body))


def _rename(statement: Statement, name: str, to: str) -> Statement:
    match statement:
        case Load(_, access) if access.buffer == name:
            return replace(statement, access=replace(access, buffer=to))
        case Store(access) if access.buffer == name:
            return replace(statement, access=replace(access, buffer=to))
        case Loop():
            return replace(statement, body=tuple(_rename(s, name, to) for s in statement.body))
        case _:
            return statement


def _is_safe(kernel: Kernel, old: str, new: str) -> bool:
    steps = list(_walk(kernel.body, ()))
    loads = [
        (t, s.access) for t, (s, _) in enumerate(steps) if isinstance(s, Load) and s.access.buffer == old
    ]
    stores = [t for t, (s, _) in enumerate(steps) if isinstance(s, Store) and s.access.buffer == new]
    rereads = any(isinstance(s, Load) and s.access.buffer == new for s, _ in steps)
    overwrites = any(isinstance(s, Store) and s.access.buffer == old for s, _ in steps)
    looked = any(look.buffer == old for s, _ in steps if isinstance(s, Store) for look in s.access.looks())
    if len(stores) != 1 or rereads or overwrites or looked:
        return False
    time = stores[0]
    store, loops = steps[time]
    assert isinstance(store, Store)
    if not _covers_once(store.access, kernel, loops):
        return False
    place = store.access.index, store.access.shape
    if any(t > time or (a.index, a.shape) != place or a.clamp for t, a in loads):
        return False
    return not _is_needed_after(kernel, old, [*loops, *(s for s, _ in steps[time + 1 :])])


def _walk(
    body: tuple[Statement, ...], loops: tuple[Loop, ...]
) -> Iterator[tuple[Statement, tuple[Loop, ...]]]:
    for statement in body:
        yield statement, loops
        if isinstance(statement, Loop):
            yield from _walk(statement.body, (*loops, statement))


def _covers_once(access: Access, kernel: Kernel, loops: tuple[Loop, ...]) -> bool:
    """Whether no two cells or steps of the loops around a store write the same element."""
    names = [index.axis for index in access.index if index != Index()]
    if None in names or len(set(names)) != len(names):
        return False
    around = {*kernel.grid, *(a for loop in loops for a in loop.axes)}
    return around <= set(names) and all(loop.chunk is None for loop in loops)


def _is_needed_after(kernel: Kernel, old: str, later: list[Statement]) -> bool:
    """Whether a later statement uses something computed from `old`; a loop around uses what it carries."""
    tainted: set[Operand] = set()
    _taint(kernel.body, old, tainted)
    return any(not tainted.isdisjoint(_uses(s)) for s in later)


def _taint(body: tuple[Statement, ...], old: str, tainted: set[Operand]) -> None:
    for s in body:
        if isinstance(s, Loop):
            while True:
                known = len(tainted)
                tainted |= {c.previous for c in s.carries if c.next in tainted}
                _taint(s.body, old, tainted)
                if len(tainted) == known:
                    break
            tainted |= {c.final for c in s.carries if c.next in tainted}
        elif isinstance(s, Load | Map | Reduce | Dot):
            reads_old = isinstance(s, Load) and s.access.buffer == old
            if reads_old or not tainted.isdisjoint(_uses(s)):
                tainted.add(s.var)


def _uses(statement: Statement) -> tuple[Operand, ...]:
    """The values a statement needs; a loop needs at its end what it carries on."""
    if isinstance(statement, Loop):
        return tuple(c.next for c in statement.carries)
    return operands(statement)
