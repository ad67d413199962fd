"""A step as one CUDA function.

The function is `void name(buffer…, const i64 *dims)`: buffers in the order of the step's, the values of its
dims, in their order, in device memory, so that a captured launch never changes.  Its blocks share the cells
of the grids of all kernels, however many blocks there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lumi import dim
from lumi.backends.clike.cells import Cells
from lumi.backends.clike.helpers import helpers
from lumi.backends.clike.loops import tile_range, whole
from lumi.backends.clike.scope import Scope
from lumi.backends.cuda import (
    cache,
    ctype,
    direct,
    frame,
    line,
    lines,
    matrix,
    packed,
    packed_plan,
    packed_ring,
    ring,
    rings,
    tiling,
    walk,
    walk_plan,
)
from lumi.backends.cuda.ctype import register
from lumi.backends.cuda.mma import code as tensor
from lumi.backends.cuda.nests import Nests
from lumi.backends.cuda.scope import Blocking, Opened, Value, Writer, single
from lumi.backends.cuda.staged import WARP
from lumi.backends.cuda.tensormap import Box
from lumi.backends.cuda.wgmma import code as groups
from lumi.backends.cuda.wgmma import instruction
from lumi.dtype import DType
from lumi.llir import arithmetic, spell
from lumi.llir.arrange import arrange
from lumi.llir.kernel import Carry, Kernel, Step, buffers, dims
from lumi.llir.program import Fold, Item, Nest

TOGETHER = ("simt", "stream", "ring", "packed")
"""The templates under which kernels can run together in one launch."""

SHARED = 96 << 10
"""Bytes of shared memory that a block may use on every GPU since compute capability 8.0 but one."""

RESIDENT = 64
"""Blocks a multiprocessor is given at most; with more cells each block runs several."""

SHORT = 4096
"""The same for kernels whose blocks begin at once: what one does again and again, several do side by side."""

LARGEST = {True: 1 << 13, False: 1 << 13}
"""Elements an array may have when its value is, or is not, a reduction."""


Grid: TypeAlias = "tuple[tuple[dim.Extent, int], ...]"
"""The extent of each axis of a grid, and its tile."""


@dataclass(frozen=True, slots=True)
class Code:
    """A step as CUDA: its function, threads a block, bytes of dynamic shared memory, tiles of the grid.

    It runs in `resident` blocks a multiprocessor at most, as many as clusters of `cluster` blocks make up.
    With `streams` it takes the constant buffers, as bits, as its last argument; with `walks`, behind that,
    the dim from whose value on rows may change.  `beside` are the grids of the kernels that run beside the
    first.
    """

    text: str
    threads: int
    shared: int
    grid: Grid
    resident: int = RESIDENT
    streams: bool = False
    walks: bool = False
    cluster: int = 1
    maps: tuple[Box, ...] = ()
    beside: tuple[Grid, ...] = ()

    def cells(self, values: Mapping[str, int]) -> int:
        """Cells of all grids at these dims."""
        grids = (self.grid, *self.beside)
        return sum(math.prod(-(-dim.value(e, values) // tile) for e, tile in grid) for grid in grids)


def emit(step: Step, name: str) -> Code:
    """The CUDA function of a step.

    Raises `ValueError` when the values a block must hold do not fit its shared memory, or when kernels
    cannot run together under their schedule.
    """
    options = dict(step.schedule.options)
    if step.beside:
        return _together(step, options, name)
    if step.schedule.template == "mma":
        text, numbers = tensor.write(step.kernel, options, name)
        return Code(text, numbers.threads, numbers.shared, tensor.grid(numbers))
    if step.schedule.template == "wgmma":
        text, numbers = groups.write(step.kernel, options, name)
        grid = tensor.grid(numbers)
        return Code(text, numbers.threads, numbers.shared, grid, 1, maps=numbers.maps)
    if step.schedule.template == "walk":
        return _walk(step.kernel, options, name)
    if step.schedule.template in STAGED:
        return STAGED[step.schedule.template](step.kernel, options, name)
    blocking = _blocking(options)
    function, text, grid = _function(step.kernel, blocking, name, frame.names(buffers(step.kernel)))
    return Code(text, blocking.threads, function.most, grid, function.resident)


def _blocking(options: Mapping[str, int]) -> Blocking:
    return Blocking(options.get("threads", 256), options.get("rows", 1), options.get("unroll", 2))


def _function(
    kernel: Kernel, blocking: Blocking, name: str, names: Mapping[str, str], beside: bool = False
) -> tuple[_Function, str, Grid]:
    """A kernel's function with tiles that fit, its text and its grid."""
    chosen: dict[str, int] | None = tiling.tiles(kernel, blocking)
    while chosen is not None:
        function = _Function(kernel, blocking, chosen, name, names)
        text = function.write(beside)
        if function.most <= SHARED:
            return function, text, tuple((kernel.axes[a], chosen.get(a, 1)) for a in kernel.grid)
        chosen = tiling.shrunk(kernel, chosen)
    raise ValueError("the values of one cell do not fit shared memory")


def _together(step: Step, options: dict[str, int], name: str) -> Code:
    """Several kernels: through one ring, or the cells of one after those of another, dealt out in turn."""
    if step.schedule.template not in TOGETHER:
        raise ValueError(f"kernels run together as {step.schedule.template}")
    if step.schedule.template == "ring":
        return _rings(step, options, name)
    if step.schedule.template == "packed":
        return _packed_rings(step, options, name)
    names, blocking = frame.names(step.buffers), _blocking(options)
    texts, grids, calls, most, first = list[str](), list[Grid](), list[str](), 0, 0
    for number, kernel in enumerate(step.kernels):
        function, text, grid = _function(kernel, blocking, f"{name}_{number}", names, beside=True)
        given = ", ".join([*(names[b] for b in buffers(kernel)), f"dims + {first}", "before"])
        calls.append(f"before = {name}_{number}_cells({given});")
        texts.append(text)
        grids.append(grid)
        most, first = max(most, function.most), first + len(dims(kernel))
    texts.append(frame.together(step, names, name, blocking.threads, calls))
    return Code("\n".join(texts), blocking.threads, most, grids[0], beside=tuple(grids[1:]))


def _rings(step: Step, options: dict[str, int], name: str) -> Code:
    found = [matrix.find(k) for k in step.kernels]
    plans = rings.plans([m for m in found if m is not None], options)
    if plans is None or None in found:
        raise ValueError("a kernel whose matrices do not fit a ring is scheduled as one")
    text, made = rings.Rings(step, plans, ring.Ring, name).write(), plans[0]
    shared = max(p.shared for p in plans)
    return Code(text, made.users + WARP, shared, ((made.cells, 1),), 1, streams=True)


def _packed_rings(step: Step, options: dict[str, int], name: str) -> Code:
    found = [packed.find(k) for k in step.kernels]
    plans = packed_plan.plans([m for m in found if m is not None], options)
    if plans is None or None in found:
        raise ValueError("a kernel whose packed matrices do not fit a ring is scheduled as one")
    text, made = rings.Rings(step, plans, packed_ring.PackedRing, name).write(), plans[0]
    shared = max(p.shared for p in plans)
    return Code(text, made.users + WARP, shared, ((made.cells, 1),), 1, streams=True)


def _packed(kernel: Kernel, options: dict[str, int], name: str) -> Code:
    found = packed.find(kernel)
    made = packed_plan.plan(found, options) if found is not None else None
    if made is None:
        raise ValueError("a kernel whose packed matrices do not fit a ring is scheduled as one")
    text, threads = packed_ring.PackedRing(made, name).write(), made.users + WARP
    return Code(text, threads, made.shared, ((made.cells, 1),), 1, streams=True)


def _ring(kernel: Kernel, options: dict[str, int], name: str) -> Code:
    found = matrix.find(kernel)
    made = ring.plan(found, options) if found is not None else None
    if made is None:
        raise ValueError("a kernel whose matrices do not fit a ring is scheduled as one")
    text, threads = ring.Ring(made, name).write(), made.users + WARP
    return Code(text, threads, made.shared, ((made.cells, 1),), 1, streams=True)


def _lines(kernel: Kernel, options: dict[str, int], name: str) -> Code:
    found = line.find(kernel)
    made = lines.plan(found, options) if found is not None else None
    if found is None or made is None:
        raise ValueError("a kernel whose lines do not fit registers is scheduled as one")
    text, threads = lines.LineWriter(made, name).write(), made.users + WARP
    grid = tuple((kernel.axes[a], 1) for a in found.rows)
    return Code(text, threads, made.shared, grid, made.resident, streams=True)


def _direct(kernel: Kernel, options: dict[str, int], name: str) -> Code:
    found = line.find(kernel)
    made = direct.plan(found, options) if found is not None else None
    if found is None or made is None:
        raise ValueError("a kernel whose lines do not fit registers is scheduled as one")
    text = direct.DirectWriter(made, name).write()
    grid = (*((kernel.axes[a], 1) for a in found.rows), (made.blocks, 1))
    return Code(text, made.users, 0, grid, streams=True, cluster=made.blocks)


def _walk(kernel: Kernel, options: dict[str, int], name: str) -> Code:
    found = cache.find(kernel)
    made = walk_plan.plan(found, options) if found is not None else None
    if found is None or made is None:
        raise ValueError("a kernel that does not walk along rows is scheduled as one")
    cells = (*((kernel.axes[a], 1) for a in found.cells), (found.times, 1))
    grid = (*cells, (kernel.axes[found.axis], made.unit))
    return Code(walk.Walker(made, name).write(), made.threads, made.shared, grid, 1, walks=True)


STAGED: Mapping[str, Callable[[Kernel, dict[str, int], str], Code]] = {
    "ring": _ring,
    "packed": _packed,
    "lines": _lines,
    "direct": _direct,
}
"""The templates that need what not every GPU has: copies into shared memory, clusters of blocks."""


def source(functions: Iterable[str]) -> str:
    """A whole CUDA file of the helpers and functions."""
    texts, folder = list(functions), Path(__file__).parent
    files = ["kernel.cuh"]
    files += ["ring.cuh"] if any(mark in t for t in texts for mark in _STAGES) else []
    files += ["walk.cuh"] if any("copy_piece(" in t for t in texts) else []
    files += ["cluster.cuh"] if any("cluster_wait" in t for t in texts) else []
    grouped = instruction.called(texts)
    files += ["mma.cuh"] if grouped or any("copy_tile<" in t for t in texts) else []
    files += ["wgmma.cuh"] if grouped else []
    return "\n".join([*(helpers(folder / f) for f in files), *grouped, *texts])


_STAGES = "Filler<", "users_", "blocks_"
"""Names of which every kernel has one that needs what stages, and threads that share lines, are made of."""


class _Function(Cells[Opened, Value]):
    def __init__(
        self,
        kernel: Kernel,
        blocking: Blocking,
        chosen: Mapping[str, int],
        name: str,
        names: Mapping[str, str],
    ) -> None:
        self.name = name
        program = arrange(kernel, chosen, flat=True, largest=LARGEST)
        self.w = Writer(program, names, blocking=blocking)
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
        with w.block(f"for (int cell = {first}; cell < {total}; cell += gridDim.x) "):
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
