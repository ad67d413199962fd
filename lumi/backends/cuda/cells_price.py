"""What kernels take on an H200 whose threads load what they need when they need it."""

from __future__ import annotations

import math

from lumi.backends.cuda.machine import MACHINE, RESIDENT
from lumi.backends.cuda.scope import Blocking
from lumi.backends.cuda.staged_price import of_rows
from lumi.dtype import I8, U8
from lumi.llir import spell
from lumi.llir.kernel import Dot, Load, Loop, Reduce, Statement, walk
from lumi.llir.program import is_plain
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


def seconds(work: Work, found: Cost, blocking: Blocking) -> float:
    """Seconds of one run whose operations and data take what `found` says."""
    if _is_elementwise(work):
        return found.seconds + _scattered(work, found, blocking)
    waiting = EXPOSED * LATENCY * _rounds(work, blocking) + BARRIERS * _turns(work)
    waiting += IN_TURN * _in_turn(work)
    unpacking = of_rows(work) / APART if _sums_bytes(work) else 0.0
    return found.seconds + waiting + unpacking


def _is_elementwise(work: Work) -> bool:
    """Whether a kernel computes each element by itself, of neighbours that are moved together."""
    every = list(walk(work.kernel.body))
    loads = [s for s in every if isinstance(s, Load)]
    together = all(any(spell.step(s.access, a) == 1 for a in s.axes[-1:]) for s in loads if s.axes)
    return together and not any(isinstance(s, Loop | Reduce | Dot) for s in every)


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


def _turns(work: Work) -> float:
    """Turns of loops that carry values around, one after another in the blocks of a multiprocessor."""
    loops = [s for s in walk(work.kernel.body) if isinstance(s, Loop) and not is_plain(s)]
    turns = sum(math.prod(-(-work.span(s, a) // work.tiles[a]) for a in s.axes) for s in loops)
    return float(turns * -(-work.cells // (MACHINE.units * BLOCKS)))


def _in_turn(work: Work) -> float:
    """Turns of the outer axes of reductions to a single value, one after another."""
    single = [s for s in walk(work.kernel.body) if isinstance(s, Reduce | Dot) and not s.axes]
    return float(sum(math.prod(work.sizes[a] for a in s.over[:-1]) for s in single if len(s.over) > 1))


def _sums_bytes(work: Work) -> bool:
    """Whether a kernel reduces what it makes of bytes."""
    body = list(walk(work.kernel.body))
    read = any(isinstance(s, Load) and s.access.dtype in (I8, U8) and len(s.axes) > 1 for s in body)
    return read and any(isinstance(s, Dot | Reduce) for s in body)


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
            trips = math.prod(-(-work.span(statement, a) // work.tiles[a]) for a in statement.axes)
            inner += _loads(work, statement.body, times * trips)
    return inner + most
