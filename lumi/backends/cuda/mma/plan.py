"""The numbers of a kernel on tensor cores: tiles, warps, stages, and where everything lies.

A block computes a tile of `rows` by `columns` results, or of rows by positions of a loop, with `high` by
`wide` warps.  Sums run in stages of `depth` positions, of which `stages` lie in shared memory at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lumi.backends.cuda.expression import divides
from lumi.backends.cuda.mma import placed
from lumi.backends.cuda.mma.form import Form, Product, RefusalError, Stored, Sums
from lumi.backends.cuda.values import long
from lumi.dim import Extent
from lumi.dtype import BF16
from lumi.llir import spell

TEMPLATE = "mma"

WARP = 32

STEP = 16
"""Rows of one instruction; it has 8 columns, and two are computed side by side.  Sums run in multiples."""

ROOM = 224 << 10
"""Bytes of shared memory that a block takes at most, on the GPU that has most of it."""

REGISTERS = 300
"""Registers of a thread, counted as here: the compiler makes do with 255 then, but for a few bytes."""

OTHERS = 40
"""Registers that addresses and counters take, about."""

WIDEST = 256
"""Columns that a cascade sums up at once."""

EXACT = 3
"""Halves that have as many digits together as f32."""

ROUNDING = ("parts", 1)
"""The option of schedules under which a computed factor is rounded, though the kernel does not round it."""

SPILLED = 256
"""Bytes of registers of a thread that a kernel may spill: it is too slow beyond."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A piece of a factor in shared memory: lines of 16-byte chunks, `offset` bytes into its stage.

    Lines lie along `lines_axis`, neighbours in a line along `factor.along`.  Of the elements of a line,
    `width` neighbours begin at a multiple of their size in memory.
    """

    factor: Stored
    lines: int
    chunks: int
    offset: int
    width: int

    @property
    def lines_axis(self) -> str:
        """The axis from line to line."""
        return self.factor.outer if self.factor.is_summed_along else self.factor.summed

    @property
    def size(self) -> int:
        """Bytes."""
        return self.lines * pitch(self.chunks)


def pitch(chunks: int) -> int:
    """Bytes from one line to the next, as in mma.cuh."""
    return 16 * (chunks if chunks % 8 == 0 else chunks | 1)


def up(number: int, multiple: int) -> int:
    """The next multiple."""
    return -(-number // multiple) * multiple


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of a form.  `parts` are the halves a computed factor is cut into."""

    placing: ClassVar[type[Placing]]

    form: Form
    rows: int
    columns: int
    depth: int
    high: int
    wide: int
    stages: int
    parts: int
    held: bool
    tiles: Mapping[tuple[str, str], Tile] = field(init=False)
    stage: int = field(init=False)
    kept: int = field(init=False)

    def __post_init__(self) -> None:
        made = self.placing(self)
        made.place()
        object.__setattr__(self, "tiles", made.tiles)
        object.__setattr__(self, "stage", made.stage)
        object.__setattr__(self, "kept", made.kept)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.high * self.wide * WARP

    @property
    def readers(self) -> int:
        """How often the columns of a stage are read from shared memory: by each row of warps."""
        return self.high

    @property
    def warp_rows(self) -> int:
        """Rows of a warp."""
        return self.rows // self.high

    @property
    def row_tiles(self) -> int:
        """Instructions that the rows of a warp take."""
        return self.warp_rows // STEP

    def width_of(self, axis: str) -> int:
        """Columns of a block's tile along an axis."""
        cascade = self.form.cascade
        if cascade is not None and axis == self.form.column:
            extent = self.form.program.kernel.axes[axis]
            return min(up(extent, STEP), WIDEST) if isinstance(extent, int) else WIDEST
        return self.columns

    def warp_columns(self, axis: str) -> int:
        """Columns of a warp along an axis."""
        return self.width_of(axis) // self.wide

    def depth_of(self, product: Product) -> int:
        """Summed positions of a stage of a product."""
        cascade = self.form.cascade
        if cascade is None:
            return self.depth
        if product.summed == cascade.axis:
            return self.columns
        extent = self.form.program.kernel.axes[product.summed]
        assert isinstance(extent, int), "sums inside of a cascade have a known length"
        return up(extent, STEP)

    def steps(self, depth: int) -> int:
        """Instructions along a sum of so many positions."""
        return depth // self.form.deep

    def tile(self, factor: Stored) -> Tile:
        """Where a factor lies."""
        return self.tiles[factor.load.var, factor.outer]

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return self.kept + self.stages * self.stage

    @property
    def registers(self) -> int:
        """Registers that a thread needs, about."""
        form, per_row = self.form, self.warp_rows // 8
        if form.cascade is None:
            results = {p.var for p in form.products}
            rows = {p.a for p in form.products}
            wide = self.warp_columns(form.column)
            steps = self.row_tiles * len(rows) + wide // STEP * len(results)
            return per_row * wide // 4 * len(results) + 2 * 4 * steps + OTHERS
        products, updates = form.cascade.products, form.cascade.updates
        turn = per_row * self.columns // 4 * len(products)
        sums = sum(per_row * self.width_of(u.product.columns) // 4 for u in updates)
        held = sum(4 * self.row_tiles * self.steps(self.depth_of(p)) for p in products) if self.held else 0
        return turn + sums + held + per_row * (2 * len(form.cascade.rows) + 2) + 4 * self.row_tiles + OTHERS


class Placing:
    """Lays the tiles of a plan out in shared memory: those of a stage, and those that are kept."""

    align: ClassVar[int] = 128

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.tiles: dict[tuple[str, str], Tile] = {}
        self.stage = self.kept = 0

    def shape(self, factor: Stored, across: int, down: int) -> tuple[int, int]:
        """Lines, and elements of a line, of a factor that has so many positions across and along the sum."""
        return (across, down) if factor.is_summed_along else (down, across)

    def place(self) -> None:
        """Give every tile its place."""
        form = self.plan.form
        if form.cascade is None:
            for sums in form.sums:
                self.stage = max(self.stage, self._put(_factors(sums.products), 0))
            return
        products, updates = form.cascade.products, [u.product for u in form.cascade.updates]
        self.kept = self._put([(p, p.a) for p in products if isinstance(p.a, Stored)], 0)
        self.stage = self._put([(p, p.b) for p in (*products, *updates)], 0)

    def _put(self, factors: Iterable[tuple[Product, Stored]], place: int) -> int:
        """Give each factor its place from `place` on; where they end."""
        for product, factor in factors:
            key = factor.load.var, factor.outer
            if key in self.tiles:
                continue
            tile = self._tile(product, factor, place)
            self.tiles[key] = tile
            place = up(place + tile.size, self.align)
        return place

    def _tile(self, product: Product, factor: Stored, place: int) -> Tile:
        plan = self.plan
        across = plan.rows if factor.outer == plan.form.row else plan.width_of(factor.outer)
        down = plan.depth_of(product)
        lines, elements = self.shape(factor, across, down)
        return Tile(factor, lines, elements // plan.form.piece, place, aligned(plan.form, product, factor))


Plan.placing = Placing


def _factors(products: Iterable[Product]) -> Iterable[tuple[Product, Stored]]:
    return [(p, f) for p in products for f in (p.a, p.b) if isinstance(f, Stored)]


def aligned(form: Form, product: Product, factor: Stored) -> int:
    """Neighbours in memory that begin at a multiple of their size, whatever the tile: a piece, or less."""
    start = form.piece
    if factor.along == product.summed:
        start = math.gcd(start, _chunk_start(form, product))
    if factor.scattered:
        return form.piece
    access = placed.multiples(factor) if factor.placed else factor.load.access
    for width in (8, 4, 2):
        if width <= form.piece and divides(access, width, lambda axis: start if axis == factor.along else 1):
            return width
    return 1


def _chunk_start(form: Form, product: Product) -> int:
    """A divisor of where the sum of a product begins."""
    loop = form.cascade.loop if form.cascade is not None else _sums_of(form, product).loop
    if loop is None or loop.chunk is None or product.summed not in loop.axes:
        return form.piece
    extent, chunks = (form.program.kernel.axes[a] for a in (product.summed, loop.chunk))
    if not isinstance(extent, int) or not isinstance(chunks, int):
        return 1
    return -(-extent // max(chunks, 1))


def _sums_of(form: Form, product: Product) -> Sums:
    return next(s for s in form.sums if product in s.products)


def plan(form: Form, options: Mapping[str, int]) -> Plan:
    """The plan of a form under the options of a schedule.  Raises `RefusalError` when it does not fit."""
    made = Plan(
        form,
        options.get("rows", 128),
        options.get("columns", 64),
        options.get("depth", 32),
        options.get("high", 4),
        options.get("wide", 1),
        options.get("stages", 2),
        options.get("parts", EXACT),
        bool(options.get("held", 0)),
    )
    reason = _fault(made)
    if reason:
        raise RefusalError(reason)
    return made


def _fault(made: Plan) -> str:
    """Why numbers do not fit a form, or the GPU; empty when they do."""
    form = made.form
    if made.rows % (STEP * made.high) or made.columns % (STEP * made.wide) or made.depth % STEP:
        return "its warps do not share its tile"
    if form.carried is not None and (made.wide > 1 or made.columns % STEP):
        return "its warps do not share its rows"
    if any(not c.exact for c in form.computed) and not may_have(form, made.parts):
        return f"a computed factor of {form.dtype} cannot be {made.parts} halves"
    if any(n & (n - 1) for n in (made.high, made.wide, made.warp_rows, made.columns // made.wide)):
        return "its warps do not divide its tile by powers of two"
    if any(t.factor.placed and t.width < form.piece for t in made.tiles.values()):
        return "neighbours of a line that lies anywhere are not copied 16 bytes at once"
    if made.shared > ROOM:
        return f"its tiles take {made.shared} bytes of shared memory"
    if made.registers > REGISTERS:
        return f"its tiles take {made.registers} registers"
    return ""


def may_have(form: Form, parts: int) -> bool:
    """Whether computed factors may be cut into so many halves.

    One rounds them, which is what happens to the results anyway; three are as exact as f32.  Halves with
    few exponents hold numbers between 0 and 1 only, and what is left over of them is too small.
    """
    inexact = [c for c in form.computed if not c.exact]
    if parts == 1:
        return form.narrows and (form.dtype == BF16 or all(c.bounded for c in inexact))
    return form.dtype == BF16 and parts == EXACT


def step(factor: Stored, axis: str) -> Extent:
    """Elements between neighbours of a factor along an axis."""
    found = spell.step(factor.load.access, axis)
    assert found is not None, "a factor lies along lines"
    return found


def is_whole(form: Form, axis: str, tile: int) -> bool:
    """Whether tiles of an axis that begin at multiples of their size never reach past its end."""
    extent = form.program.kernel.axes[axis]
    return isinstance(extent, int) and extent % tile == 0 and long(form.program.kernel, [axis]) != ()
