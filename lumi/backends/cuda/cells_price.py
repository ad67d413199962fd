"""What kernels take on an H200 whose threads load what they need when they need it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from lumi.backends.cuda.machine import MACHINE, RESIDENT
from lumi.backends.cuda.scope import Blocking
from lumi.backends.cuda.staged_price import of_rows
from lumi.dtype import I8, U8
from lumi.llir import spell
from lumi.llir.kernel import Dot, Load, Loop, Reduce, Statement, walk
from lumi.llir.program import is_plain
from lumi.memo import Memo
from lumi.search.model import Work
from lumi.search.protocol import Cost

LATENCY = 0.7e-6
"""Seconds until what a thread loads has come from memory."""

EXPOSED = 0.5
"""Share of that time that other blocks do not fill."""

BLOCKS = 4
"""Blocks of a multiprocessor that share values in loops at once."""

VECTOR = 16
"""Bytes that a load moves where neighbours lie side by side."""

UNSHARED = 0.97
"""Share of the bandwidth that is left where every row of a result loads what all rows share."""

UNDER_WAY = 32 << 10
"""Bytes that the threads of a multiprocessor should have requested at any time."""

SHALLOW = 0.04
"""Share by which an elementwise kernel is slower with half as much under way."""

BEGIN = 0.5e-9
"""Seconds a multiprocessor takes to begin a block."""

TAIL = 0.25
"""Share of the time of what all multiprocessors do at once that the last of it takes longer."""

BARRIERS = 6e-6
"""Seconds of a turn of a loop whose values all threads of a block share."""

APART = 3e12
"""The same where bytes are unpacked one by one, as they are summed."""

IN_TURN = 0.17e-6
"""Seconds of a turn of a reduction to a single value: threads share its innermost axis alone."""


@dataclass(frozen=True, slots=True)
class _Traits:
    """What of a tile program tells how long its threads wait.

    `elementwise`: it computes each element by itself, of neighbours that are moved together.  `carrying` are
    the loops that carry values around.  `single` are the outer axes of reductions to a single value, which
    threads take one after another.  `sums_bytes`: it reduces what it makes of bytes.
    """

    elementwise: bool
    carrying: tuple[Loop, ...]
    single: tuple[tuple[str, ...], ...]
    sums_bytes: bool


@Memo
def _traits(body: tuple[Statement, ...]) -> _Traits:
    every = list(walk(body))
    loads = [s for s in every if isinstance(s, Load)]
    together = all(spell.step(s.access, s.axes[-1]) == 1 for s in loads if s.axes)
    sums = [s for s in every if isinstance(s, Reduce | Dot)]
    read = any(s.access.dtype in (I8, U8) and len(s.axes) > 1 for s in loads)
    return _Traits(
        together and not sums and not any(isinstance(s, Loop) for s in every),
        tuple(s for s in every if isinstance(s, Loop) and not is_plain(s)),
        tuple(s.over[:-1] for s in sums if not s.axes and len(s.over) > 1),
        read and bool(sums),
    )


def seconds(work: Work, found: Cost, blocking: Blocking) -> float:
    """Seconds of one run whose operations and data take what `found` says."""
    traits = _traits(work.kernel.body)
    if traits.elementwise:
        return found.seconds + _scattered(work, found, blocking)
    waiting = EXPOSED * LATENCY * _rounds(work, blocking) + BARRIERS * _turns(work, traits.carrying)
    waiting += IN_TURN * float(sum(math.prod(work.sizes[a] for a in axes) for axes in traits.single))
    unpacking = of_rows(work) / APART if traits.sums_bytes else 0.0
    return found.seconds + waiting + unpacking


def _scattered(work: Work, found: Cost, blocking: Blocking) -> float:
    """Seconds that an elementwise kernel takes beside moving its data.

    The more a thread loads at once, the less it waits, but the longer do the last blocks last.
    """
    resident = MACHINE.units * max(RESIDENT // blocking.threads, 1)
    wave = found.traffic / MACHINE.bandwidth * min(resident / work.cells, 1.0)
    read = (found.traffic / work.cells - work.written) * max(RESIDENT // blocking.threads, 1)
    thin = SHALLOW * max(math.log2(UNDER_WAY / max(read, 1.0)), 0.0) * found.traffic / MACHINE.bandwidth
    return EXPOSED * LATENCY + thin + TAIL * wave + BEGIN * work.cells / MACHINE.units


def _rounds(work: Work, blocking: Blocking) -> float:
    """How often threads wait for memory one after another: turns of loads under way at once, by cells."""
    resident = MACHINE.units * max(RESIDENT // blocking.threads, 1)
    turns = _loads(work, work.kernel.body, 1.0) / (blocking.threads * blocking.unroll)
    return -(-work.cells // resident) * max(turns, 1.0)


def _turns(work: Work, loops: Iterable[Loop]) -> float:
    """Turns of loops that carry values around, one after another in the blocks of a multiprocessor."""
    turns = sum(math.prod(-(-work.span(s, a) // work.tiles[a]) for a in s.axes) for s in loops)
    return float(turns * -(-work.cells // (MACHINE.units * BLOCKS)))


@Memo
def _loaded(body: tuple[Statement, ...]) -> tuple[tuple[tuple[str, ...], int], ...]:
    """The axes of the loads of a block, and how many elements an instruction loads."""
    return tuple(
        (s.axes, VECTOR // s.access.dtype.size if any(spell.step(s.access, a) == 1 for a in s.axes) else 1)
        for s in body
        if isinstance(s, Load)
    )


def _loads(work: Work, body: tuple[Statement, ...], times: float) -> float:
    """Load instructions of a cell, of which those of one loop go out together."""
    most = max([times * work.count(axes) / per for axes, per in _loaded(body)], default=0.0)
    inner = 0.0
    for loop in body:
        if isinstance(loop, Loop):
            trips = math.prod(-(-work.span(loop, a) // work.tiles[a]) for a in loop.axes)
            inner += _loads(work, loop.body, times * trips)
    return inner + most
