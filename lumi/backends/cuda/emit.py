"""A step as one CUDA function.

The function is `void name(buffer…, const i64 *dims)`: buffers in the order of the step's, the values of its
dims, in their order, in device memory, so that a captured launch never changes.  Its blocks share the cells
of the grids of all kernels, however many blocks there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lumi import dim
from lumi.backends.clike.helpers import helpers
from lumi.backends.cuda import (
    cache,
    direct,
    frame,
    line,
    lines,
    matrix,
    packed,
    packed_plan,
    packed_tiles,
    ring,
    rings,
    turns,
    walk,
    walk_plan,
)
from lumi.backends.cuda.grid import RESIDENT, Grid, blocking_of, write_cells
from lumi.backends.cuda.mma import code as tensor
from lumi.backends.cuda.staged import WARP
from lumi.backends.cuda.tensormap import Box
from lumi.backends.cuda.wgmma import code as groups
from lumi.backends.cuda.wgmma import instruction
from lumi.llir.kernel import Kernel, Step, buffers, dims

TOGETHER = ("simt", "stream", "ring", "packed", "mma", "wgmma")
"""The templates under which kernels can run together in one launch."""


@dataclass(frozen=True, slots=True)
class Code:
    """A step as CUDA: its function, threads a block, bytes of dynamic shared memory, tiles of the grid.

    It runs in `resident` blocks a multiprocessor at most, as many as clusters of `cluster` blocks make up.
    With `streams` it takes the constant buffers, as bits, as its last argument; with `walks`, behind that,
    the dim from whose value on rows may change.  `beside` are the grids of the kernels that run beside or
    after the first.  Where kernels take `turns`, all blocks must run at once, and the function takes the
    word of memory at which they meet as its last argument but for maps.
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
    turns: bool = False

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids of all kernels."""
        return (self.grid, *self.beside)

    @property
    def dims(self) -> frozenset[str]:
        """The dims that the number of cells depends on."""
        extents = (e for grid in self.grids for e, _ in grid)
        return frozenset().union(*(e.names() for e in extents if isinstance(e, dim.Dim)))

    def cells(self, values: Mapping[str, int]) -> int:
        """Cells of all grids at these dims."""
        return sum(math.prod(-(-dim.value(e, values) // tile) for e, tile in grid) for grid in self.grids)


def emit(step: Step, name: str) -> Code:
    """The CUDA function of a step.

    Raises `ValueError` when the values a block must hold do not fit its shared memory, or when kernels
    cannot run together under their schedule.
    """
    options = dict(step.schedule.options)
    if step.then:
        return _in_turn(step, name)
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
    blocking = blocking_of(options)
    made, text, grid = write_cells(step.kernel, blocking, name, frame.names(buffers(step.kernel)))
    return Code(text, made.w.blocking.threads, made.most, grid, made.resident)


def _in_turn(step: Step, name: str) -> Code:
    """Kernels that wait for each other: the blocks of one launch go from turn to turn."""
    made = turns.write(step, name)
    first, *others = made.grids
    beside = tuple(others)
    return Code(
        made.text, made.threads, made.shared, first, made.resident, made.streams, beside=beside, turns=True
    )


def _together(step: Step, options: dict[str, int], name: str) -> Code:
    """Several kernels: through one ring, or the cells of one after those of another, dealt out in turn."""
    if step.schedule.template not in TOGETHER:
        raise ValueError(f"kernels run together as {step.schedule.template}")
    if step.schedule.template == "ring":
        return _rings(step, options, name)
    if step.schedule.template == "packed":
        return _packed_rings(step, options, name)
    if step.schedule.template == "wgmma":
        text, plans = groups.together(step, options, name)
        grid, *others = map(tensor.grid, plans)
        maps = groups.shared_maps(step, plans)
        return Code(text, plans[0].threads, plans[0].shared, grid, 1, maps=maps, beside=tuple(others))
    if step.schedule.template == "mma":
        return _products(step, options, name)
    names, blocking = frame.names(step.buffers), blocking_of(options)
    texts, grids, calls, first = list[str](), list[Grid](), list[str](), 0
    writers = []
    for number, kernel in enumerate(step.kernels):
        made, text, grid = write_cells(kernel, blocking, f"{name}_{number}", names, beside=True)
        given = ", ".join([*(names[b] for b in buffers(kernel)), f"dims + {first}", "before"])
        calls.append(f"before = {name}_{number}_cells({given});")
        texts.append(text)
        grids.append(grid)
        writers.append(made)
        first += len(dims(kernel))
    texts.append(frame.together(step, names, name, blocking.threads, calls))
    shared, resident = max(w.most for w in writers), min(w.resident for w in writers)
    text = "\n".join(texts)
    return Code(text, blocking.threads, shared, grids[0], resident, beside=tuple(grids[1:]))


def _products(step: Step, options: dict[str, int], name: str) -> Code:
    """Products on tensor cores whose blocks take the cells of one after those of another."""
    names, texts, calls, first = frame.names(step.buffers), list[str](), list[str](), 0
    plans = []
    for number, kernel in enumerate(step.kernels):
        text, made = tensor.write(kernel, options, f"{name}_{number}", names)
        given = ", ".join([*(names[b] for b in buffers(kernel)), f"dims + {first}", "before"])
        calls.append(f"before = {name}_{number}_cells({given});")
        texts.append(text)
        plans.append(made)
        first += len(dims(kernel))
    texts.append(frame.together(step, names, name, plans[0].threads, calls))
    grids = tuple(map(tensor.grid, plans))
    shared = max(p.shared for p in plans)
    return Code("\n".join(texts), plans[0].threads, shared, grids[0], beside=grids[1:])


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
    text, made = rings.Rings(step, plans, packed_tiles.writer, name).write(), plans[0]
    shared = max(p.shared for p in plans)
    return Code(text, made.users + WARP, shared, ((made.cells, 1),), 1, streams=True)


def _packed(kernel: Kernel, options: dict[str, int], name: str) -> Code:
    found = packed.find(kernel)
    made = packed_plan.plan(found, options) if found is not None else None
    if made is None:
        raise ValueError("a kernel whose packed matrices do not fit a ring is scheduled as one")
    text, threads = packed_tiles.writer(made, name).write(), made.users + WARP
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
    return Code(text, made.users, made.shared, grid, streams=True, cluster=made.blocks)


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
    files += ["digits.cuh"] if any("digits_keep<" in t for t in texts) else []
    files += ["turn.cuh"] if any("turn_end<" in t for t in texts) else []
    files += ["walk.cuh"] if any("copy_piece(" in t for t in texts) else []
    files += ["cluster.cuh"] if any("cluster_wait" in t for t in texts) else []
    grouped = instruction.called(texts)
    files += ["mma.cuh"] if grouped or any("copy_tile<" in t for t in texts) else []
    files += ["wgmma.cuh"] if grouped else []
    return "\n".join([*(helpers(folder / f) for f in files), *grouped, *texts])


_STAGES = "Filler<", "users_", "blocks_"
"""Names of which every kernel has one that needs what stages, and threads that share lines, are made of."""
