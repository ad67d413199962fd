"""The measured search: the model proposes, the device decides.

A plan is run as a whole with one alternative way for each of its kernels at a time, so that a single
trial times many kernels; the best ways together become the next incumbent only if the whole is faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from lumi.llir.kernel import Kernel, Schedule, Step
from lumi.search.explain import Rival
from lumi.search.launch import Assembly, Launch, Piece, alone
from lumi.search.planner import Planner
from lumi.search.protocol import Failure
from lumi.search.trial import Bench, BudgetError, Way, cost, ways
from lumi.search.tune import variants
from lumi.search.turns import in_turn, runs

NOISE = 0.02
"""Least relative gain of a measured change; smaller ones are noise, and ties keep the incumbent."""

RIVALS = 10
"""Ways of one kernel that are tried at most."""

NEAR = 1.25
"""How much slower than the incumbent a plan may be, before its kernels are tuned, to be tuned at all."""


def modelled(planner: Planner, way: Way) -> float:
    """Seconds of a launch by the model, under the schedules that it prefers: of all its turns together."""
    return sum(_modelled(planner, turn) for turn in way.step.turns)


def _modelled(planner: Planner, step: Step) -> float:
    kernels = step.kernels
    if not step.beside:
        return planner.price(*kernels)[0]
    found = planner.price_together(kernels) if planner.price_together is not None else None
    return math.inf if found is None else found[0]


@dataclass(slots=True)
class Contender:
    """A plan that ran: its ways in order and its seconds, measured and modelled."""

    plan: Assembly
    ways: tuple[Way, ...]
    seconds: float
    modelled: float


@dataclass(slots=True)
class Contest:
    """Plans of one region measured against each other; `best` is None until one has run.

    `tried` holds the ways that competed with a way, by its key.
    """

    planner: Planner
    bench: Bench
    told: Callable[[], None]
    best: Contender | None = None
    tried: dict[str, dict[str, Way]] = field(default_factory=dict)
    pairs: list[tuple[float, float]] = field(default_factory=list)
    curve: list[tuple[int, float]] = field(default_factory=list)

    def hold(self, plans: Sequence[Assembly]) -> None:
        """Measure the plans in the order given, tune the promising, confirm the winner.

        Ends early when the budget is spent.
        """
        self.bench.prepare(w for p in plans for w in map(self._favourite, p.launches))
        try:
            finalists = [c for p in plans if (c := self._enter(p)) is not None]
            self._take_turns()
            self._confirm(finalists)
        except BudgetError:
            pass

    def _enter(self, plan: Assembly) -> Contender | None:
        contender = self._run(plan, tuple(map(self._favourite, plan.launches)))
        if contender is None:
            contender = self._run(plan, tuple(map(self._safe, plan.launches)))
        if contender is None:
            return None
        if self.best is not None and contender.seconds <= self.best.seconds * NEAR:
            contender = self._apart(self._tune(contender))
        return contender

    def _apart(self, contender: Contender) -> Contender:
        """The plan with every launch taken apart whose kernels are faster one by one."""
        for launch in contender.plan.launches:
            if len(launch.pieces) == 1:
                continue
            plan, place = contender.plan, contender.plan.launches.index(launch)
            parts = tuple(map(alone, launch.pieces))
            launches = (*plan.launches[:place], *parts, *plan.launches[place + 1 :])
            made = Assembly(plan.draft, launches, sum(x.seconds for x in launches))
            used = (*contender.ways[:place], *map(self._favourite, parts), *contender.ways[place + 1 :])
            tried = self._run(made, used)
            if tried is not None and tried.seconds < contender.seconds * (1 - NOISE):
                contender = tried
        return contender

    def _take_turns(self) -> None:
        """Let launches of the best plan that follow each other become one where that is faster."""
        best = self.best
        for start, stop in reversed(runs(self.bench.backend, best.ways)) if best is not None else ():
            assert best is not None, "only a plan that ran has launches"
            best = self._in_turn(best, start, stop)

    def _in_turn(self, contender: Contender, start: int, stop: int) -> Contender:
        """The plan with some of its launches as one, or each half of them, as long as it is faster."""
        joined = in_turn(self.bench.backend, contender.ways[start:stop])
        if joined is None:
            return contender
        used = (*contender.ways[:start], joined, *contender.ways[stop:])
        tried = None if self.bench.is_refused(joined) else self._run(contender.plan, used)
        if tried is not None and tried.seconds < contender.seconds * (1 - NOISE):
            return tried
        middle = (start + stop) // 2
        contender = self._in_turn(contender, middle, stop)
        return self._in_turn(contender, start, middle)

    def _run(self, plan: Assembly, used: tuple[Way, ...]) -> Contender | None:
        """Run a plan; None when it fails.  The fastest so far becomes the best."""
        seconds = self.bench.run(used)
        if isinstance(seconds, Failure):
            self.told()
            return None
        expected = sum(modelled(self.planner, w) for w in used)
        made = Contender(plan, used, seconds, expected)
        self.pairs.append((expected, seconds))
        if self.best is None or seconds < self.best.seconds * (1 - NOISE):
            self.best = made
            self.curve.append((self.bench.trials, seconds))
        self.told()
        return made

    def _favourite(self, launch: Launch) -> Way:
        """The way of a launch known to be fastest, or the one the model prefers."""
        rivals = self._rivals(launch)
        timed = [(s, w) for w in rivals if (s := self.bench.known(w)) is not None]
        return min(timed, key=lambda t: t[0])[1] if timed else rivals[0]

    def _safe(self, launch: Launch) -> Way:
        """The way that works for any kernels."""
        return ways(launch.kernels, self._schedules(launch)[:1])[0]

    def _schedules(self, launch: Launch) -> Sequence[Schedule]:
        backend = self.bench.backend
        return (
            backend.schedules(*launch.kernels)
            if len(launch.pieces) == 1
            else backend.together(launch.kernels)
        )

    def _rivals(self, launch: Launch) -> list[Way]:
        """Ways that have not failed, the model's favourite first; the safe one if all have."""
        rivals: list[Way] = []
        for way in self._ranked(*launch.pieces) if len(launch.pieces) == 1 else self._ranked_together(launch):
            if len(rivals) == RIVALS:
                break
            if not self.bench.is_refused(way):
                rivals.append(way)
        return rivals or [self._safe(launch)]

    def _ranked_together(self, launch: Launch) -> list[Way]:
        """The ways of several kernels, their tiles as they are."""
        backend, hints = self.bench.backend, self.bench.settings.hints

        def seconds(way: Way) -> float:
            return sum(cost(backend, way.step, h).seconds for h in hints)

        return sorted(ways(launch.kernels, self._schedules(launch)), key=seconds)

    def _ranked(self, piece: Piece) -> Iterator[Way]:
        """The ways of a kernel: every schedule with its best tiles before any with its second best."""
        backend, hints = self.bench.backend, self.bench.settings.hints
        by_schedule: dict[Schedule, list[tuple[float, Kernel]]] = {}
        for variant in variants(self.planner, piece):
            for schedule in backend.schedules(variant.kernel):
                seconds = sum(backend.cost(variant.kernel, schedule, h).seconds for h in hints)
                by_schedule.setdefault(schedule, []).append((seconds, variant.kernel))
        ranked = [
            (place, seconds, kernel, schedule)
            for schedule, kernels in by_schedule.items()
            for place, (seconds, kernel) in enumerate(sorted(kernels, key=lambda k: k[0]))
        ]
        ranked.sort(key=lambda r: r[:2])
        for _, _, kernel, schedule in ranked:
            yield from ways((kernel,), [schedule])

    def _tune(self, contender: Contender) -> Contender:
        """The plan with the fastest way of each kernel."""
        rivals = [self._rivals(x) for x in contender.plan.launches]
        self.bench.prepare(w for row in zip_longest(*rivals) for w in row if w is not None)
        for place in range(RIVALS):
            trial = tuple(
                options[place] if place < len(options) and self.bench.known(options[place]) is None else kept
                for options, kept in zip(rivals, contender.ways, strict=True)
            )
            if trial == contender.ways:
                continue
            self._try(contender, trial)
        for options, kept in zip(rivals, contender.ways, strict=True):
            group = {w.key: w for w in (kept, *options)}
            self.tried.update(dict.fromkeys(group, group))
        fastest = tuple(
            self._fastest(options, kept) for options, kept in zip(rivals, contender.ways, strict=True)
        )
        if fastest == contender.ways:
            return contender
        tuned = self._run(contender.plan, fastest)
        if tuned is None or tuned.seconds >= contender.seconds * (1 - NOISE):
            return contender
        return tuned

    def rivals_of(self, used: Way) -> tuple[Rival, ...]:
        """The other ways that a kernel was compared with, and their seconds."""
        others = [w for key, w in self.tried.get(used.key, {}).items() if key != used.key]
        return tuple(
            Rival(w.schedule, {} if len(w.step.kernels) > 1 else w.step.kernel.tiles, self.bench.known(w))
            for w in others
        )

    def _fastest(self, options: Sequence[Way], kept: Way) -> Way:
        known = self.bench.known(kept)
        best, seconds = kept, float("inf") if known is None else known * (1 - NOISE)
        for rival in options:
            found = self.bench.known(rival)
            if found is not None and found < seconds and not self.bench.is_refused(rival):
                best, seconds = rival, found
        return best

    def _try(self, contender: Contender, trial: tuple[Way, ...]) -> None:
        """Time the changed ways; when the graph fails and nothing is blamed, halve the changes."""
        if self._run(contender.plan, trial) is not None:
            return
        changed = [k for k, (a, b) in enumerate(zip(trial, contender.ways, strict=True)) if a != b]
        left = [k for k in changed if not self.bench.is_refused(trial[k])]
        if len(changed) == 1:
            self.bench.blame(trial[changed[0]])
        elif len(left) < len(changed):
            self._retry(contender, trial, left)
        else:
            middle = len(changed) // 2
            self._retry(contender, trial, changed[:middle])
            self._retry(contender, trial, changed[middle:])

    def _retry(self, contender: Contender, trial: tuple[Way, ...], kept: Sequence[int]) -> None:
        if kept:
            ways = tuple(
                t if k in kept else c for k, (t, c) in enumerate(zip(trial, contender.ways, strict=True))
            )
            self._try(contender, ways)

    def _confirm(self, finalists: Sequence[Contender]) -> None:
        """Run the winner once more; when it fails now, the next in the ranking takes its place."""
        while self.best is not None and isinstance(self.bench.run(self.best.ways), Failure):
            refused, self.best = self.best, None
            rest = [c for c in finalists if c.ways != refused.ways]
            self.best = min(rest, key=lambda c: c.seconds, default=None)
            finalists = rest
