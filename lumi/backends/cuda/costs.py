"""What a kernel should take on an H200, by how its template works: the model that orders candidates.

The figures do not depend on the moment: plans for the GPU are made without one, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lumi.backends.cuda import direct, tiling
from lumi.backends.cuda.held import WORD
from lumi.backends.cuda.mma import known
from lumi.backends.cuda.mma import plan as tensor
from lumi.backends.cuda.mma import price as tensor_price
from lumi.backends.cuda.scope import Blocking
from lumi.backends.cuda.tf32 import is_tf32
from lumi.backends.cuda.wgmma import plan as groups
from lumi.backends.cuda.wgmma import price as group_price
from lumi.dtype import I8, U8
from lumi.llir import spell
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Map, Reduce, Schedule, Statement, Step, walk
from lumi.llir.program import is_plain
from lumi.search.model import PRICES, Machine, Work, examine
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

BLOCKS = 4
"""Blocks of a multiprocessor that share values in loops at once."""

RESIDENT = 2048
"""Threads that a multiprocessor runs at once."""

VECTOR = 16
"""Bytes that a load moves where neighbours lie side by side."""

UNSHARED = 0.97
"""Share of the bandwidth that is left where every row of a result loads what all rows share."""

RING = (0.65e-6, 4.59e12), (2.0e-6, 5.6e12)
"""Seconds to start and bytes a second of a ring that memory bounds, and of one that is short."""

BESIDE = 0.01
"""Share by which kernels without a ring slow each other down that run in one launch."""

LINES = 2.5e-6, 3.7e12
"""Seconds to start and bytes a second where lines are copied ahead and then stay in registers."""

DIRECT = 0.9e-6, 0.2e-6, 12e-9, 0.5e-9
"""Seconds to start where lines go straight into registers, and in which a block only computes: at least, for
each register of a thread that holds elements, and for each thread whose results are joined."""

CLUSTER = 0.6e-6, 0.2e-6
"""Seconds in which blocks that share a line join a result of it: at least, and for each other block."""

SPREAD = 1.2
"""How much slower blocks that share a line write it than blocks with lines of their own."""

UNDER_WAY = 32 << 10
"""Bytes that the threads of a multiprocessor should have requested at any time."""

SHALLOW = 0.04
"""Share by which an elementwise kernel is slower with half as much under way."""

BEGIN = 0.5e-9
"""Seconds a multiprocessor takes to begin a block."""

TAIL = 0.25
"""Share of the time of what all multiprocessors do at once that the last of it takes longer."""

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

WHOLE = 1 << 30
"""A tile that holds any axis whole."""

BARRIERS = 6e-6
"""Seconds of a turn of a loop whose values all threads of a block share."""


PACKED = 1.6e-6, 4.26e12
"""Seconds to start and bytes a second of a ring of packed rows that memory bounds."""

UNPACKED = 32e12
"""Elementwise operations a second that unpack such rows."""

APART = 3e12
"""The same where bytes are unpacked one by one, as they are summed."""

VECTORS = 3e12
"""Bytes a second that all blocks of a packed ring load together of the vectors that each of them holds."""

IN_TURN = 0.17e-6
"""Seconds of a turn of a reduction to a single value: threads share its innermost axis alone."""

FREE = ("ring", "packed", "lines", "direct", "walk", "mma", "wgmma")
"""Templates that choose all tiles by themselves."""

TURN = 2e-6
"""Seconds that a turn takes longer than a launch that begins while the one before it ends."""


@dataclass(slots=True)
class _Body:
    """What is known of kernels that share a tile program: whether it carries nothing around, their costs."""

    statements: tuple[Statement, ...]
    plain: bool
    costs: dict[object, Cost] = field(default_factory=dict)


@dataclass(slots=True)
class Costs:
    """Estimates, each made once: many kernels differ only in tiles that their template ignores."""

    bodies: dict[int, _Body] = field(default_factory=dict)

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """The estimate of one run of a kernel at these dims."""
        body = self._body(kernel)
        if schedule.template == "packed":
            schedule = Schedule("packed")
        free = body.plain or schedule.template in FREE
        tiles = () if free else tuple(sorted(kernel.tiles.items()))
        key = (schedule, tuple(sorted(dims.items())), kernel.grid, kernel.resident, tiles)
        known = body.costs.get(key)
        if known is None:
            if free:
                kernel = replace(kernel, tiles=_whole(kernel))
            known = body.costs[key] = _cost(kernel, schedule, dims, body.plain)
        return known

    def together(self, kernels: Sequence[Kernel], schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """The estimate of one launch of kernels that do not depend on each other."""
        each = [self.cost(k, schedule, dims) for k in kernels]
        traffic = sum(c.traffic for c in each)
        if schedule.template == "ring":
            seconds = _streamed(traffic) + max(c.seconds - _streamed(c.traffic) for c in each)
        elif schedule.template == "packed":
            seconds = PACKED[0] + sum(c.seconds - PACKED[0] for c in each)
        else:
            alone = sum(c.seconds - MACHINE.launch for c in each)
            seconds = MACHINE.launch + alone * (1 + BESIDE)
        floor, flops = sum(c.floor for c in each), sum(c.flops for c in each)
        return Cost(seconds, floor, traffic, flops, max(c.live for c in each))

    def in_turn(self, steps: Sequence[Step], dims: Mapping[str, int]) -> Cost:
        """The estimate of one launch in which steps take turns."""
        each = [
            self.together(s.kernels, s.schedule, dims) if s.beside else self.cost(s.kernel, s.schedule, dims)
            for s in steps
        ]
        return Cost(
            sum(c.seconds for c in each) + TURN * (len(steps) - 1),
            sum(c.floor for c in each),
            sum(c.traffic for c in each),
            sum(c.flops for c in each),
            max(c.live for c in each),
        )

    def _body(self, kernel: Kernel) -> _Body:
        known = self.bodies.get(id(kernel.body))
        if known is None or known.statements is not kernel.body:
            plain = all(is_plain(s) for s in walk(kernel.body) if isinstance(s, Loop))
            known = self.bodies[id(kernel.body)] = _Body(kernel.body, plain)
        return known


def _cost(kernel: Kernel, schedule: Schedule, dims: Mapping[str, int], plain: bool) -> Cost:
    options = dict(schedule.options)
    blocking = Blocking(options.get("threads", 256), options.get("rows", 1), options.get("unroll", 2))
    if schedule.template not in FREE:
        kernel = replace(kernel, tiles={**kernel.tiles, **tiling.tiles(kernel, blocking)})
    work = examine(kernel, dims, holds=not plain and schedule.template not in FREE)
    shared = MACHINE if blocking.rows > 1 else replace(MACHINE, bandwidth=UNSHARED * MACHINE.bandwidth)
    found = work.cost(shared)
    match schedule.template:
        case "ring":
            seconds = _streamed(found.traffic) + _vector(work) / ELEMENTS
            return replace(found, seconds=seconds, floor=found.traffic / MACHINE.bandwidth)
        case "packed":
            seconds = max(found.traffic / PACKED[1], _of_rows(work) / UNPACKED)
            vectors = _vector(work) / ELEMENTS + MACHINE.units * _vector_bytes(work) / VECTORS
            floor = found.traffic / MACHINE.bandwidth
            return replace(found, seconds=PACKED[0] + seconds + vectors, floor=floor)
        case "lines":
            lines = math.prod(work.sizes[a] for a in kernel.grid)
            busy = min(1.0, AT_ONCE * lines / MACHINE.units)
            return replace(found, seconds=LINES[0] + max(found.traffic / (LINES[1] * busy), found.floor))
        case "direct":
            return replace(found, seconds=_direct(work, found, options))
        case "mma":
            form = known.look(kernel, is_tf32(schedule)).form
            assert form is not None, "only what tensor cores compute has this schedule"
            made = tensor.plan(form, options)
            seconds = tensor_price.seconds(made, dims, MACHINE, found.traffic)
            flops = tensor_price.flops(form, dims)
            floor = max(found.traffic / MACHINE.bandwidth, flops / tensor_price.peak(form))
            return replace(found, seconds=seconds, floor=floor, flops=flops)
        case "wgmma":
            form = known.look(kernel).form
            assert form is not None, "only what tensor cores compute has this schedule"
            seconds = group_price.seconds(groups.plan(form, options), dims, MACHINE, found.traffic)
            flops = tensor_price.flops(form, dims)
            floor = max(found.traffic / MACHINE.bandwidth, flops / tensor_price.PEAK)
            return replace(found, seconds=seconds, floor=floor, flops=flops)
        case "walk":
            seconds = WALK[0] + _joined(work) + _before(work) / OPERATIONS + found.traffic / WALK[1]
            return replace(found, seconds=seconds, floor=found.traffic / MACHINE.bandwidth)
        case _ if _is_elementwise(work):
            return replace(found, seconds=found.seconds + _scattered(work, found, blocking))
        case _:
            waiting = EXPOSED * LATENCY * _rounds(work, blocking) + BARRIERS * _turns(work)
            waiting += IN_TURN * _in_turn(work)
            unpacking = _of_rows(work) / APART if _sums_bytes(kernel) else 0.0
            return replace(found, seconds=found.seconds + waiting + unpacking)


def _streamed(traffic: float) -> float:
    """Seconds in which so many bytes pass through rings."""
    return max(start + traffic / rate for start, rate in RING)


def _whole(kernel: Kernel) -> dict[str, int]:
    """One point of the grid, and whole loops."""
    return {a: 1 if a in kernel.grid else WHOLE for a in kernel.axes}


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


def _direct(work: Work, found: Cost, options: Mapping[str, int]) -> float:
    """Seconds of lines in registers: blocks take turns at memory as far as some run side by side."""
    users, blocks = options["users"], options["blocks"]
    lines = math.prod(work.sizes[a] for a in work.kernel.grid)
    held = _of_line(work) / (WORD * blocks * users)
    start, idle = DIRECT[0], DIRECT[1] + held * DIRECT[2] + users * DIRECT[3]
    if blocks > 1:
        joined = sum(isinstance(s, Reduce) for s in walk(work.kernel.body))
        idle += joined * (CLUSTER[0] + (blocks - 1) * CLUSTER[1])
    cells = lines * blocks / MACHINE.units
    beside = max(min(direct.beside(users, held), int(cells)), 1)
    moving = found.traffic / (lines * blocks) / (MACHINE.bandwidth / MACHINE.units)
    turns = max(cells / beside, 1.0) * max(beside * moving, moving + idle)
    spread = SPREAD if blocks > 1 and 4 * work.written * work.cells > found.traffic else 1.0
    return start + idle + max(spread * turns, found.floor)


def _of_line(work: Work) -> float:
    """Bytes of a line, and of what all lines share."""
    loads = [s for s in walk(work.kernel.body) if isinstance(s, Load)]
    distinct = {(s.access.buffer, s.access.index): s for s in loads}.values()
    inner = [(s, [work.sizes[a] for a in s.axes if a not in work.kernel.grid]) for s in distinct]
    return float(sum(math.prod(sizes) * s.access.dtype.size for s, sizes in inner))


def _rounds(work: Work, blocking: Blocking) -> float:
    """How often threads wait for memory one after another: turns of loads under way at once, by cells."""
    resident = MACHINE.units * max(RESIDENT // blocking.threads, 1)
    turns = _loads(work, work.kernel.body, 1.0) / (blocking.threads * blocking.unroll)
    return -(-work.cells // resident) * max(turns, 1.0)


def _turns(work: Work) -> float:
    """Turns of loops that carry values around, one after another in the blocks of a multiprocessor."""
    loops = [s for s in walk(work.kernel.body) if isinstance(s, Loop) and not is_plain(s)]
    turns = sum(math.prod(-(-_span(work, s, a) // work.tiles[a]) for a in s.axes) for s in loops)
    return float(turns * -(-work.cells // (MACHINE.units * BLOCKS)))


def _in_turn(work: Work) -> float:
    """Turns of the outer axes of reductions to a single value, one after another."""
    single = [s for s in walk(work.kernel.body) if isinstance(s, Reduce | Dot) and not s.axes]
    return float(sum(math.prod(work.sizes[a] for a in s.over[:-1]) for s in single if len(s.over) > 1))


def _vector(work: Work) -> float:
    """Operations that every block of a ring repeats, for the vector that rows are multiplied with."""
    grid, found = set(work.kernel.grid), 0.0
    for statement in walk(work.kernel.body):
        if isinstance(statement, Map) and statement.axes and not set(statement.axes) & grid:
            found += math.prod(work.sizes[a] for a in statement.axes) * PRICES.get(statement.op, 1)
    return found


def _sums_bytes(kernel: Kernel) -> bool:
    """Whether a kernel reduces what it makes of bytes."""
    body = list(walk(kernel.body))
    read = any(isinstance(s, Load) and s.access.dtype in (I8, U8) and len(s.axes) > 1 for s in body)
    return read and any(isinstance(s, Dot | Reduce) for s in body)


def _of_rows(work: Work) -> float:
    """Operations on the elements of rows."""
    grid, found = set(work.kernel.grid), 0.0
    for statement in walk(work.kernel.body):
        if isinstance(statement, Map) and set(statement.axes) & grid:
            found += math.prod(work.sizes[a] for a in statement.axes) * PRICES.get(statement.op, 1)
    return found


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
    return JOINED[0] if blocks > 1 and _span(work, loop, loop.axes[0]) > JOINED[1] else 0.0


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


def _span(work: Work, loop: Loop, axis: str) -> int:
    """Positions that one run of a loop covers."""
    whole = work.sizes[axis]
    return whole if loop.chunk is None else -(-whole // work.sizes[loop.chunk])


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
            trips = math.prod(-(-_span(work, statement, a) // work.tiles[a]) for a in statement.axes)
            inner += _loads(work, statement.body, times * trips)
    return inner + most
