"""From a region's e-graph to the fastest kernels: the model proposes plans, then measured times decide."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lumi.egraph.goal import Goal
from lumi.egraph.graph import EGraph
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.kernel import KernelGraph
from lumi.search.effort import total
from lumi.search.explain import (
    Explanation,
    KernelStory,
    Progress,
    Report,
    rank_correlation,
    silent,
)
from lumi.search.former import stored_by
from lumi.search.launch import Assembly
from lumi.search.measure import Contest
from lumi.search.modelling import Modelling
from lumi.search.protocol import Backend, Failure, Reason
from lumi.search.settings import Mode, Settings
from lumi.search.trial import Bench, Clock, Timings, Way, cost, favourites
from lumi.search.turns import favoured

UNBLAMED = {Reason.MEMORY.value, Reason.UNCHECKED.value}
"""What may keep every plan from running, without any being wrong: then the model decides."""

DEPTH = 50_000
"""Python frames that terms nested deeply may need."""


@dataclass(frozen=True, slots=True)
class Found:
    """The kernels of a region, how they were found, and the terms that they compute.

    `stored[k]` are the classes of those terms that the k-th step of the graph stores.
    """

    graph: KernelGraph
    explanation: Explanation
    goal: Goal
    stored: tuple[tuple[int, ...], ...]


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


@dataclass(slots=True)
class _Search:
    region: Region
    egraph: EGraph
    settings: Settings
    backend: Backend
    report: Report
    timings: Timings
    clock: Clock
    modelling: Modelling = field(init=False)
    bench: Bench = field(init=False)
    contest: Contest = field(init=False)
    interrupted: bool = False

    def __post_init__(self) -> None:
        self.modelling = Modelling(self.region, self.egraph, self.settings, self.backend, self._tell_modelled)
        self.bench = Bench(self.region, self.backend, self.settings, self.timings, self.clock)
        self.contest = Contest(self.modelling.planner, self.bench, self._tell_measured)

    def found(self) -> Found:
        """Search by the model, then measure if asked to."""
        modelling = self.modelling
        try:
            modelling.run()
        except KeyboardInterrupt:
            self.interrupted = True
            if not modelling.optima:
                raise
        if not modelling.optima:
            raise self._no_plan()
        if self.settings.mode is Mode.MEASURE and not self.interrupted:
            self._measure()
        elif self.egraph.foreign and isinstance(self._checked(modelling.optima[0][0]), Failure):
            raise self._all_failed()
        return self._result()

    def _measure(self) -> None:
        """Let the plans compete.  Raises `LumiError` when none is right of those that could run."""
        try:
            self.contest.hold([plan for plan, _ in self.modelling.optima])
        except KeyboardInterrupt:
            self.interrupted = True
        is_blamed = bool(set(self.bench.refusals) - UNBLAMED)
        if self.contest.best is None and is_blamed and not self.interrupted:
            raise self._all_failed()

    def _checked(self, plan: Assembly) -> float | Failure:
        """Run a plan that nothing has measured: rules that did not come with Lumi may be wrong."""
        return self.bench.run(favourites(plan))

    # -- what is told

    def _tell_modelled(self, phase: str, plan: Assembly) -> None:
        self._tell(phase, plan.seconds, len(plan.launches))

    def _tell_measured(self) -> None:
        best = self.contest.best
        plan = best.plan if best else self.modelling.optima[0][0]
        self._tell("measure", best.seconds if best else plan.seconds, len(plan.launches))

    def _tell(self, phase: str, best: float, kernels: int) -> None:
        self.report(
            Progress(
                self.region.scope,
                phase,
                best,
                kernels,
                self.modelling.planner.evaluations,
                self.bench.trials,
                self.timings.hits,
                dict(self.modelling.planner.refusals + self.bench.refusals),
                self.bench.spent,
            )
        )

    def _no_plan(self) -> LumiError:
        reasons = "; ".join(f"{n} × {r}" for r, n in self.modelling.planner.refusals.most_common())
        return LumiError(
            "search error",
            f"region {self.region.scope or '(all)'} has no plan: {reasons or 'it has no seed'}",
            hint="if temporaries do not fit, give more by --memory or lower a dim's :max; else report this",
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

    def _result(self) -> Found:
        best, planner, bench = self.contest.best, self.modelling.planner, self.bench
        plan, seed = self.modelling.optima[0]
        if best is None:
            used = favoured(self.backend, favourites(plan), self.settings.hints)
        else:
            plan, used = best.plan, list(best.ways)
            seed = next(s for p, s in self.modelling.optima if p.draft is plan.draft)
        stories = tuple(self._story(w) for w in used)
        explanation = Explanation(
            region=self.region.scope,
            mode=self.settings.mode.value,
            seed=f"{seed.cut} {seed.weights}",
            kernels=stories,
            modelled=sum(s.modelled for s in stories),
            measured=best.seconds if best else None,
            evaluations=planner.evaluations,
            trials=bench.trials,
            effort=total(bench.efforts),
            refusals=dict(sorted((planner.refusals + bench.refusals).items())),
            failures=tuple(bench.failures),
            curve=tuple(self.contest.curve or self.modelling.curve),
            correlation=rank_correlation(self.contest.pairs),
            interrupted=self.interrupted,
            saturated=self.egraph.saturated,
            enodes=self.egraph.size,
        )
        stored = tuple(stored_by(w.step, self.region, self.egraph.roots) for w in used)
        return Found(bench.final(used), explanation, plan.draft.goal(), stored)

    def _story(self, used: Way) -> KernelStory:
        backend, hints = self.backend, self.settings.hints
        costs = [cost(backend, used.step, h) for h in hints]
        floors = (
            min(sum(backend.cost(k, s, h).floor for h in hints) for s in self.modelling.templates(k))
            for k in used.step.kernels
        )
        return KernelStory(
            modelled=sum(c.seconds for c in costs),
            measured=self.bench.known(used),
            floor=sum(floors),
            traffic=sum(c.traffic for c in costs),
            flops=sum(c.flops for c in costs),
            rivals=self.contest.rivals_of(used),
        )
