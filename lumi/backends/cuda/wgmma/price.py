"""What a kernel of groups of warps should take on an H200."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lumi import dim
from lumi.backends.cuda.mma import price as common
from lumi.backends.cuda.wgmma.plan import GroupPlan
from lumi.search.model import Machine

RATE = 3800.0
"""Operations a cycle of a multiprocessor by `wgmma`, where the GPU's power limits it."""

HIDDEN = 0.75
"""Share of the shorter of products and elementwise work that the other hides."""

ONE_GROUP = 1.35
"""How much longer a single group takes, which has nobody to work while it waits."""

COPIED = 1.03
"""How much longer it takes where threads copy, not the copy engine."""

FETCHED = 71e9, 0.84
"""Bytes a second that the threads of a multiprocessor copy, however many multiprocessors do, and the share of
the memory's bandwidth that all of them get."""

SIGNALLED = 100.0
"""Cycles of a turn in which groups tell each other what is full and what is free."""

HIDDEN_END = 0.7
"""Share of what follows the sums of a cell that the next one's first turn hides, where it begins ahead."""

START = 3000.0
"""Cycles until a cell's first products can begin."""


def seconds(made: GroupPlan, dims: Mapping[str, int], machine: Machine, traffic: float) -> float:
    """The estimate of one run that moves `traffic` bytes at least."""
    form, axes = made.form, made.form.program.kernel.axes
    sizes = {a: max(dim.value(e, dims), 1) for a, e in axes.items()}
    high, wide = -(-sizes[form.row] // made.rows), -(-sizes[form.column] // made.width_of(form.column))
    cells = high * wide * math.prod(sizes[a] for a in form.outer)
    turns, turn = common.turns(made, sizes, dims), common.turn(made, RATE)
    work = max(turn.products, turn.elements) + (1 - HIDDEN) * min(turn.products, turn.elements)
    work *= (ONE_GROUP if made.groups == 1 else 1.0) * (1.0 if made.bulk else COPIED)
    work += SIGNALLED
    waves = cells / machine.units
    rounds = max(math.ceil(waves), 1) if form.cascade is None else max(waves, 1.0)
    end = common.epilogue(made) * (1 - HIDDEN_END if made.ahead else 1.0)
    compute = (rounds * (turns * work + end) + START) * common.CYCLE
    memory = _memory(made, traffic / machine.bandwidth, turns * turn.bytes, cells, rounds)
    return machine.launch + max(compute, memory) + 0.1 * min(compute, memory)


def _memory(made: GroupPlan, least: float, copied: float, cells: float, rounds: float) -> float:
    """Seconds of moving data, `least` at the memory's bandwidth, where each cell copies so many bytes."""
    if made.bulk:
        return max(least, cells * copied / common.CACHE)
    rate, share = FETCHED
    return max(least / share, rounds * copied / rate)
