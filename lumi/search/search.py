"""From a region's e-graph to the fastest kernels: seeds, climbs, evolution, tiles, then measurement."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from lumi.egraph.goal import Goal
from lumi.egraph.graph import EGraph
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Statement
from lumi.search.climb import GAIN, Climb
from lumi.search.draft import InfeasibleError
from lumi.search.evolve import evolve
from lumi.search.explain import (
    Explanation,
    KernelStory,
    Progress,
    Report,
    rank_correlation,
    silent,
)
from lumi.search.launch import Assembly, Piece, alone
from lumi.search.measure import Contest
from lumi.search.planner import Planner
from lumi.search.protocol import Backend, Failure
from lumi.search.seed import CUT_APART, CUTS, Seed, seeds
from lumi.search.settings import Mode, Settings
from lumi.search.space import Space
from lumi.search.trial import Bench, Clock, Timings, Way, cost, favourites
from lumi.search.tune import tune
from lumi.search.turns import favoured

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

DEPTH = 50_000
"""Python frames that terms nested deeply may need."""


@dataclass(frozen=True, slots=True)
class Found:
    """The kernels of a region, how they were found, and the terms that they compute."""

    graph: KernelGraph
    explanation: Explanation
    goal: Goal


def search(
    region: Region,
    egraph: EGraph,
    settings: Settings,
    backend: Backend,
    *,
    report: Report = silent,
    timings: Timings | None = None,
    clock: Clock = time.perf_counter,
) -> Found:
    """The best kernels for a region that the settings allow to find.

    `timings` carries the times of kernels from region to region.  Ctrl-C ends the search with the best
    plan so far.  With rules that did not come with Lumi, the best plan is run even if times do not decide.
    Raises `LumiError` when the region has no plan, or when every plan that ran computes it wrongly.
    """
    run = _Search(region, egraph, settings, backend, report, timings or Timings(), clock)
    with _deep_recursion():
        return run.found()


@contextmanager
def _deep_recursion() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _leaders(climbs: list[tuple[Climb, Seed]]) -> list[tuple[Climb, Seed]]:
    """The best climb of each family of cuts that is not far behind the best of all."""
    best: dict[str, tuple[Climb, Seed]] = {}
    for climb, seed in climbs:
        if climb.best.seconds <= climbs[0][0].best.seconds * BEHIND:
            best.setdefault(seed.cut, (climb, seed))
    return list(best.values())


@dataclass(slots=True)
class _Search:
    region: Region
    egraph: EGraph
    settings: Settings
    backend: Backend
    report: Report
    timings: Timings
    clock: Clock
    planner: Planner = field(init=False)
    bench: Bench = field(init=False)
    templates: dict[int, tuple[tuple[Statement, ...], list[Schedule]]] = field(default_factory=dict)
    optima: list[tuple[Assembly, Seed]] = field(default_factory=list)
    curve: list[tuple[int, float]] = field(default_factory=list)
    interrupted: bool = False
    contest: Contest | None = None

    def __post_init__(self) -> None:
        settings = replace(self.settings, cells=self.backend.cells)
        together = self.together if self.backend.joins else None
        self.planner = Planner(Space(self.region, self.egraph), settings, self.price, together)
        self.bench = Bench(self.region, self.backend, self.settings, self.timings, self.clock)

    def price(self, kernel: Kernel) -> tuple[float, Schedule]:
        """Modelled seconds over all hints, by the best template."""
        best: tuple[float, Schedule] | None = None
        costs = [0.0] * len(templates := self._templates(kernel))
        for hint in self.settings.hints:
            for number, schedule in enumerate(templates):
                costs[number] += self.backend.cost(kernel, schedule, hint).seconds
        for seconds, schedule in zip(costs, templates, strict=True):
            if best is None or seconds < best[0]:
                best = seconds, schedule
        if best is None:
            raise ValueError(f"{self.backend.name} has no schedule for a kernel")
        return best

    def together(self, kernels: tuple[Kernel, ...]) -> tuple[float, Schedule] | None:
        """The same of kernels in one launch; None where no template can run them so."""
        backend, first = self.backend, dict[str, Schedule]()
        for schedule in backend.together(kernels):
            first.setdefault(schedule.template, schedule)
        priced = [
            (sum(backend.cost_together(kernels, s, h).seconds for h in self.settings.hints), s)
            for s in first.values()
        ]
        return min(priced, key=lambda p: p[0], default=None)

    def _templates(self, kernel: Kernel) -> list[Schedule]:
        """A schedule of each template, the same for all tiles of one tile program.

        It is the first one, but of templates that choose all tiles by themselves the best at the hints.
        """
        known = self.templates.get(id(kernel.body))
        if known is None or known[0] is not kernel.body:
            found: dict[str, tuple[float, Schedule]] = {}
            for schedule in self.backend.schedules(kernel):
                seconds = self._seconds(kernel, schedule) if schedule.template in self.backend.free else 0.0
                if schedule.template not in found or seconds < found[schedule.template][0]:
                    found[schedule.template] = seconds, schedule
            known = self.templates[id(kernel.body)] = kernel.body, [s for _, s in found.values()]
        return known[1]

    def _seconds(self, kernel: Kernel, schedule: Schedule) -> float:
        """Modelled seconds over all hints."""
        return sum(self.backend.cost(kernel, schedule, h).seconds for h in self.settings.hints)

    def found(self) -> Found:
        """Search by the model, then measure if asked to."""
        try:
            self._model()
        except KeyboardInterrupt:
            self.interrupted = True
            if not self.optima:
                raise
        if not self.optima:
            raise self._no_plan()
        contest = Contest(self.planner, self.bench, self._tell_measured)
        if self.settings.mode is Mode.MEASURE and not self.interrupted:
            self.contest = contest
            try:
                contest.hold([plan for plan, _ in self.optima])
            except KeyboardInterrupt:
                self.interrupted = True
            if contest.best is None and self.bench.failures and not self.interrupted:
                raise self._all_failed()
        elif self.egraph.foreign and isinstance(self._checked(self.optima[0][0]), Failure):
            raise self._all_failed()
        return self._result(contest)

    def _checked(self, plan: Assembly) -> float | Failure:
        """Run a plan that nothing has measured: rules that did not come with Lumi may be wrong."""
        return self.bench.run(favourites(plan))

    # -- by the model

    def _model(self) -> None:
        """Fill `optima`, best first."""
        starts = self._starts()
        if not starts:
            self.planner.room = self.settings.memory
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
        near = [o for o in self.optima[:FINALISTS] if o[0].seconds <= self.optima[0][0].seconds * CLOSE]
        self._keep([(self._tuned(plan), seed) for plan, seed in near])
        self._gain(self.optima[0][0], "tune")

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
            self._tell(phase, plan.seconds, len(plan.launches))

    # -- what is told

    def _tell_measured(self) -> None:
        best = self.contest.best if self.contest else None
        plan = best.plan if best else self.optima[0][0]
        self._tell("measure", best.seconds if best else plan.seconds, len(plan.launches))

    def _tell(self, phase: str, best: float, kernels: int) -> None:
        self.report(
            Progress(
                self.region.scope,
                phase,
                best,
                kernels,
                self.planner.evaluations,
                self.bench.trials,
                self.timings.hits,
                dict(self.planner.refusals + self.bench.refusals),
            )
        )

    def _no_plan(self) -> LumiError:
        reasons = "; ".join(f"{n} × {r}" for r, n in self.planner.refusals.most_common())
        return LumiError(
            "search error",
            f"region {self.region.scope or '(all)'} has no plan: {reasons or 'it has no seed'}",
            hint="raise the memory limit if a temporary does not fit; otherwise report this as a bug of Lumi",
        )

    def _all_failed(self) -> LumiError:
        lines = "\n".join(f"  {f}" for f in list(dict.fromkeys(self.bench.failures))[:8])
        foreign = ", ".join(self.egraph.foreign)
        return LumiError(
            "search error",
            f"no plan of region {self.region.scope or '(all)'} ran and was right:\n{lines}",
            hint=f"a rule that does not come with Lumi may be wrong: {foreign}"
            if foreign
            else "this is a bug of Lumi or of the compiler it calls: please report it with this message",
        )

    # -- the result

    def _result(self, contest: Contest) -> Found:
        best = contest.best
        plan, seed = self.optima[0]
        if best is None:
            used = favoured(self.backend, favourites(plan), self.settings.hints)
        else:
            plan, used = best.plan, list(best.ways)
            seed = next(s for p, s in self.optima if p.draft is plan.draft)
        stories = tuple(self._story(w, contest) for w in used)
        explanation = Explanation(
            region=self.region.scope,
            mode=self.settings.mode.value,
            seed=f"{seed.cut} {seed.weights}",
            kernels=stories,
            modelled=sum(s.modelled for s in stories),
            measured=best.seconds if best else None,
            evaluations=self.planner.evaluations,
            trials=self.bench.trials,
            refusals=dict(sorted((self.planner.refusals + self.bench.refusals).items())),
            failures=tuple(self.bench.failures),
            curve=tuple(contest.curve or self.curve),
            correlation=rank_correlation(contest.pairs),
            interrupted=self.interrupted,
            saturated=self.egraph.saturated,
            enodes=self.egraph.size,
        )
        return Found(self.bench.final(used), explanation, plan.draft.goal())

    def _story(self, used: Way, contest: Contest) -> KernelStory:
        backend, hints = self.backend, self.settings.hints
        costs = [cost(backend, used.step, h) for h in hints]
        floors = (
            min(sum(backend.cost(k, s, h).floor for h in hints) for s in self._templates(k))
            for k in used.step.kernels
        )
        return KernelStory(
            modelled=sum(c.seconds for c in costs),
            measured=self.bench.known(used),
            floor=sum(floors),
            traffic=sum(c.traffic for c in costs),
            flops=sum(c.flops for c in costs),
            rivals=contest.rivals_of(used),
        )
