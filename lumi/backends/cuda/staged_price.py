"""What kernels take on an H200 that stage what they read: rings, lines, packed rows, walks."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lumi.backends.cuda import direct
from lumi.backends.cuda.held import WORD
from lumi.backends.cuda.machine import MACHINE
from lumi.llir.kernel import Load, Loop, Map, Reduce, walk
from lumi.memo import Memo
from lumi.search.model import Work
from lumi.search.protocol import Cost
from lumi.search.tasks import PRICES

RING = (0.65e-6, 4.59e12), (2.0e-6, 5.6e12)
"""Seconds to start and bytes a second of a ring that memory bounds, and of one that is short."""

LINES = 1.4e-6, 3.85e12, 4.4e12
"""Seconds to start and bytes a second where lines are copied ahead and then stay in registers: of lines that
are written, and of those that are only read."""

DIRECT = 0.9e-6, 0.2e-6, 12e-9, 0.15e-9, 0.15
"""Seconds to start where lines go straight into registers, and in which a block only computes: at least, for
each register of a thread that holds elements, and for each thread whose results a reduction joins; and the
share of the time of a block's operations in which it does nothing else."""

READ = 4.5e12
"""Bytes a second of kernels that write little."""

COMPUTED = 22e12
"""Elementwise operations a second on elements of lines in registers."""

CLUSTER = 0.6e-6, 0.2e-6
"""Seconds in which blocks that share a line join a result of it: at least, and for each other block."""

SPREAD = 1.2
"""How much slower blocks that share a line write it than blocks with lines of their own."""

ASIDE = 1.06
"""How much slower lines are of which a part lies in shared memory: what comes there is awaited at once."""

STAY = 0.975, 32 << 20
"""How much less time lines take that stay in the cache as long as they can, and of how many bytes of results
at least."""

AT_ONCE = 3
"""How much faster a single multiprocessor can read than its share of the bandwidth."""

WALK = 3.5e-6, 4.15e12
"""Seconds to start and end a walk, and bytes a second of one."""

JOINED = 4e-6, 256
"""Seconds to join what blocks have of a cell, where there are more positions than so many."""

OPERATIONS = 5e10
"""Elementwise operations a second of one block."""

ELEMENTS = 0.12e12
"""Elementwise operations a second of one block of a ring."""

PACKED = 1.6e-6, 4.26e12
"""Seconds to start and bytes a second of a ring of packed rows that memory bounds."""

UNPACKED = 32e12
"""Elementwise operations a second that unpack such rows."""

TILES = (3.3e-6, 4.69e12), (1.1e-6, 3.35e12)
"""The same as of `PACKED` where tensor cores multiply packed rows, and where these are spread, too."""

TILED = 64e12
"""Elementwise operations a second that unpack rows for tensor cores."""

VECTORS = 3e12
"""Bytes a second that all blocks of a packed ring load together of the vectors that each of them holds."""


def ring(work: Work, traffic: float) -> float:
    """Seconds of rows that pass through a ring, and of the vector that they are multiplied with."""
    return streamed(traffic) + _vector(work) / ELEMENTS


def packed(work: Work, traffic: float, options: Mapping[str, int]) -> float:
    """Seconds of packed rows that are unpacked as they pass through a ring."""
    start, rate = packed_rates(options)
    operations = TILED if options.get("tiles") else UNPACKED
    return start + max(traffic / rate, of_rows(work) / operations) + vectors(work)


def packed_rates(options: Mapping[str, int]) -> tuple[float, float]:
    """Seconds to start and bytes a second of a ring of packed rows."""
    return TILES[options.get("spread", 0)] if options.get("tiles") else PACKED


def vectors(work: Work) -> float:
    """Seconds to make the vectors that packed rows are multiplied with."""
    return _vector(work) / ELEMENTS + MACHINE.units * _vector_bytes(work) / VECTORS


def line(work: Work, found: Cost) -> float:
    """Seconds of lines that are copied ahead."""
    lines = math.prod(work.sizes[a] for a in work.kernel.grid)
    busy = min(1.0, AT_ONCE * lines / MACHINE.units)
    rate = LINES[1 if _writes(work, found) else 2]
    return LINES[0] + max(found.traffic / (rate * busy), of_rows(work) / COMPUTED)


def walked(work: Work, traffic: float) -> float:
    """Seconds of a walk over rows."""
    return WALK[0] + _joined(work) + _before(work) / OPERATIONS + traffic / WALK[1]


def streamed(traffic: float) -> float:
    """Seconds in which so many bytes pass through rings."""
    return max(start + traffic / rate for start, rate in RING)


def in_registers(work: Work, found: Cost, options: Mapping[str, int]) -> float:
    """Seconds of lines in registers: blocks take turns at memory as far as some run side by side."""
    users, blocks = options["users"], options.get("blocks", 1)
    lines = math.prod(work.sizes[a] for a in work.kernel.grid)
    held = _of_line(work) / (WORD * blocks * users)
    aside = held * options.get("aside", 0) / direct.EIGHTHS
    joined = sum(isinstance(s, Reduce) for s in walk(work.kernel.body))
    start, idle = DIRECT[0], DIRECT[1] + held * DIRECT[2] + joined * users * DIRECT[3]
    idle += DIRECT[4] * of_rows(work) / (lines * blocks) / (COMPUTED / MACHINE.units)
    if blocks > 1:
        idle += joined * (CLUSTER[0] + (blocks - 1) * CLUSTER[1])
    cells = lines * blocks / MACHINE.units
    beside = max(min(direct.beside(users, held - aside, WORD * users * aside), int(cells)), 1)
    writes = _writes(work, found)
    moving = found.traffic / (lines * blocks) / ((MACHINE.bandwidth if writes else READ) / MACHINE.units)
    turns = max(cells / beside, 1.0) * max(beside * moving, moving + idle)
    spread = SPREAD if blocks > 1 and writes else ASIDE if aside else 1.0
    stay = STAY[0] if options.get("stay", 0) and work.written * work.cells > STAY[1] else 1.0
    return start + idle + max(stay * spread * turns, of_rows(work) / COMPUTED)


def _writes(work: Work, found: Cost) -> bool:
    """Whether a kernel writes a good part of what it moves."""
    return 4 * work.written * work.cells > found.traffic


def _of_line(work: Work) -> float:
    """Bytes of a line, and of what all lines share."""
    loads = [s for s in walk(work.kernel.body) if isinstance(s, Load)]
    distinct = {(s.access.buffer, s.access.index): s for s in loads}.values()
    inner = [(s, [work.sizes[a] for a in s.axes if a not in work.kernel.grid]) for s in distinct]
    return float(sum(math.prod(sizes) * s.access.dtype.size for s, sizes in inner))


@Memo
def _vector(work: Work) -> float:
    """Operations that every block of a ring repeats, for the vector that rows are multiplied with."""
    grid, found = set(work.kernel.grid), 0.0
    for statement in walk(work.kernel.body):
        if isinstance(statement, Map) and statement.axes and not set(statement.axes) & grid:
            found += math.prod(work.sizes[a] for a in statement.axes) * PRICES.get(statement.op, 1)
    return found


@Memo
def of_rows(work: Work) -> float:
    """Operations on the elements of rows."""
    grid, found = set(work.kernel.grid), 0.0
    for statement in walk(work.kernel.body):
        if isinstance(statement, Map) and set(statement.axes) & grid:
            found += math.prod(work.sizes[a] for a in statement.axes) * PRICES.get(statement.op, 1)
    return found


@Memo
def _vector_bytes(work: Work) -> float:
    """Bytes of what every block of a ring loads for itself."""
    grid, found = set(work.kernel.grid), 0.0
    for statement in walk(work.kernel.body):
        if isinstance(statement, Load) and not set(statement.axes) & grid:
            found += math.prod(work.sizes[a] for a in statement.axes) * statement.access.dtype.size
    return found


def _walked(work: Work) -> tuple[Loop, list[set[str]], set[str]]:
    """The loop of a walk, the axes of its rows, and those of its cells."""
    (loop,) = (s for s in work.kernel.body if isinstance(s, Loop))
    rows = [set(s.axes) for s in walk(loop.body) if isinstance(s, Load) and loop.axes[0] in s.axes]
    return loop, rows, {a for a in work.kernel.grid if all(a in r for r in rows)}


def _joined(work: Work) -> float:
    """Seconds to join what the blocks of a walk have."""
    loop, _, cells = _walked(work)
    blocks = MACHINE.units // max(math.prod(work.sizes[a] for a in cells), 1)
    return JOINED[0] if blocks > 1 and work.span(loop, loop.axes[0]) > JOINED[1] else 0.0


def _before(work: Work) -> float:
    """Elementwise operations of a block before it walks: on the vectors of all heads of a cell."""
    loop, rows, cells = _walked(work)
    columns = set().union(*rows) - set(work.kernel.grid)
    vectors = [s for s in walk(work.kernel.body) if isinstance(s, Map) and set(s.axes) & columns]
    return float(
        sum(
            math.prod(work.sizes[a] for a in s.axes if a not in cells)
            for s in vectors
            if loop.axes[0] not in s.axes
        )
    )
