"""Kernels whose blocks share the cells of a grid: the code of the templates that choose no other way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TypeAlias

from lumi import dim
from lumi.backends.clike.cells import Cells
from lumi.backends.clike.loops import tile_range, whole
from lumi.backends.clike.scope import Scope
from lumi.backends.cuda import ctype, frame, tiling
from lumi.backends.cuda.ctype import register
from lumi.backends.cuda.nests import Nests
from lumi.backends.cuda.scope import Blocking, Opened, Value, Writer, single
from lumi.dtype import DType
from lumi.llir import arithmetic, spell
from lumi.llir.arrange import arrange
from lumi.llir.kernel import Carry, Kernel, dims
from lumi.llir.program import Fold, Item, Nest, Program

SHARED = 96 << 10
"""Bytes of shared memory that a block may use on every GPU since compute capability 8.0 but one."""

RESIDENT = 64
"""Blocks a multiprocessor is given at most; with more cells each block runs several."""

SHORT = 4096
"""The same for kernels whose blocks begin at once: what one does again and again, several do side by side."""

EVERY = 1 << 30
"""The same for kernels each of whose blocks has just one cell: there are as many blocks as cells."""

LARGEST = {True: 1 << 13, False: 1 << 13}
"""Elements an array may have when its value is, or is not, a reduction."""

Grid: TypeAlias = "tuple[tuple[dim.Extent, int], ...]"
"""The extent of each axis of a grid, and its tile."""


def blocking_of(options: Mapping[str, int]) -> Blocking:
    """How the blocks of a schedule with these numbers work."""
    return Blocking(options.get("threads", 256), options.get("rows", 1), options.get("unroll", 2))


def write_cells(
    kernel: Kernel,
    blocking: Blocking,
    name: str,
    names: Mapping[str, str],
    beside: bool = False,
    partial: bool = False,
) -> tuple[CellWriter, str, Grid]:
    """A kernel's function with tiles that fit, its text and its grid.

    A block of it alone has no more warps than have something to do.  With `beside` it is one of several in a
    launch, with `partial` by some of the threads of a block.
    """
    chosen = tiling.tiles(kernel, blocking)
    if _waits(arrange(kernel, chosen, flat=True, largest=LARGEST)):
        chosen = tiling.widened(kernel, chosen)
    if not beside and not partial:
        blocking = replace(blocking, threads=tiling.threads(kernel, chosen, blocking.threads))
    tried: dict[str, int] | None = chosen
    while tried is not None:
        made = CellWriter(kernel, blocking, tried, name, names, partial)
        text = made.write(beside)
        if made.most <= SHARED:
            return made, text, tuple((kernel.axes[a], tried.get(a, 1)) for a in kernel.grid)
        tried = tiling.shrunk(kernel, tried)
    raise ValueError("the values of one cell do not fit shared memory")


def _waits(program: Program) -> bool:
    """Whether threads of a cell wait for each other, though nothing is reduced: for what several need."""
    nests = [i for i in program.items if isinstance(i, Nest)]
    return len(nests) > 1 and not any(isinstance(d, Fold) for d in program.definitions.values())


class CellWriter(Cells[Opened, Value]):
    """Writes the function of a kernel whose blocks take cells of its grid in turn."""

    def __init__(
        self,
        kernel: Kernel,
        blocking: Blocking,
        chosen: Mapping[str, int],
        name: str,
        names: Mapping[str, str],
        partial: bool = False,
    ) -> None:
        self.name = name
        program = arrange(kernel, chosen, flat=True, largest=LARGEST)
        self.w = Writer(program, names, blocking=blocking, partial=partial)
        super().__init__(program, self.w)
        self.nests = Nests(self.w)
        self.held = self.most = 0
        self.counts: dict[str, str] | None = None
        reduces = any(isinstance(d, Fold) for d in program.definitions.values())
        self.resident = RESIDENT if reduces else SHORT

    def write(self, beside: bool) -> str:
        """The kernel; `beside` others, a function that returns the number of cells up to and with its own."""
        w = self.w
        w.scopes = [Scope(0, w.blocking.threads)]
        w.ranges = {a: whole(w, a) for a in self.kernel.axes}
        for number, name in enumerate(dims(self.kernel)):
            w.line(f"const i64 {spell.dim_name(name)} = dims[{number}];")
        once = [i for i in self.program.items if self.is_common(i)]
        first = self._first() if beside else "blockIdx.x"
        if not beside and self.resident == SHORT and self._is_counted():
            self.resident = EVERY
        with ExitStack() as memory:
            self.items(once, memory)
            self._cells([i for i in self.program.items if i not in once], first)
        if beside:
            return frame.member(self.kernel, self.w, self.name, self.most, f"before + {self._total()}")
        return frame.text(self.kernel, self.w, self.name, self.most)

    # -- cells

    def _first(self) -> str:
        """The first cell of a block when `before` cells of others were dealt out; leave where it has none."""
        w, total = self.w, self._total()
        first = w.declare("int", "(blockIdx.x + gridDim.x - before % gridDim.x) % gridDim.x", "first")
        w.line(f"if ({first} >= {total}) return before + {total};")
        return first

    def _total(self) -> str:
        """CUDA for the number of cells."""
        return " * ".join(c for c in self._counts().values() if c != "1") or "1"

    def _is_counted(self) -> bool:
        """Whether it is known how many cells there are, as many as a launch can have blocks."""
        counts = [int(c) if c.isdigit() else 0 for c in self._counts().values()]
        return 0 < math.prod(counts) < 1 << 31

    def _counts(self) -> dict[str, str]:
        """CUDA for the number of cells along each axis of the grid, found once."""
        if self.counts is None:
            self.counts = {}
            for axis in self.kernel.grid:
                tile, span = self.program.tiles.get(axis, 1), self.w.ranges[axis]
                if span.length is not None:
                    self.counts[axis] = str(-(-span.length // tile))
                else:
                    text = span.stop if tile == 1 else f"({span.stop} + {tile - 1}) / {tile}"
                    self.counts[axis] = self.w.declare("int", text, "cells")
        return self.counts

    def _cells(self, items: list[Item], first: str) -> None:
        w, counts, total = self.w, self._counts(), self._total()
        # Written out, a loop would begin with a division for the number of its turns, most often one.
        loop = f"#pragma unroll 1\nfor (int cell = {first}; cell < {total}; cell += gridDim.x) "
        with w.block("" if self.resident == EVERY else loop):
            if self.resident == EVERY:
                w.line(f"const int cell = {first};")
            self._open_grid(counts)
            with ExitStack() as memory:
                self.items(items, memory)

    def _open_grid(self, counts: Mapping[str, str]) -> None:
        """Find the cell's place along each axis of the grid; the last axis runs fastest."""
        w, rest = self.w, "cell"
        long = [a for a in self.kernel.grid if counts[a] != "1"]
        for axis in reversed(self.kernel.grid):
            first = axis in long[:1] or axis not in long
            place = rest if first else f"({rest} % {counts[axis]})"
            place = place if axis in long else "0"
            tile = self.program.tiles.get(axis, 1)
            text = place if tile == 1 or axis not in long else f"{place} * {tile}"
            start = w.declare("int", text, f"x_{spell.identifier(axis)}_")
            if not first:
                rest = w.declare("int", f"{rest} / {counts[axis]}", "rest")
            if tile == 1:
                w.here.opened[axis] = single(start)
            else:
                w.ranges[axis] = tile_range(w, axis, start, w.ranges[axis])

    # -- items

    def nest(self, nest: Nest) -> None:
        """Write a nest."""
        self.nests.write(nest)

    def wait(self, carries: tuple[Carry, ...]) -> None:
        """Let all threads come so far that carries in shared memory can be written or read."""
        if any(self.w.opened(a) is None for c in carries for a in c.axes):
            self.w.barrier()

    def fill(self, carry: Carry) -> None:
        """Give every element of a carry the identity of its operator."""
        start = ctype.literal(float(arithmetic.identity(carry.op, carry.dtype)), carry.dtype)
        self._each(carry, lambda place: f"{self.w.arrays[carry.previous].name}{place} = {start};")

    def same(self, var: str, known: str) -> None:
        """Let a value lie where another does."""
        super().same(var, known)
        if known in self.w.shared:
            self.w.shared.add(var)

    def advance(self, carry: Carry) -> None:
        """Make the next value of a carry, in memory of its own, the previous one."""
        previous, following = self.w.arrays[carry.previous].name, self.w.arrays[carry.next].name
        if carry.previous not in self.w.shared:
            self.w.line(f"{previous} = {following};")
            return
        self.w.barrier()
        self._each(carry, lambda place: f"{previous}{place} = {following}{place};")
        self.w.barrier()

    def _each(self, carry: Carry, statement: Callable[[str], str]) -> None:
        """A statement for each element of a carry, or for the one that every thread holds."""
        if carry.previous not in self.w.shared:
            self.w.line(statement(""))
            return
        size, threads = self.size(self.w.arrays[carry.previous].axes), self.w.blocking.threads
        self.w.line(f"for (int n = threadIdx.x; n < {size}; n += {threads}) {statement('[n]')}")

    # -- arrays

    @contextmanager
    def array(self, var: str, axes: tuple[str, ...], dtype: DType) -> Iterator[None]:
        """Memory for a value over those of its axes that are not open: shared, or a register for one."""
        w, kind, name = self.w, register(dtype).type, self.w.fresh("t")
        long = tuple(a for a in axes if w.opened(a) is None)
        w.hold(var, name, long)
        if not long:
            w.line(f"{kind} {name};")
            yield
            return
        w.shared.add(var)
        before = self.held
        w.line(f"{kind} *const {name} = ({kind} *)(pool + {before});")
        size = self.size(long) * (8 if register(dtype).name.endswith("64") else 4)
        self.held += -(-size // frame.ALIGNMENT) * frame.ALIGNMENT
        self.most = max(self.most, self.held)
        yield
        self.held = before
