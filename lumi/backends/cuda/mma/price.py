"""What a kernel on tensor cores should take on an H200: its instructions, its stages, what it waits for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumi import dim
from lumi.backends.cuda.mma.form import Cascade, Form, Product, Stored
from lumi.backends.cuda.mma.plan import STEP, Plan, up
from lumi.llir.kernel import Loop, Map, Reduce, walk
from lumi.search.guard import active_share
from lumi.search.model import Machine
from lumi.search.tasks import PRICES

RATE = 2600.0
"""Operations a cycle of a multiprocessor by `mma.sync`, at best: Hopper's own instructions do more."""

BANKS = 128.0
"""Bytes a cycle that shared memory gives."""

LANES = 128.0
"""Elementwise operations a cycle of a multiprocessor."""

CYCLE = 1 / 1.6e9
"""Seconds."""

LATENCY = 1200.0
"""Cycles until a tile has come from memory."""

PAUSE = 500.0
"""Cycles of a turn in which warps wait for each other and begin copies, unless other blocks fill them."""

SHARED = 227 << 10
"""Bytes of shared memory of a multiprocessor."""

REGISTERS = 64 << 10
"""Registers of a multiprocessor."""

PEAK = 990e12
"""Operations a second that no kernel exceeds."""

HALF = 2
"""Bytes of a factor at which these rates are; twice as many are multiplied half as fast."""

BUSY = 8
"""Warps that keep a multiprocessor's tensor cores busy."""

ALONE = 1.1
"""How much elementwise work adds to products: little of it is hidden, and it moves values, too."""

SCATTERED = 9.0
"""How much longer it takes to look each element of a tile up than to copy pieces of it."""

CACHE = 6.5e12
"""Bytes a second that all multiprocessors get from the last cache."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a block does in a turn: cycles of products, of elementwise work; bytes that it asks for."""

    products: float
    elements: float
    bytes: float


def seconds(found: Sequence[tuple[Plan, float]], dims: Mapping[str, int], machine: Machine) -> float:
    """The estimate of one launch of kernels, each with the bytes that it moves at least.

    Their cells are dealt out as if they were those of one: those that take longest say how long all do.
    """
    sizes = [_sizes(made, dims) for made, _ in found]
    counts = [_cells(made, size) for (made, _), size in zip(found, sizes, strict=True)]
    first, cells = found[0][0], sum(counts)
    blocks = _resident(first)
    here = min(blocks, max(1, cells // machine.units))
    filled = math.sqrt(min(1.0, first.threads // 32 * here / BUSY))
    longest, asked, least = 0.0, 0.0, 0.0
    for (made, traffic), size, own in zip(found, sizes, counts, strict=True):
        one, count = turn(made, RATE * HALF / made.form.dtype.size), turns(made, size, dims)
        work = (one.products + ALONE * one.elements) / filled
        waiting = LATENCY / max(made.stages - 1, 0.7) / here
        cell = count * (max(work, waiting) + PAUSE / here) + 2 * LATENCY / here + epilogue(made)
        cell += ALONE * folding(made, size, dims) / filled
        longest, asked = max(longest, cell), asked + own * count * one.bytes
        least += traffic / machine.bandwidth
    waves = cells / machine.units
    rounds = max(math.ceil(waves), 1) if waves < blocks else waves + 0.5
    compute, memory = rounds * longest * CYCLE, max(least, asked / CACHE)
    return machine.launch + max(compute, memory) + 0.1 * min(compute, memory)


def _sizes(made: Plan, dims: Mapping[str, int]) -> dict[str, int]:
    """The length of each axis."""
    return {a: max(dim.value(e, dims), 1) for a, e in made.form.program.kernel.axes.items()}


def _cells(made: Plan, sizes: Mapping[str, int]) -> int:
    """Cells of a kernel."""
    form = made.form
    return -(-sizes[form.row] // made.rows) * wide(made, sizes) * math.prod(sizes[a] for a in form.outer)


def wide(made: Plan, sizes: Mapping[str, int]) -> int:
    """Cells along the columns: one where they are folded."""
    column = made.form.column
    return 1 if made.form.folded is not None else -(-sizes[column] // made.width_of(column))


def _tiles(made: Plan, sizes: Mapping[str, int], dims: Mapping[str, int]) -> float:
    """Tiles of columns that a cell takes, those that are skipped left out."""
    if made.form.folded is None:
        return 1.0
    return max(_walked(made, made.form.folded, sizes, dims), 1.0)


def _walked(made: Plan, cascade: Cascade, sizes: Mapping[str, int], dims: Mapping[str, int]) -> float:
    """Tiles of the positions of a loop, those that are skipped left out."""
    length = sizes[cascade.axis]
    if cascade.loop.chunk is not None:
        length = -(-length // sizes[cascade.loop.chunk])
    turns = float(-(-length // made.columns))
    if cascade.loop.guards:
        tiles = dict.fromkeys(sizes, 1) | {made.form.row: made.rows, cascade.axis: made.columns}
        turns *= active_share(cascade.loop.guards, sizes, tiles, dims)
    return turns


def folding(made: Plan, sizes: Mapping[str, int], dims: Mapping[str, int]) -> float:
    """Cycles that a cell takes to fold the products of its tiles of columns."""
    if made.form.folded is None:
        return 0.0
    return _tiles(made, sizes, dims) * _elements(made.form.folded, made)


def peak(form: Form) -> float:
    """Operations a second that no kernel of such a form exceeds."""
    return PEAK * HALF / form.dtype.size


def flops(form: Form, dims: Mapping[str, int]) -> float:
    """Operations of all products, those that are skipped left out."""
    kernel = form.program.kernel
    sizes = {a: max(dim.value(e, dims), 1) for a, e in kernel.axes.items()}
    chunked = [s for s in walk(kernel.body) if isinstance(s, Loop) and s.chunk is not None]
    spans = sizes | {a: -(-sizes[a] // sizes[s.chunk]) for s in chunked for a in s.axes if s.chunk}
    outer, found = math.prod(sizes[a] for a in form.outer), 0.0
    for product in form.products:
        axes = (form.row, product.columns, product.summed, *product.outer_summed)
        found += 2.0 * outer * math.prod(spans[a] for a in axes)
    if form.carried is None or not form.carried.loop.guards:
        return found
    return found * active_share(form.carried.loop.guards, sizes, dict.fromkeys(sizes, 1), dims)


def _resident(made: Plan) -> int:
    """Blocks of a multiprocessor at once."""
    registers = up(min(made.registers + 16, 255), 8) * made.threads
    return max(1, min(SHARED // (made.shared + 1024), REGISTERS // registers, 2048 // made.threads))


def turns(made: Plan, sizes: Mapping[str, int], dims: Mapping[str, int]) -> float:
    """Turns of a cell, those that are skipped left out."""
    cascade = made.form.cascade
    if cascade is None:
        stages = sum(_stages(made, s.products[0], sizes) for s in made.form.sums)
        return stages * _tiles(made, sizes, dims)
    return max(_walked(made, cascade, sizes, dims), 1.0)


def _stages(made: Plan, product: Product, sizes: Mapping[str, int]) -> int:
    loop = next(s.loop for s in made.form.sums if product in s.products)
    length = sizes[product.summed]
    if loop is not None and loop.chunk is not None:
        length = -(-length // sizes[loop.chunk])
    return -(-length // made.depth) * math.prod(sizes[a] for a in product.outer_summed)


def turn(made: Plan, rate: float) -> Turn:
    """The work of a block in a turn, at `rate` operations a cycle; of several sums, that of the longest."""
    form, products, moved = made.form, 0.0, dict[object, float]()
    groups = [s.products for s in form.sums] or [form.products]
    for product in max(groups, key=len):
        depth, columns = made.depth_of(product), made.width_of(product.columns)
        parts = 1 if isinstance(product.a, Stored) or product.a.exact else made.parts
        operations = 2.0 * made.rows * columns * depth * parts
        read = float(made.readers * columns * depth * form.dtype.size)
        if isinstance(product.a, Stored) and not made.held:
            read += made.wide * made.rows * depth * form.dtype.size
        products += max(operations / rate, read * max(parts, 1) / BANKS)
        for factor in (product.a, product.b):
            if isinstance(factor, Stored) and not (form.cascade is not None and factor is product.a):
                moved[factor] = made.tile(factor).size * (SCATTERED if factor.scattered else 1.0)
    elements = 0.0 if form.cascade is None else _elements(form.cascade, made)
    return Turn(products, elements, sum(moved.values()))


def _elements(cascade: Cascade, made: Plan) -> float:
    """Cycles of what is made of the products of a tile of positions."""
    work = 0.0
    for statement in cascade.loop.body:
        if isinstance(statement, Map) and {cascade.axis, made.form.row} <= set(statement.axes):
            work += PRICES.get(statement.op, 1)
        elif isinstance(statement, Reduce):
            work += 1.0
    rescaled = sum(made.width_of(u.product.columns) for u in cascade.updates if u.factor is not None)
    return made.rows * (work * made.columns + rescaled) / LANES


def epilogue(made: Plan) -> float:
    """Cycles of what follows the sums, of which every column costs about an operation and a store."""
    return made.rows * made.width_of(made.form.column) * (STEP / LANES)
