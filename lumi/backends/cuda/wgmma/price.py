"""What a kernel of groups of warps should take on an H200."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumi import dim
from lumi.backends.cuda.mma import price as common
from lumi.backends.cuda.mma.form import Stored
from lumi.backends.cuda.wgmma import sent
from lumi.backends.cuda.wgmma.plan import GroupPlan
from lumi.search.model import Machine

RATE = 3800.0
"""Operations a cycle of a multiprocessor by `wgmma` in whole sums, where the GPU's power limits it."""

BEST = 8192.0
"""Operations a cycle that it does at most: what a cascade reads from shared memory is counted apart."""

HIDDEN = {1: 0.87, 2: 0.87, 3: 1.0}
"""Share of the shorter of products and elementwise work that the other hides, by the number of groups."""

ONE_GROUP = 1.35
"""How much longer a single group takes, which has nobody to work while it waits."""

COPIED = 1.03
"""How much longer it takes where threads copy, not the copy engine."""

BROUGHT = 10e12
"""Bytes a second that the copy engines of all multiprocessors bring: what several want at once comes once."""

HINDERED = {False: 0.1, True: 0.02}
"""Share of the shorter of products and copies that adds to the longer, by whether the copy engine copies."""

FETCHED = 71e9, 0.84
"""Bytes a second that the threads of a multiprocessor copy, however many multiprocessors do, and the share of
the memory's bandwidth that all of them get."""

SIGNALLED = {False: 100.0, True: 180.0}
"""Cycles of a turn, of a cascade or not, in which groups tell each other what is full and what is free."""

HIDDEN_END = 0.5
"""Share of what follows the sums of a cell that the next one's first turn hides, where it begins ahead."""

SENT = 0.5
"""Share of the cycles of storing results that is left where the copy engine stores them."""

LOADED = {False: 0.9, True: 0.05}
"""Cycles of an element that results are made of beside products, by whether the copy engine brings it."""

START = 3000.0
"""Cycles until a cell's first products can begin."""


def seconds(found: Sequence[tuple[GroupPlan, float]], dims: Mapping[str, int], machine: Machine) -> float:
    """The estimate of one launch of kernels, each with the bytes that it moves at least.

    Their cells are dealt out as if they were those of one: those that take longest say how long all do.  A
    few multiprocessors get more than their share of the memory's bandwidth, as the square root of how many.
    """
    each = [_share(made, dims) for made, _ in found]
    first, cells = found[0][0], sum(share.cells for share in each)
    waves = cells / machine.units
    rounds = max(math.ceil(waves), 1) if first.form.cascade is None else max(waves, 1.0)
    compute = (rounds * max(share.cycles for share in each) + START) * common.CYCLE
    least = sum(traffic for _, traffic in found) / machine.bandwidth
    if first.bulk:
        brought = sum(share.cells * share.copied for share in each) / BROUGHT
        apart = (START + max(share.end for share in each)) * common.CYCLE
        memory = apart + max(least / math.sqrt(waves / rounds), brought)
    else:
        memory = max(least / FETCHED[1], rounds * max(share.copied for share in each) / FETCHED[0])
    return machine.launch + max(compute, memory) + HINDERED[first.bulk] * min(compute, memory)


@dataclass(frozen=True, slots=True)
class _Share:
    """What a kernel is to a launch: its cells; cycles of one, of its end alone, and the bytes it copies."""

    cells: int
    cycles: float
    end: float
    copied: float


def _share(made: GroupPlan, dims: Mapping[str, int]) -> _Share:
    form, axes = made.form, made.form.program.kernel.axes
    sizes = {a: max(dim.value(e, dims), 1) for a, e in axes.items()}
    high, wide = -(-sizes[form.row] // made.rows), common.wide(made, sizes)
    turns, turn = common.turns(made, sizes, dims), common.turn(made, RATE)
    products = turn.products if form.cascade is None else _products(made)
    work = max(products, turn.elements) + (1 - HIDDEN[made.groups]) * min(products, turn.elements)
    work *= (ONE_GROUP if made.groups == 1 else 1.0) * (1.0 if made.bulk else COPIED)
    work += SIGNALLED[form.cascade is not None]
    end = common.epilogue(made) * (1 - HIDDEN_END if made.ahead else 1.0)
    end *= SENT if made.sent is not None else 1.0
    end += common.folding(made, sizes, dims) + _operands(made)
    cells = high * wide * math.prod(sizes[a] for a in form.outer)
    return _Share(cells, turns * work + end, end, turns * turn.bytes)


def _operands(made: GroupPlan) -> float:
    """Cycles in which a cell waits for what its results are made of beside products."""
    if made.form.cascade is not None:
        return 0.0
    brought = made.sent.loads if made.sent is not None else {}
    each = [LOADED[load.var in brought] for load in sent.operands(made.form)]
    return made.rows * made.width_of(made.form.column) * sum(each)


def _products(made: GroupPlan) -> float:
    """Cycles of the products of a cascade's turn: groups read their factors while they multiply."""
    cycles, size = 0.0, made.form.dtype.size
    for product in made.form.products:
        depth, columns = made.depth_of(product), made.width_of(product.columns)
        read = made.readers * columns + (made.rows if isinstance(product.a, Stored) else 0)
        cycles += 2.0 * made.rows * columns * depth / BEST + read * depth * size / common.BANKS
    return cycles
