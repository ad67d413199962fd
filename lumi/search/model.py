"""An analytic cost of kernels: what orders candidates before anything is measured.

A kernel takes the larger of its memory time and its compute time, plus a share of the smaller and a
launch.  Memory time counts every distinct byte once, re-reads at a discount when the buffer fits the last
cache, and tile traffic at the speed of the caches.  Compute time counts contractions at a rate that falls
for narrow tiles, elementwise operators by their price, both divided by the share of units that work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lumi import dim
from lumi.llir import bytedot
from lumi.llir.bytedot import ByteDots
from lumi.llir.kernel import (
    Dot,
    Kernel,
    Load,
    Loop,
    Map,
    Position,
    Reduce,
    Statement,
    Store,
    Symbol,
)
from lumi.search.guard import active_share
from lumi.search.live import live_bytes
from lumi.search.protocol import Cost

PRICES = {"exp2": 8, "log2": 8, "recip": 8, "recipz": 9, "sqrt": 8, "sin": 12, "div": 8, "rem": 8, "mod": 8}
"""Elementwise operators that cost more than an addition, in additions."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the model knows of a device.

    `units` run grid cells side by side.  Rates are those of all units together: `bandwidth` and
    `cache_bandwidth` in bytes a second, `dot_rate` in floating-point operations of wide contractions and
    `element_rate` in elementwise operations a second.  `launch` are seconds before a kernel begins,
    `tile_memory` the bytes of tiles a cell can hold, `cache` the bytes of the last cache.  `narrow_dot` is
    the least width and `short_dot` the least length of a contraction that runs at `dot_rate`.  `byte_rate`
    is what `element_rate` is for sums of products of bytes and what unpacks them, where that is another.
    `name` is the device's, unless it is the one at hand.
    """

    units: int
    bandwidth: float
    cache_bandwidth: float
    dot_rate: float
    element_rate: float
    launch: float
    tile_memory: int
    cache: int
    narrow_dot: int = 4
    short_dot: int = 16
    byte_rate: float = 0.0
    name: str = ""


OVERLAP_LOSS = 0.15
"""Share of the shorter of memory and compute time that the longer one does not hide."""

REREAD = (0.15, 0.5)
"""What a byte costs that is read again, when its buffer fits the last cache and when it does not."""

FULL_BLOCK = 64 * 64
"""Elements of a result tile at which a contraction reaches its rate."""


def estimate(kernel: Kernel, dims: Mapping[str, int], machine: Machine) -> Cost:
    """The cost of one run of a kernel at these dims."""
    return examine(kernel, dims).cost(machine)


def examine(kernel: Kernel, dims: Mapping[str, int], holds: bool = True) -> Work:
    """What a kernel does at these dims: the part of its cost that is the same on every machine.

    Unless it `holds` tiles, in memory that matters, those that are alive at once are not counted.
    """
    work = Work(kernel, dims)
    work.add(kernel.body, 1.0)
    if holds:
        work.live = live_bytes(kernel, work.count)
    return work


@dataclass(slots=True)
class Work:
    """What one cell of a kernel does, summed over its loops."""

    kernel: Kernel
    dims: Mapping[str, int]
    sizes: dict[str, int] = field(default_factory=dict)
    tiles: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    counts: dict[tuple[str, ...], int] = field(default_factory=dict)
    reads: dict[object, tuple[float, float]] = field(default_factory=dict)
    dots: list[tuple[float, int, int, int]] = field(default_factory=list)
    elements: float = 0.0
    byte_elements: float = 0.0
    bytes: ByteDots = field(default_factory=ByteDots)
    tile_bytes: float = 0.0
    written: float = 0.0
    live: float = 0.0

    def __post_init__(self) -> None:
        kernel = self.kernel
        self.sizes = {a: max(dim.value(e, self.dims), 1) for a, e in kernel.axes.items()}
        self.bytes = bytedot.find(kernel)
        self.tiles = {a: min(kernel.tiles.get(a, s), s) for a, s in self.sizes.items()}

    @property
    def cells(self) -> int:
        """Grid cells."""
        return math.prod(-(-self.sizes[a] // self.tiles[a]) for a in self.kernel.grid)

    def span(self, loop: Loop, axis: str) -> int:
        """Positions that one run of a loop covers."""
        whole = self.sizes[axis]
        return whole if loop.chunk is None else -(-whole // self.sizes[loop.chunk])

    def count(self, axes: tuple[str, ...]) -> int:
        """Elements of a tile over `axes`."""
        known = self.counts.get(axes)
        if known is None:
            known = self.counts[axes] = math.prod(self.tiles[a] for a in axes)
        return known

    def add(self, body: tuple[Statement, ...], times: float) -> None:
        """Count statements that run `times` times a cell."""
        for statement in body:
            match statement:
                case Load(var, access, _, axes, _):
                    self.shapes[var] = axes
                    moved = times * self.count(axes) * access.dtype.size
                    self.tile_bytes += moved
                    size = math.prod(self.sizes[a] for a in axes) * access.dtype.size
                    key = (access.buffer, access.index)
                    self.reads[key] = (size, moved + self.reads.get(key, (0.0, 0.0))[1])
                case Position(var, axis):
                    self.shapes[var] = (axis,)
                case Symbol(var, _):
                    self.shapes[var] = ()
                case Map(var, op, _, axes, _):
                    self.shapes[var] = axes
                    price = times * self.count(axes) * PRICES.get(op, 1)
                    if var in self.bytes.unpacked:
                        self.byte_elements += price
                    else:
                        self.elements += price
                case Reduce(var, _, over, _, axes, _):
                    self.shapes[var] = axes
                    self.elements += times * self.count(axes) * self.count(over)
                case Dot():
                    self._dot(statement, times)
                case Store(access, _, axes):
                    self.written += times * self.count(axes) * access.dtype.size
                case Loop():
                    self._loop(statement, times)

    def _dot(self, dot: Dot, times: float) -> None:
        self.shapes[dot.var] = dot.axes
        left = self.shapes.get(dot.a, ()) if isinstance(dot.a, str) else ()
        right = self.shapes.get(dot.b, ()) if isinstance(dot.b, str) else ()
        rows = self.count(tuple(a for a in left if a not in right))
        columns = self.count(tuple(a for a in right if a not in left))
        length = self.count(dot.over)
        if dot.var in self.bytes.sums:
            self.byte_elements += times * self.count(dot.axes) * length
            return
        self.dots.append((2.0 * times * self.count(dot.axes) * length, rows, columns, length))

    def _loop(self, loop: Loop, times: float) -> None:
        for carry in loop.carries:
            self.shapes[carry.previous] = self.shapes[carry.final] = carry.axes
        trips = 1.0
        for axis in loop.axes:
            span = self.sizes[axis]
            if loop.chunk is not None:
                span = -(-span // self.sizes[loop.chunk])
            trips *= -(-span // self.tiles[axis])
        if loop.guards:
            trips *= active_share(loop.guards, self.sizes, self.tiles, self.dims)
        self.add(loop.body, times * trips)

    def cost(self, machine: Machine) -> Cost:
        """The time all cells take on a machine."""
        cells = self.cells
        once = sum(min(size, moved * cells) for size, moved in self.reads.values()) + cells * self.written
        again = sum(
            max(0.0, moved * cells - size) * REREAD[size > machine.cache]
            for size, moved in self.reads.values()
        )
        waves = -(-cells // machine.units)
        busy = cells / (waves * machine.units)
        reach = min(1.0, 1.5 * cells / machine.units)
        memory = max(
            (once + again) / (machine.bandwidth * reach),
            cells * self.tile_bytes / (machine.cache_bandwidth * reach),
        )
        wide, narrow = self._dot_work(machine)
        slower = machine.element_rate / (machine.byte_rate or machine.element_rate)
        elements = self.elements + narrow + self.byte_elements * slower
        compute = cells * (wide / machine.dot_rate + elements / machine.element_rate) / busy
        seconds = machine.launch + max(memory, compute) + OVERLAP_LOSS * min(memory, compute)
        if self.live > machine.tile_memory:
            seconds *= 20 * self.live / machine.tile_memory
        flops = cells * sum(f for f, *_ in self.dots)
        fastest = max(machine.dot_rate, 2 * machine.element_rate)
        elements = self.elements + self.byte_elements * slower
        work = flops / fastest + cells * elements / machine.element_rate
        floor = max(once / machine.bandwidth, work)
        return Cost(seconds, floor, once, flops + cells * (self.elements + self.byte_elements), self.live)

    def _dot_work(self, machine: Machine) -> tuple[float, float]:
        """Operations of wide contractions, weighted by how badly they fill the units, and of narrow ones.

        A narrow contraction (a matrix times a vector) multiplies and adds element by element.
        """
        wide = narrow = 0.0
        for flops, rows, columns, length in self.dots:
            if min(rows, columns) >= machine.narrow_dot and length >= machine.short_dot:
                padding = max(1, 16 / max(rows, columns)) * max(1, 8 / min(rows, columns))
                filled = min(1.0, rows * columns / FULL_BLOCK) ** 0.5
                wide += flops * padding / max(filled, 0.15)
            else:
                narrow += flops / 2
        return wide, narrow
