"""What a kernel should take on an H200, by how its template works: the model that orders candidates.

The figures do not depend on the moment: plans for the GPU are made without one, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from lumi import dim
from lumi.backends.cuda import tiling
from lumi.backends.cuda.scope import Blocking
from lumi.backends.cuda.streams import SOME
from lumi.llir import spell
from lumi.llir.kernel import Kernel, Load, Loop, Schedule, Statement, walk
from lumi.llir.program import is_plain
from lumi.search.model import Machine, Work, examine
from lumi.search.protocol import Cost

MACHINE = Machine(
    units=132,
    bandwidth=4.2e12,
    cache_bandwidth=8e12,
    dot_rate=8e12,
    element_rate=20e12,
    launch=2e-6,
    tile_memory=96 << 10,
    cache=4 << 30,
)
"""The GPU under the templates that share a code generator.

`dot_rate` is that of contractions on the CUDA cores.  What is read again is mostly read by the blocks at
work, so that buffers far larger than the 50 MiB of the last cache count as lying in it.
"""

LATENCY = 0.7e-6
"""Seconds until what a thread loads has come from memory."""

EXPOSED = 0.5
"""Share of that time that other blocks do not fill."""

RESIDENT = 2048
"""Threads that a multiprocessor runs at once."""

VECTOR = 16
"""Bytes that a load moves where neighbours lie side by side."""

UNSHARED = 0.97
"""Share of the bandwidth that is left where every row of a result loads what all rows share."""

RING = (0.65e-6, 4.59e12), (2.0e-6, 5.6e12)
"""Seconds to start and bytes a second of a ring that memory bounds, and of one that is short."""

LINES = 2.5e-6, 4.1e12
"""Seconds to start and bytes a second where lines stay in registers."""

AT_ONCE = 3
"""How much faster a single multiprocessor can read than its share of the bandwidth."""


def cost(kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
    """The estimate of one run of a kernel at these dims."""
    options = dict(schedule.options)
    blocking = Blocking(options.get("threads", 256), options.get("rows", 1), options.get("unroll", 2))
    work = examine(replace(kernel, tiles=_tiles(kernel, blocking)), dims)
    if all(is_plain(s) for s in walk(kernel.body) if isinstance(s, Loop)):
        work.live = 0.0
    shared = MACHINE if blocking.rows > 1 else replace(MACHINE, bandwidth=UNSHARED * MACHINE.bandwidth)
    found = work.cost(shared)
    if schedule.template == "ring":
        seconds = max(start + found.traffic / rate for start, rate in RING)
        return replace(found, seconds=seconds, floor=min(found.floor, seconds))
    if schedule.template == "lines":
        lines = math.prod(work.sizes[a] for a in kernel.grid)
        busy = min(1.0, AT_ONCE * lines / MACHINE.units)
        return replace(found, seconds=LINES[0] + max(found.traffic / (LINES[1] * busy), found.floor))
    waiting = EXPOSED * LATENCY * _rounds(work, blocking)
    return replace(found, seconds=found.seconds + waiting)


def _tiles(kernel: Kernel, blocking: Blocking) -> dict[str, int]:
    """The tiles that a kernel runs with; an axis that it does not name is held whole."""
    found = tiling.tiles(kernel, blocking)
    return {
        a: found.get(a, kernel.tiles.get(a, 1 if a in kernel.grid else _whole(kernel, a)))
        for a in kernel.axes
    }


def _whole(kernel: Kernel, axis: str) -> int:
    extent = kernel.axes[axis]
    return max(extent, 1) if isinstance(extent, int) else SOME


def _rounds(work: Work, blocking: Blocking) -> float:
    """How often threads wait for memory one after another: turns of loads under way at once, by cells."""
    resident = MACHINE.units * max(RESIDENT // blocking.threads, 1)
    turns = _loads(work, work.kernel.body, 1.0) / (blocking.threads * blocking.unroll)
    return -(-work.cells // resident) * max(turns, 1.0)


def _loads(work: Work, body: tuple[Statement, ...], times: float) -> float:
    """Load instructions of a cell, of which those of one loop go out together."""
    inner = most = 0.0
    for statement in body:
        if isinstance(statement, Load):
            access = statement.access
            per = (
                VECTOR // access.dtype.size if any(spell.step(access, a) == 1 for a in statement.axes) else 1
            )
            most = max(most, times * work.count(statement.axes) / per)
        elif isinstance(statement, Loop):
            trips = math.prod(-(-work.sizes[a] // work.tiles[a]) for a in statement.axes)
            if statement.chunk is not None:
                trips = -(-trips // max(dim.value(work.kernel.axes[statement.chunk], work.dims), 1))
            inner += _loads(work, statement.body, times * trips)
    return inner + most
