"""Trials: graphs that were run and timed, the budget they share, and the times of single kernels.

Times of kernels are kept by what the kernel is, whatever its buffers and axes are called, so that equal
kernels of other plans and other regions need no further trial.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lumi.field.region import Region
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Step, dims
from lumi.llir.rename import identity
from lumi.search.effort import Effort
from lumi.search.finish import finish
from lumi.search.launch import Assembly
from lumi.search.protocol import Backend, Cost, Failure, Reason, Timing
from lumi.search.settings import Settings

Clock = Callable[[], float]
"""Seconds from some start."""


class Way(NamedTuple):
    """A step: one way to compute some values.

    `key` names it, `dims` are the dims that its time depends on.
    """

    step: Step
    key: str
    dims: tuple[str, ...]

    @property
    def schedule(self) -> Schedule:
        """The step's."""
        return self.step.schedule

    def at(self, hint: Mapping[str, int]) -> tuple[str, str]:
        """The name of its time at a hint."""
        return self.key, _name({n: hint[n] for n in self.dims})


def ways(kernels: tuple[Kernel, ...], schedules: Iterable[Schedule]) -> list[Way]:
    """A launch of kernels under each of some schedules."""
    first, *others = kernels
    name = identity(*kernels)
    mentioned = tuple(sorted({n for k in kernels for n in dims(k)}))
    return [
        Way(
            Step(first, s, tuple(others)), f"{name} {s.template} {_name(dict(s.options))}".rstrip(), mentioned
        )
        for s in schedules
    ]


def cost(backend: Backend, step: Step, hint: Mapping[str, int]) -> Cost:
    """The analytic estimate of a step."""
    if step.then:
        return backend.cost_in_turn(step.turns, hint)
    if step.beside:
        return backend.cost_together(step.kernels, step.schedule, hint)
    return backend.cost(step.kernel, step.schedule, hint)


def favourites(plan: Assembly) -> list[Way]:
    """The ways that the model prefers for a plan's launches."""
    return [w for x in plan.launches for w in ways(x.kernels, [x.schedule])]


class BudgetError(Exception):
    """The budget for trials is used up."""


@dataclass(slots=True)
class Timings:
    """What is known of kernels: seconds by `Way.at`, one for each trial, and the keys that failed.

    `ran` holds, also by `Way.at`, the schedules with what they leave to the device.  One object serves all
    regions of a model.
    """

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    ran: dict[tuple[str, str], Schedule] = field(default_factory=dict)
    failed: dict[str, Failure] = field(default_factory=dict)
    hits: int = 0


@dataclass(slots=True)
class Bench:
    """Runs graphs of one region within a budget.

    `failures` holds a line for each that failed, `efforts` what each trial took.
    """

    region: Region
    backend: Backend
    settings: Settings
    timings: Timings
    clock: Clock
    trials: int = 0
    spent: float = 0.0
    failures: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    efforts: list[Effort] = field(default_factory=list)

    def graph(self, used: Sequence[Way]) -> KernelGraph:
        """The kernel graph of ways in order."""
        outputs = frozenset(s.access.buffer for s in self.region.stores)
        return finish([w.step for w in used], outputs)

    def final(self, used: Sequence[Way]) -> KernelGraph:
        """The same, with what schedules leave to the device as it was at the first hint, if it was run."""
        hint, ran = self.settings.hints[0], self.timings.ran
        steps = [replace(w.step, schedule=ran.get(w.at(hint), w.schedule)) for w in used]
        return self.graph([w._replace(step=step) for w, step in zip(used, steps, strict=True)])

    def prepare(self, used: Iterable[Way]) -> None:
        """Let what is likely to run soon be compiled meanwhile."""
        self.backend.prepare([w.step for w in used if not self.is_refused(w)])

    def run(self, used: Sequence[Way]) -> float | Failure:
        """Seconds of the whole graph, summed over the hints.

        It counts only if its results are right at every hint.  Raises `BudgetError` when no trial is left.
        """
        graph, total = self.graph(used), 0.0
        for hint in self.settings.hints:
            result = self._trial(graph, hint)
            if isinstance(result, Failure):
                self._refuse(used, result)
                return result
            total += result.seconds
            for one, seconds in zip(used, result.steps, strict=True):
                self.timings.seconds.setdefault(one.at(hint), []).append(seconds)
            for one, schedule in zip(used, result.schedules, strict=False):
                self.timings.ran[one.at(hint)] = schedule
        return total

    def _trial(self, graph: KernelGraph, hint: Mapping[str, int]) -> Timing | Failure:
        if self.trials >= self.settings.trials or self.spent >= self.settings.seconds:
            raise BudgetError
        self.trials += 1
        start = self.clock()
        result = self.backend.measure(self.region, graph, hint)
        self.spent += self.clock() - start
        self.efforts.append(result.effort)
        if isinstance(result, Timing) and len(result.steps) != len(graph.steps):
            raise ValueError(f"{self.backend.name} timed {len(result.steps)} of {len(graph.steps)} kernels")
        return result

    def _refuse(self, used: Sequence[Way], failure: Failure) -> None:
        self.refusals[failure.reason.value] += 1
        if failure.step is not None and failure.step < len(used):
            culprit = used[failure.step]
            self.timings.failed[culprit.key] = failure
            where = f" in kernel {failure.step} ({culprit.schedule.template})"
        else:
            where = f" of {', '.join(sorted({w.schedule.template for w in used}))}"
        self.failures.append(f"{failure.reason.value}{where}: {failure.detail}")

    def known(self, one: Way) -> float | None:
        """Seconds of a kernel over all hints, the median of its trials at each, when each has been timed."""
        found = [self.timings.seconds.get(one.at(h)) for h in self.settings.hints]
        times = [statistics.median(f) for f in found if f]
        if len(times) < len(found):
            return None
        self.timings.hits += 1
        return sum(times)

    def is_refused(self, one: Way) -> bool:
        """Whether a kernel has failed before."""
        return one.key in self.timings.failed

    def blame(self, one: Way) -> None:
        """Note the kernel that a failing graph was narrowed down to."""
        self.timings.failed[one.key] = Failure(Reason.WRONG, "the only change of a graph that failed")


def _name(hint: Mapping[str, int]) -> str:
    return " ".join(f"{n}={v}" for n, v in sorted(hint.items()))
