"""The work of a grid cell as code: its nests and tile loops in order, and the arrays that both need."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from typing import Generic

from lumi.backends.clike.loops import tiles
from lumi.backends.clike.scope import BaseWriter, Opening, V
from lumi.dtype import DType
from lumi.llir.kernel import Carry, Kernel
from lumi.llir.program import Item, Nest, Program, TileLoop, Write, axes_of, dtype_of


class Cells(ABC, Generic[Opening, V]):
    """Writes the items of a kernel's program."""

    def __init__(self, program: Program, writer: BaseWriter[Opening, V]) -> None:
        self.kernel: Kernel = program.kernel
        self.program, self.writer = program, writer

    @abstractmethod
    def nest(self, nest: Nest) -> None:
        """Write a nest."""

    @abstractmethod
    def array(self, var: str, axes: tuple[str, ...], dtype: DType) -> AbstractContextManager[None]:
        """Memory for a value over those of its axes that are not open, entered into the writer's arrays."""

    @abstractmethod
    def fill(self, carry: Carry) -> None:
        """Give every element of a carry the identity of its operator."""

    @abstractmethod
    def advance(self, carry: Carry) -> None:
        """Make the next value of a carry, in an array of its own, the previous one."""

    def same(self, var: str, known: str) -> None:
        """Let a value lie in the array of another."""
        self.writer.arrays[var] = self.writer.arrays[known]

    def wait(self, carries: tuple[Carry, ...]) -> None:
        """Let everyone who works on the cell have come so far that carries can be written or read."""

    def is_common(self, item: Item) -> bool:
        """Whether an item is the same in every cell: arrays without an axis of the grid."""
        return (
            isinstance(item, Nest)
            and not set(item.axes) & set(self.kernel.grid)
            and all(isinstance(r, Write) and r.var not in self.program.carried for r in item.roots)
        )

    def items(self, items: Iterable[Item], memory: ExitStack) -> None:
        """Write the items of a block; `memory` keeps their arrays until the block ends."""
        nests = [i for i in items if isinstance(i, Nest)]
        for var in (r.var for n in nests for r in n.roots if isinstance(r, Write)):
            if var not in self.writer.arrays:
                definition = self.program.definitions[var]
                memory.enter_context(self.array(var, axes_of(definition), dtype_of(definition)))
        for item in items:
            if isinstance(item, Nest):
                self.nest(item)
            else:
                self._tile_loop(item, memory)

    def size(self, axes: tuple[str, ...]) -> int:
        """Elements over the current ranges of axes.  Raises `ValueError` where nothing bounds one."""
        bounds = [self.writer.ranges[a].bound for a in axes]
        if None in bounds:
            raise ValueError(f"nothing bounds the values over {' '.join(axes)} that a cell must hold")
        return max(math.prod(b for b in bounds if b is not None), 1)

    def _tile_loop(self, item: TileLoop, memory: ExitStack) -> None:
        carries = item.loop.carries
        self.wait(carries)
        for carry in carries:
            self._carry(carry, memory)
        self.wait(carries)
        with tiles(self.writer, item.loop, level=True), ExitStack() as inner:
            self.items(item.items, inner)
            for carry in carries:
                if self.writer.arrays[carry.previous] != self.writer.arrays[carry.next]:
                    self.advance(carry)
        for carry in carries:
            self.same(carry.final, carry.previous)

    def _carry(self, carry: Carry, memory: ExitStack) -> None:
        """Make the array of a carry, filled with the identity, and that of its next value."""
        memory.enter_context(self.array(carry.previous, carry.axes, carry.dtype))
        self.fill(carry)
        if carry.next in self.writer.arrays:
            return
        if carry.previous in self.program.in_place:
            self.same(carry.next, carry.previous)
        else:
            memory.enter_context(self.array(carry.next, carry.axes, carry.dtype))
