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
from lumi.llir.kernel import Kernel, Loop
from lumi.search.guard import active_share
from lumi.search.live import live_bytes
from lumi.search.protocol import Cost
from lumi.search.tasks import (
    Axes,
    Computed,
    Multiplied,
    Read,
    Reduced,
    Repeated,
    Task,
    Unpacked,
    Written,
    tasks,
)


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
    work.add(tasks(kernel.body), 1.0)
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
    counts: dict[Axes, int] = field(default_factory=dict)
    reads: dict[object, tuple[float, float]] = field(default_factory=dict)
    dots: list[tuple[float, int, int, int]] = field(default_factory=list)
    elements: float = 0.0
    byte_elements: float = 0.0
    tile_bytes: float = 0.0
    written: float = 0.0
    live: float = 0.0

    def __post_init__(self) -> None:
        kernel = self.kernel
        self.sizes = {a: max(dim.value(e, self.dims), 1) for a, e in kernel.axes.items()}
        self.tiles = {a: min(kernel.tiles.get(a, s), s) for a, s in self.sizes.items()}

    @property
    def cells(self) -> int:
        """Grid cells."""
        return math.prod(-(-self.sizes[a] // self.tiles[a]) for a in self.kernel.grid)

    def span(self, loop: Loop, axis: str) -> int:
        """Positions that one run of a loop covers."""
        whole = self.sizes[axis]
        return whole if loop.chunk is None else -(-whole // self.sizes[loop.chunk])

    def count(self, axes: Axes) -> int:
        """Elements of a tile over `axes`."""
        known = self.counts.get(axes)
        if known is None:
            known = self.counts[axes] = math.prod([self.tiles[a] for a in axes])
        return known

    def add(self, todo: tuple[Task, ...], times: float) -> None:
        """Count tasks that are done `times` times a cell."""
        count = self.count
        for task in todo:
            match task:
                case Computed(axes, price):
                    self.elements += times * count(axes) * price
                case Read(axes, bytes_, key):
                    moved = times * count(axes) * bytes_
                    self.tile_bytes += moved
                    size = math.prod([self.sizes[a] for a in axes]) * bytes_
                    self.reads[key] = (size, moved + self.reads.get(key, (0.0, 0.0))[1])
                case Reduced(axes, over):
                    self.elements += times * count(axes) * count(over)
                case Multiplied(axes, rows, columns, over):
                    length = count(over)
                    operations = 2.0 * times * count(axes) * length
                    self.dots.append((operations, count(rows), count(columns), length))
                case Unpacked(axes, over, price):
                    self.byte_elements += times * count(axes) * (price if over is None else count(over))
                case Written(axes, bytes_):
                    self.written += times * count(axes) * bytes_
                case Repeated(loop, inner):
                    self.add(inner, times * self._trips(loop))

    def _trips(self, loop: Loop) -> float:
        trips = 1.0
        for axis in loop.axes:
            trips *= -(-self.span(loop, axis) // self.tiles[axis])
        if loop.guards:
            trips *= active_share(loop.guards, self.sizes, self.tiles, self.dims)
        return trips

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
        fits = self.live <= machine.tile_memory
        if not fits:
            seconds *= 20 * self.live / machine.tile_memory
        flops = cells * sum(f for f, *_ in self.dots)
        fastest = max(machine.dot_rate, 2 * machine.element_rate)
        elements = self.elements + self.byte_elements * slower
        work = flops / fastest + cells * elements / machine.element_rate
        floor = max(once / machine.bandwidth, work)
        work = flops + cells * (self.elements + self.byte_elements)
        return Cost(seconds, floor, once, work, self.live, fits)

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
