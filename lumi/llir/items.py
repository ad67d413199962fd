"""The nests and tile loops of a kernel in order, those next to each other as one where they can be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lumi.llir.kernel import Loop, Operand, Statement, Store
from lumi.llir.program import (
    Definition,
    Fold,
    Item,
    Nest,
    Root,
    Slot,
    TileLoop,
    Write,
    arguments,
    axes_of,
    is_plain,
)


def arranged(
    body: Iterable[Statement],
    table: Mapping[str, Definition],
    levels: Mapping[str, int],
    arrays: Collection[str],
) -> tuple[Item, ...]:
    """What a body does in order, `levels` being the number of tile loops that each value is inside of."""
    build = _Items(table, levels, arrays)
    build.add(body, 0)
    return _merged(build.blocks[0], table)


@dataclass(slots=True)
class _Items:
    """Nests and tile loops in order; `blocks[level]` is the block being filled inside so many loops."""

    table: Mapping[str, Definition]
    levels: Mapping[str, int]
    arrays: Collection[str]
    blocks: list[list[Item]] = field(default_factory=lambda: [[]])

    def add(self, body: Iterable[Statement], level: int) -> None:
        for statement in body:
            match statement:
                case Store():
                    self.blocks[level].append(Nest(statement.axes, (statement,)))
                case Loop() if is_plain(statement):
                    self.add(statement.body, level)
                    for carry in statement.carries:
                        self._write(carry.final)
                case Loop():
                    self.blocks.append([])
                    self.add(statement.body, level + 1)
                    self.blocks[level].append(TileLoop(statement, _merged(self.blocks.pop(), self.table)))
                case _:
                    self._write(statement.var)

    def _write(self, var: str) -> None:
        if var in self.arrays and not isinstance(self.table[var], Slot):
            axes = axes_of(self.table[var])
            self.blocks[self.levels[var]].append(Nest(axes, (Write(var, axes),)))


def _merged(items: Iterable[Item], table: Mapping[str, Definition]) -> tuple[Item, ...]:
    """Neighbouring nests over the same axes as one: what they share is computed once a point.

    A nest that reduces what the one before it writes waits until all points of that are there.
    """
    merged: list[Item] = []
    for item in items:
        last = merged[-1] if merged else None
        if isinstance(item, Nest) and isinstance(last, Nest) and _are_one(last, item, table):
            merged[-1] = Nest(last.axes, (*last.roots, *item.roots))
        else:
            merged.append(item)
    return tuple(merged)


def _are_one(first: Nest, second: Nest, table: Mapping[str, Definition]) -> bool:
    """Whether nests are over the same axes, and each point of the second needs that of the first alone."""
    if set(first.axes) != set(second.axes):
        return False
    written = frozenset(_written(first.roots))
    return not any(_reduces(r.value if isinstance(r, Store) else r.var, written, table) for r in second.roots)


def _reduces(root: Operand, written: frozenset[str], table: Mapping[str, Definition]) -> bool:
    """Whether a value is made of a reduction of values that are `written`, over some of their axes."""
    todo: list[tuple[Operand, frozenset[str]]] = [(root, frozenset())]
    known = set(todo)
    while todo:
        var, over = todo.pop()
        if not isinstance(var, str):
            continue
        definition = table[var]
        if var in written and not over.isdisjoint(axes_of(definition)):
            return True
        if isinstance(definition, Fold):
            over |= frozenset(definition.over)
        more = {(argument, over) for argument in arguments(definition)} - known
        known |= more
        todo += more
    return False


def in_place(items: tuple[Item, ...], readers: Mapping[str, set[str]]) -> Iterator[str]:
    """Carries read only by the nest that writes their next value."""
    for item in items:
        if isinstance(item, TileLoop):
            yield from in_place(item.items, readers)
            for carry in item.loop.carries:
                nests = [set(_written(n.roots)) for n in item.items if isinstance(n, Nest)]
                if any(carry.next in n and readers.get(carry.previous, set()) <= n for n in nests):
                    yield carry.previous


def _written(roots: tuple[Root, ...]) -> tuple[str, ...]:
    return tuple(r.var for r in roots if isinstance(r, Write))
