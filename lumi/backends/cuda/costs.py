"""What a kernel should take on an H200, by how its template works: the model that orders candidates.

The figures do not depend on the moment: plans for the GPU are made without one, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lumi.backends.cuda import cells_price, staged_price, tiling
from lumi.backends.cuda.cells_price import UNSHARED
from lumi.backends.cuda.machine import MACHINE
from lumi.backends.cuda.mma import known
from lumi.backends.cuda.mma import price as tensor_price
from lumi.backends.cuda.scope import Blocking
from lumi.backends.cuda.staged_price import packed_rates, streamed
from lumi.backends.cuda.tf32 import is_tf32
from lumi.backends.cuda.wgmma import price as group_price
from lumi.llir.kernel import Kernel, Schedule, Statement, Step
from lumi.llir.kernel import dims as mentioned
from lumi.llir.program import carries
from lumi.search.model import Work, examine
from lumi.search.protocol import Cost

BESIDE = 0.01
"""Share by which kernels without a ring slow each other down that run in one launch."""

WHOLE = 1 << 30
"""A tile that holds any axis whole."""

FREE = ("ring", "packed", "lines", "direct", "walk", "mma", "wgmma")
"""Templates that choose all tiles by themselves."""

PRICED = ("spread", "tiles")
"""The numbers of packed rings that tell their templates apart, by the model."""

APART = replace(MACHINE, bandwidth=UNSHARED * MACHINE.bandwidth)
"""The GPU where every row of a result loads what all rows share."""

TURN = 2e-6
"""Seconds that a turn takes longer than a launch that begins while the one before it ends."""


@dataclass(slots=True)
class _Body:
    """What is known of kernels that share a tile program: whether it carries nothing around, their costs.

    `dims` are those that it mentions: what others are makes no difference.
    `work` is what there is to do where templates choose their tiles, `tiled` the last that was found for
    tiles, with these, `vectors` the seconds of what packed rows are multiplied with.
    """

    statements: tuple[Statement, ...]
    plain: bool
    dims: tuple[str, ...]
    costs: dict[object, Cost] = field(default_factory=dict)
    work: dict[object, Work] = field(default_factory=dict)
    tiled: dict[object, tuple[Mapping[str, int], Work]] = field(default_factory=dict)
    vectors: dict[object, float] = field(default_factory=dict)

    def at(self, dims: Mapping[str, int]) -> tuple[int | None, ...]:
        """The dims that matter, as far as they are known: only the shape of a buffer may mention others."""
        return tuple([dims.get(name) for name in self.dims])


@dataclass(slots=True)
class Costs:
    """Estimates, each made once: many kernels differ only in tiles that their template ignores."""

    bodies: dict[int, _Body] = field(default_factory=dict)

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """The estimate of one run of a kernel at these dims."""
        body = self._body(kernel)
        if schedule.template == "packed":
            schedule = Schedule("packed", tuple(o for o in schedule.options if o[0] in PRICED))
        free = body.plain or schedule.template in FREE
        tiles = () if free else tuple(sorted(kernel.tiles.items()))
        key = (schedule, body.at(dims), kernel.grid, kernel.resident, tiles)
        known = body.costs.get(key)
        if known is None:
            if free:
                kernel = replace(kernel, tiles=_whole(kernel))
            known = body.costs[key] = _cost(
                kernel, schedule, dims, self._work(kernel, schedule, dims, key[1:])
            )
        return known

    def _work(
        self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int], key: tuple[object, ...]
    ) -> Work:
        """What there is to do, which is one for all templates that choose their tiles, or the same."""
        body = self._body(kernel)
        if schedule.template in FREE:
            if key not in body.work:
                body.work[key] = examine(kernel, dims, holds=False)
            return body.work[key]
        tiles = {**kernel.tiles, **tiling.tiles(kernel, _blocking(schedule))}
        known = body.tiled.get(key[:-1])
        if known is None or known[0] != tiles:
            work = examine(replace(kernel, tiles=tiles), dims, holds=not body.plain)
            known = body.tiled[key[:-1]] = tiles, work
        return known[1]

    def together(self, kernels: Sequence[Kernel], schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """The estimate of one launch of kernels that do not depend on each other."""
        each = [self.cost(k, schedule, dims) for k in kernels]
        traffic = sum(c.traffic for c in each)
        if schedule.template == "ring":
            seconds = streamed(traffic) + max(c.seconds - streamed(c.traffic) for c in each)
        elif schedule.template == "packed":
            seconds = self._packed(kernels, schedule, each, dims)
        elif schedule.template in ("mma", "wgmma"):
            seconds = _products(kernels, schedule, [c.traffic for c in each], dims)
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

    def _packed(
        self, kernels: Sequence[Kernel], schedule: Schedule, each: Sequence[Cost], dims: Mapping[str, int]
    ) -> float:
        """Seconds of packed rows that share a ring: it starts once, and most blocks make one vector."""
        start, _ = packed_rates(dict(schedule.options))
        vectors = [self._vectors(k, dims) for k in kernels]
        rows = sum(c.seconds - start - v for c, v in zip(each, vectors, strict=True))
        return start + rows + max(vectors)

    def _vectors(self, kernel: Kernel, dims: Mapping[str, int]) -> float:
        """Seconds to make what the packed rows of a kernel are multiplied with."""
        body = self._body(kernel)
        known, key = body.vectors, (body.at(dims), kernel.grid)
        if key not in known:
            work = examine(replace(kernel, tiles=_whole(kernel)), dims, holds=False)
            known[key] = staged_price.vectors(work)
        return known[key]

    def _body(self, kernel: Kernel) -> _Body:
        known = self.bodies.get(id(kernel.body))
        if known is None or known.statements is not kernel.body:
            known = self.bodies[id(kernel.body)] = _Body(
                kernel.body, not carries(kernel.body), mentioned(kernel)
            )
        return known


def _products(
    kernels: Sequence[Kernel], schedule: Schedule, traffic: Sequence[float], dims: Mapping[str, int]
) -> float:
    """Seconds of products on tensor cores in one launch, each with the bytes that it moves at least."""
    found = [known.look(k, is_tf32(schedule)) for k in kernels]
    if schedule.template == "mma":
        warps = [one.warps(schedule) for one in found]
        return tensor_price.seconds(list(zip(warps, traffic, strict=True)), dims, MACHINE)
    grouped = [one.grouped(schedule) for one in found]
    return group_price.seconds(list(zip(grouped, traffic, strict=True)), dims, MACHINE)


def _blocking(schedule: Schedule) -> Blocking:
    """How blocks work that take cells of the grid."""
    options = dict(schedule.options)
    return Blocking(options.get("threads", 256), options.get("rows", 1), options.get("unroll", 2))


def _cost(kernel: Kernel, schedule: Schedule, dims: Mapping[str, int], work: Work) -> Cost:
    options, blocking = dict(schedule.options), _blocking(schedule)
    found = work.cost(MACHINE if blocking.rows > 1 else APART)
    least = found.traffic / MACHINE.bandwidth
    match schedule.template:
        case "ring":
            return replace(found, floor=least, seconds=staged_price.ring(work, found.traffic))
        case "packed":
            seconds = staged_price.packed(work, found.traffic, options)
            return replace(found, floor=least, seconds=seconds)
        case "walk":
            return replace(found, floor=least, seconds=staged_price.walked(work, found.traffic))
        case "lines":
            return replace(found, seconds=staged_price.line(work, found))
        case "direct":
            return replace(found, seconds=staged_price.in_registers(work, found, options))
        case "mma" | "wgmma":
            form = known.look(kernel, is_tf32(schedule)).form
            assert form is not None, "only what tensor cores compute has this schedule"
            seconds = _products((kernel,), schedule, (found.traffic,), dims)
            flops = tensor_price.flops(form, dims)
            floor = max(least, flops / tensor_price.peak(form))
            return replace(found, seconds=seconds, floor=floor, flops=flops)
        case _:
            return replace(found, seconds=cells_price.seconds(work, found, blocking))


def _whole(kernel: Kernel) -> dict[str, int]:
    """One point of the grid, and whole loops."""
    return {a: 1 if a in kernel.grid else WHOLE for a in kernel.axes}
