"""The search by the model: seeds, climbs, evolution, tiles; it ends with a few plans, the best first."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lumi.egraph.graph import EGraph
from lumi.field.region import Region
from lumi.llir.kernel import Kernel, Schedule, Statement
from lumi.search.climb import GAIN, Climb
from lumi.search.draft import InfeasibleError
from lumi.search.evolve import evolve
from lumi.search.launch import Assembly, Piece, alone
from lumi.search.planner import Planner
from lumi.search.protocol import Backend
from lumi.search.seed import CUT_APART, CUTS, Seed, seeds
from lumi.search.settings import Mode, Settings
from lumi.search.space import Space
from lumi.search.tune import tune

CLIMBED = 0.75
"""Share of the evaluations that climbs from seeds may use; the best of them may go on with the rest before
evolution has what is left."""

FAR = 2.5
"""How much slower than the best seed a seed may be to be climbed from."""

BEHIND = 1.5
"""How much slower than the leader a climb may be, half way, to go on."""

CLOSE = 1.2
"""How much slower than the best a local optimum may be to be tuned."""

FINALISTS = 4
"""Local optima whose tiles are tuned, and which are measured."""

Told = Callable[[str, Assembly], None]
"""Told of every gain: in which phase, and the plan."""


def _leaders(climbs: list[tuple[Climb, Seed]]) -> list[tuple[Climb, Seed]]:
    """The best climb of each family of cuts that is not far behind the best of all."""
    best: dict[str, tuple[Climb, Seed]] = {}
    for climb, seed in climbs:
        if climb.best.seconds <= climbs[0][0].best.seconds * BEHIND:
            best.setdefault(seed.cut, (climb, seed))
    return list(best.values())


@dataclass(slots=True)
class Modelling:
    """The search of one region by the model.

    `optima` are the plans that it ends with, and the seeds that they come from; `curve` holds (evaluations so
    far, best seconds) at every gain.
    """

    region: Region
    egraph: EGraph
    settings: Settings
    backend: Backend
    told: Told
    planner: Planner = field(init=False)
    optima: list[tuple[Assembly, Seed]] = field(default_factory=list)
    curve: list[tuple[int, float]] = field(default_factory=list)
    looked: dict[int, tuple[tuple[Statement, ...], list[Schedule]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        settings = replace(self.settings, cells=self.backend.cells)
        together = self.together if self.backend.joins else None
        fits = self.fits if self.backend.cells > 1 else None
        self.planner = Planner(Space(self.region, self.egraph), settings, self.price, together, fits)

    def run(self) -> None:
        """Fill `optima`, best first."""
        starts, room = self._starts(), self.planner.room
        if not starts:
            room.waive()
            starts = self._starts()
        if not starts and self.settings.mode is not Mode.NONE:
            room.lends = True
            starts = self._starts()
        if not starts or self.settings.mode is Mode.NONE:
            self.optima = starts[:1]
            return
        self.optima = list(starts)
        near = [s for s in starts if s[0].seconds <= starts[0][0].seconds * FAR]
        climbs = [(Climb(self.planner, plan), seed) for plan, seed in near]
        budget = int(self.settings.evaluations * CLIMBED)
        for climb, _ in climbs:
            self._climb(climb, budget // (2 * len(climbs)))
        climbs.sort(key=lambda c: c[0].best.seconds)
        limit = self.planner.evaluations + budget // 2
        for climb, _ in _leaders(climbs):
            self._climb(climb, limit - self.planner.evaluations)
        first = min((c for c, _ in climbs), key=lambda c: c.best.seconds)
        self._climb(first, self.settings.evaluations - self.planner.evaluations)
        self._keep([(c.best, seed) for c, seed in climbs])
        rng = random.Random(self.settings.seed)
        rest = min(self.settings.evaluations - budget, self.settings.evaluations - self.planner.evaluations)
        best = evolve(self.planner, [plan for plan, _ in self.optima], rng, rest)
        self._keep([(best, self.optima[0][1]), *self.optima])
        if room.lends and not self._paid_back():
            return
        near = [o for o in self.optima[:FINALISTS] if o[0].seconds <= self.optima[0][0].seconds * CLOSE]
        self._keep([(self._tuned(plan), seed) for plan, seed in near])
        self._gain(self.optima[0][0], "tune")

    def _paid_back(self) -> bool:
        """Leave only optima that fit the room that no longer lends; whether there are any."""
        self.planner.room.lends, plans = False, self.optima
        self.optima, self.curve = [], []
        for plan, seed in plans:
            try:
                self.optima.append((self.planner.assemble(plan.draft), seed))
            except InfeasibleError:
                continue
        if self.optima:
            self._gain(self.optima[0][0], "climb")
        return bool(self.optima)

    def _starts(self) -> list[tuple[Assembly, Seed]]:
        """The plans of all seeds, best first; of those that the model cannot tell apart, the first.

        Where they are the end of the search, none is cut into everything, but for want of another.
        """
        planner = self.planner
        names = [n for n in CUTS if n != "chunks" or self.settings.splits]
        starts: list[tuple[Assembly, Seed]] = []
        for seed in seeds(planner, names):
            if starts and self.settings.mode is Mode.NONE and seed.cut == CUT_APART:
                continue
            try:
                starts.append((planner.assemble(planner.draft(seed.genome)), seed))
            except InfeasibleError:
                continue
        distinct = {(plan.seconds, len(plan.pieces)): (plan, seed) for plan, seed in reversed(starts)}
        return sorted(distinct.values(), key=lambda s: s[0].seconds)

    def _climb(self, climb: Climb, evaluations: int) -> None:
        if evaluations > 0:
            climb.run(evaluations)
            self._gain(climb.best, "climb")

    def _keep(self, plans: list[tuple[Assembly, Seed]]) -> None:
        """Make the distinct plans the optima, best first."""
        distinct: dict[object, tuple[Assembly, Seed]] = {}
        for plan, seed in sorted(plans, key=lambda o: o[0].seconds):
            distinct.setdefault(tuple(x.outs for x in plan.launches), (plan, seed))
        self.optima = list(distinct.values())

    def _tuned(self, plan: Assembly) -> Assembly:
        launches = tuple(
            alone(self._scheduled(tune(self.planner, *x.pieces))) if len(x.pieces) == 1 else x
            for x in plan.launches
        )
        return Assembly(plan.draft, launches, sum(x.seconds for x in launches))

    def _scheduled(self, piece: Piece) -> Piece:
        """The kernel under the best of all schedules; until now only one of each template was looked at."""
        best, kernel = piece, piece.kernel
        for schedule in self.backend.schedules(kernel):
            seconds = self._seconds(kernel, schedule)
            if seconds < best.seconds * (1 - GAIN):
                best = replace(best, schedule=schedule, seconds=seconds)
        return best

    def _gain(self, plan: Assembly, phase: str) -> None:
        if not self.curve or plan.seconds < self.curve[-1][1]:
            self.curve.append((self.planner.evaluations, plan.seconds))
            self.told(phase, plan)

    # -- prices

    def price(self, kernel: Kernel) -> tuple[float, Schedule]:
        """Modelled seconds over all hints, by the best template."""
        best: tuple[float, Schedule] | None = None
        costs = [0.0] * len(templates := self.templates(kernel))
        for hint in self.settings.hints:
            for number, schedule in enumerate(templates):
                costs[number] += self.backend.cost(kernel, schedule, hint).seconds
        for seconds, schedule in zip(costs, templates, strict=True):
            if best is None or seconds < best[0]:
                best = seconds, schedule
        if best is None:
            raise ValueError(f"{self.backend.name} has no schedule for a kernel")
        return best

    def fits(self, kernel: Kernel, schedule: Schedule) -> bool:
        """Whether a cell can hold the tiles of a kernel at every hint."""
        return all(self.backend.cost(kernel, schedule, h).fits for h in self.settings.hints)

    def together(self, kernels: tuple[Kernel, ...]) -> tuple[float, Schedule] | None:
        """The same of kernels in one launch; None where no template can run them so."""
        backend, seen, tried = self.backend, set[str](), list[Schedule]()
        for schedule in backend.together(kernels):
            if schedule.template not in seen or schedule.template in backend.free:
                tried.append(schedule)
            seen.add(schedule.template)
        priced = [
            (sum(backend.cost_together(kernels, s, h).seconds for h in self.settings.hints), s) for s in tried
        ]
        return min(priced, key=lambda p: p[0], default=None)

    def templates(self, kernel: Kernel) -> list[Schedule]:
        """A schedule of each template, the same for all tiles of one tile program.

        It is the first one, but of templates that choose all tiles by themselves the best at the hints.
        """
        known = self.looked.get(id(kernel.body))
        if known is None or known[0] is not kernel.body:
            found: dict[str, tuple[float, Schedule]] = {}
            for schedule in self.backend.schedules(kernel):
                seconds = self._seconds(kernel, schedule) if schedule.template in self.backend.free else 0.0
                if schedule.template not in found or seconds < found[schedule.template][0]:
                    found[schedule.template] = seconds, schedule
            known = self.looked[id(kernel.body)] = kernel.body, [s for _, s in found.values()]
        return known[1]

    def _seconds(self, kernel: Kernel, schedule: Schedule) -> float:
        """Modelled seconds over all hints."""
        return sum(self.backend.cost(kernel, schedule, h).seconds for h in self.settings.hints)
