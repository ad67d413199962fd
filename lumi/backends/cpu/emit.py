"""A step as one C function.

The function is `void name(void *const *buffers, const int64_t *dims)`: buffers and dims in the order of
the step's.  Called by all threads of an OpenMP team
it shares the cells of the grid among them and does not wait at its end; called by one it runs them all.
`source` puts functions and helpers together into a text that compiles alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lumi.backends.clike.cells import Cells
from lumi.backends.clike.helpers import helpers
from lumi.backends.clike.loops import tile_range, whole
from lumi.backends.clike.scope import Scope
from lumi.backends.cpu import ctype, product
from lumi.backends.cpu.ctype import register
from lumi.backends.cpu.lanes import LaneCosts
from lumi.backends.cpu.nests import Nests
from lumi.backends.cpu.scope import Blocking, Opened, Value, Writer
from lumi.dtype import DType
from lumi.llir import arithmetic, spell
from lumi.llir.arrange import arrange
from lumi.llir.kernel import (
    Carry,
    Dot,
    Kernel,
    Loop,
    Map,
    Reduce,
    Step,
    accesses,
    buffers,
    dims,
    walk,
    written,
)
from lumi.llir.program import Item, Nest, is_plain

STACK = 1 << 16
"""Bytes of an array above which it is taken from the heap."""

CELL = 1 << 13
"""Elements of a value above which a cell with a tile loop is made smaller: 32 KiB of f32."""

PIECES = 64
"""Pieces that the cells are handed out in, so that a delayed thread does not hold up the others."""


def emit(step: Step, name: str) -> str:
    """The C function of a step: of several kernels, one that calls theirs in turn.

    Raises `ValueError` when the schedule is not one of the kernel's.
    """
    if len(step.kernels) > 1:
        return _in_turn(step, name)
    if step.schedule.template == "blas":
        found = product.find(step.kernel)
        if found is None:
            raise ValueError("a kernel that is no matrix product is scheduled as one")
        return product.emit(step.kernel, found, name)
    options = dict(step.schedule.options)
    return _Function(step.kernel, Blocking(**options), name).write()


def _in_turn(step: Step, name: str) -> str:
    places = {buffer: number for number, buffer in enumerate(step.buffers)}
    functions, calls, first = list[str](), list[str](), 0
    for turn in step.turns:
        calls += ["#pragma omp barrier"] if calls else []
        for kernel in turn.kernels:
            called = f"{name}_{len(functions)}"
            functions.append(emit(Step(kernel, turn.schedule), called))
            own = ", ".join(f"buffers[{places[b]}]" for b in buffers(kernel))
            calls.append(f"  {called}((void *const[]){{{own}}}, dims + {first});")
            first += len(dims(kernel))
    head = f"void {name}(void *const *buffers, const int64_t *dims) {{"
    return "\n".join([*functions, head, *calls, "}", ""])


def source(functions: Iterable[str]) -> str:
    """A whole C file of the helpers and functions."""
    texts = list(functions)
    parts = [_text("kernel.h")]
    if any("scratch(" in t for t in texts):
        parts.append(_text("scratch.h"))
    if any("matrix_product(" in t for t in texts):
        parts.append(_text("product.h"))
    if any("dot_" in t for t in texts):
        parts.append(_text("dot8.h"))
    return "\n".join([*parts, *texts])


def driver_source() -> str:
    """A whole C file of the function that runs a table of launches."""
    return _text("driver.c")


def _text(name: str) -> str:
    return helpers(Path(__file__).parent / name)


def grid_tiles(kernel: Kernel, blocking: Blocking) -> dict[str, int]:
    """Tiles as they are run: small enough for the cache, in whole blocks of copies innermost.

    The cells of a grid are independent, so its tiles may have any size.  Only an axis of chunks keeps its
    own, for the length of a chunk depends on it.
    """
    chunks = {s.chunk for s in walk(kernel.body) if isinstance(s, Loop)}
    tiles = dict(kernel.tiles)
    free = [a for a in kernel.grid if a not in chunks]
    copies = (max(blocking.rows, blocking.columns), blocking.rows)
    least = dict(zip(reversed(free), copies, strict=False))
    for axis in free:
        while tiles.get(axis, 1) > least.get(axis, 1) and _largest_value(kernel, tiles) > CELL:
            tiles[axis] = max(tiles[axis] // 2, least.get(axis, 1))
    for axis, block in least.items():
        extent = kernel.axes[axis]
        most = block if not isinstance(extent, int) else min(block, max(extent, 1))
        tiles[axis] = -(-max(tiles.get(axis, 1), 1) // most) * most
    return tiles


def _largest_value(kernel: Kernel, tiles: Mapping[str, int]) -> int:
    """Elements of the largest tile inside a loop that must keep its values in memory."""
    inside = [
        s for loop in kernel.body if isinstance(loop, Loop) and not is_plain(loop) for s in walk((loop,))
    ]
    axes = [s.axes for s in inside if isinstance(s, Map | Reduce | Dot)]
    return max((math.prod(_bound(kernel, tiles, a) for a in x) for x in axes), default=0)


def _bound(kernel: Kernel, tiles: Mapping[str, int], axis: str) -> int:
    """The most positions of an axis in a tile; a resident axis is held whole."""
    extent = kernel.axes[axis]
    tile = tiles.get(axis, 1)
    if axis in kernel.resident and isinstance(extent, int):
        return extent
    return min(tile, extent) if isinstance(extent, int) else tile


class _Function(Cells[Opened, Value]):
    def __init__(self, kernel: Kernel, blocking: Blocking, name: str) -> None:
        self.name = name
        program = arrange(kernel, grid_tiles(kernel, blocking))
        names = {b: f"b{number}_{spell.identifier(b)}" for number, b in enumerate(buffers(kernel))}
        self.w = Writer(program, names, blocking=blocking)
        super().__init__(program, self.w)
        self.nests = Nests(self.w, LaneCosts(self.program))

    def write(self) -> str:
        w = self.w
        w.scopes = [Scope(0)]
        w.ranges = {a: whole(w, a) for a in self.kernel.axes}
        self._parameters()
        once = [i for i in self.program.items if self.is_common(i)]
        with ExitStack() as memory:
            self.items(once, memory)
            self._cells([i for i in self.program.items if i not in once])
        body = "\n".join(f"  {line}" for line in w.here.lines)
        return f"void {self.name}(void *const *buffers, const int64_t *dims) {{\n{body}\n}}\n"

    def _parameters(self) -> None:
        for number, name in enumerate(dims(self.kernel)):
            self.w.line(f"const int64_t {spell.dim_name(name)} = dims[{number}];")
        types = {a.buffer: a.dtype for a, _ in accesses(self.kernel)}
        stored = written(self.kernel)
        for number, buffer in enumerate(buffers(self.kernel)):
            kind = f"{'' if buffer in stored else 'const '}{ctype.memory(types[buffer])} *"
            self.w.line(f"{kind}const {self.w.buffers[buffer]} = buffers[{number}];")

    # -- cells

    def _cells(self, items: list[Item]) -> None:
        w, counts = self.w, {}
        for axis in self.kernel.grid:
            tile, size = self.program.tiles.get(axis, 1), spell.extent(self.kernel.axes[axis])
            text = size if tile == 1 else f"({size} + {tile - 1}) / {tile}"
            counts[axis] = w.declare("int64_t", text, "cells")
        total = w.declare("int64_t", " * ".join(counts.values()) or "1", "cells")
        # One header, so that values found inside the cells but kept before them do not part the lines.
        share = f"#pragma omp for schedule(dynamic, 1 + {total} / {PIECES}) nowait"
        with w.block(f"{share}\nfor (int64_t cell = 0; cell < {total}; cell++) "):
            self._open_grid(counts)
            with ExitStack() as memory:
                self.items(items, memory)

    def _open_grid(self, counts: Mapping[str, str]) -> None:
        """Find the cell's place along each axis of the grid; the last axis runs fastest."""
        w, rest = self.w, "cell"
        for axis in reversed(self.kernel.grid):
            place = f"{rest} % {counts[axis]}" if axis != self.kernel.grid[0] else rest
            tile = self.program.tiles.get(axis, 1)
            start = w.declare(
                "int64_t", place if tile == 1 else f"{place} * {tile}", f"x_{spell.identifier(axis)}_"
            )
            if axis != self.kernel.grid[0]:
                rest = w.declare("int64_t", f"{rest} / {counts[axis]}", "rest")
            if tile == 1:
                w.here.opened[axis] = Opened(start)
                continue
            w.ranges[axis] = tile_range(w, axis, start, w.ranges[axis])

    # -- items

    def nest(self, nest: Nest) -> None:
        """Write a nest."""
        self.nests.write(nest)

    def fill(self, carry: Carry) -> None:
        """Give every element of a carry the identity of its operator."""
        name, start = self.w.arrays[carry.previous].name, arithmetic.identity(carry.op, carry.dtype)
        text = ctype.literal(float(start), carry.dtype)
        self.w.line(f"for (int64_t n = 0; n < {self._length(carry.axes)}; n++) {name}[n] = {text};")

    def advance(self, carry: Carry) -> None:
        """Make the next value of a carry, in an array of its own, the previous one."""
        previous, following = self.w.arrays[carry.previous].name, self.w.arrays[carry.next].name
        self.w.line(f"memcpy({previous}, {following}, {self._bytes(carry.axes, carry.dtype)});")

    # -- arrays

    @contextmanager
    def array(self, var: str, axes: tuple[str, ...], dtype: DType) -> Iterator[None]:
        """Declare the array of a value over those of its axes that are not open."""
        w, kind, name = self.w, register(dtype).scalar, self.w.fresh("t")
        long = tuple(a for a in axes if w.opened(a) is None)
        on_heap = self._length(long) * 8 > STACK
        if on_heap:
            w.line(f"{kind} *const {name} = scratch({self._bytes(long, dtype)});")
        else:
            w.line(f"{kind} {name}[{self._length(long)}] __attribute__((aligned(64)));")
        w.hold(var, name, long)
        yield
        if on_heap:
            w.line(f"release({name}, {self._bytes(long, dtype)});")

    def _length(self, axes: tuple[str, ...]) -> int:
        return self.size(tuple(a for a in axes if self.w.opened(a) is None))

    def _bytes(self, axes: tuple[str, ...], dtype: DType) -> int:
        return self._length(axes) * (8 if register(dtype).name.endswith("64") else 4)
