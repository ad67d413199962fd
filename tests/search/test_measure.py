"""The measured search against backends that lie, break, hang and are interrupted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Step
from lumi.llir.rename import identity
from lumi.llir.text import show_graph
from lumi.search.effort import Effort
from lumi.search.protocol import Cost, Failure, Reason, Timing
from lumi.search.search import Found, search
from lumi.search.settings import Mode
from lumi.search.trial import Timings
from tests.search.plans import Modelled, assert_equal, graph_of, reference, run, settings_of
from tests.workloads import WORKLOADS, Workload

SAFE, QUICK, QUICKER = Schedule("safe"), Schedule("quick"), Schedule("quick", (("lanes", 8),))

WORK = WORKLOADS["matmul_amax_rounded"]


@dataclass
class Faked(Modelled):
    """Three schedules: `quick` takes half the time of `safe`, with `lanes` a third; all are right.

    `broken` says which failure a kernel under a schedule ends in, if any.
    """

    broken: Callable[[Kernel, Schedule], Failure | None] = lambda kernel, schedule: None
    trials: list[KernelGraph] = field(default_factory=list)
    blames: bool = True

    def schedules(self, kernel: Kernel) -> Sequence[Schedule]:
        return (SAFE, QUICK, QUICKER)

    def seconds(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> float:
        factor = {SAFE: 1.0, QUICK: 0.5, QUICKER: 0.33}[schedule]
        return Modelled.cost(self, kernel, SAFE, dims).seconds * factor

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        self.trials.append(graph)
        for place, step in enumerate(graph.steps):
            failure = self.broken(step.kernel, step.schedule)
            if failure is not None:
                return replace(failure, step=place if self.blames else None)
        steps = tuple(self.seconds(s.kernel, s.schedule, dims) for s in graph.steps)
        return Timing(sum(steps), steps)


CHOSEN = Schedule("quick", (("algorithm", 7), ("lanes", 8)))


class Choosing(Faked):
    """Leaves the algorithm of its fastest schedule to the device, which takes number 7."""

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        result = Faked.measure(self, region, graph, dims)
        if isinstance(result, Failure):
            return result
        ran = tuple(CHOSEN if s.schedule == QUICKER else s.schedule for s in graph.steps)
        return replace(result, schedules=ran)


def measured(backend: Modelled, work: Workload = WORK, **options: object) -> Found:
    region, egraph = graph_of(work)
    settings = settings_of(work, **{"mode": Mode.MEASURE, "evaluations": 200, **options})
    return search(region, egraph, settings, backend, timings=Timings())


def schedules(found: Found) -> set[Schedule]:
    return {s.schedule for s in found.graph.steps}


def failing(reason: Reason, *which: Schedule) -> Callable[[Kernel, Schedule], Failure | None]:
    return lambda kernel, schedule: Failure(reason, "made to fail") if schedule in which else None


def test_fastest_schedule_of_every_kernel_wins() -> None:
    backend = Faked()
    made = measured(backend)
    assert schedules(made) == {QUICKER}
    assert made.explanation.measured == pytest.approx(
        sum(backend.seconds(s.kernel, s.schedule, WORK.sizes(WORK.large)) for s in made.graph.steps)
    )
    assert made.explanation.trials == len(backend.trials)


def test_plan_holds_what_the_device_chose() -> None:
    assert schedules(measured(Choosing())) == {CHOSEN}


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("blames", [True, False])
def test_candidate_that_fails_never_wins_and_is_reported(reason: Reason, blames: bool) -> None:
    backend = Faked(broken=failing(reason, QUICKER), blames=blames)
    made = measured(backend)
    assert QUICKER not in schedules(made) and QUICK in schedules(made)
    assert made.explanation.refusals[reason.value] > 0
    assert any(reason.value in f and "made to fail" in f for f in made.explanation.failures)


def test_wrong_kernel_does_not_condemn_the_others() -> None:
    """Only the first kernel met is wrong under `quick`: all others still get it."""
    wrong: list[str] = []

    def broken(kernel: Kernel, schedule: Schedule) -> Failure | None:
        name = identity(replace(kernel, tiles={}))
        if not wrong and schedule != SAFE:
            wrong.append(name)
        return Failure(Reason.WRONG, "off by one") if schedule != SAFE and name in wrong else None

    made = measured(Faked(broken=broken, blames=False))
    assert schedules(made) == {SAFE, QUICKER}


def test_fast_wrong_kernel_loses_to_a_slow_right_one() -> None:
    made = measured(Faked(broken=failing(Reason.WRONG, QUICK, QUICKER)))
    assert schedules(made) == {SAFE}


def test_no_right_plan_is_an_error_with_the_failures() -> None:
    with pytest.raises(LumiError, match="made to fail") as error:
        measured(Faked(broken=failing(Reason.WRONG, SAFE, QUICK, QUICKER)))
    assert "wrong result" in error.value.render() and "report" in error.value.hint


@pytest.mark.parametrize("reason", [Reason.MEMORY, Reason.UNCHECKED])
def test_plans_that_could_not_run_leave_the_modelled_one(reason: Reason) -> None:
    made = measured(Faked(broken=failing(reason, SAFE, QUICK, QUICKER)))
    assert made.explanation.measured is None and made.graph.steps
    assert made.explanation.refusals[reason.value] > 0


def test_efforts_of_trials_are_added_up() -> None:
    """With what results were compared with, also where the last trial compared nothing."""

    @dataclass
    class Laborious(Faked):
        def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
            found = Faked.measure(self, region, graph, dims)
            against = "" if isinstance(found, Failure) else "numpy"
            return replace(found, effort=Effort(1.0, 2.0, 3.0, 4.0, against))

    made = measured(Laborious(broken=failing(Reason.COMPILE, QUICKER))).explanation
    spent = made.effort
    assert (spent.compile, spent.reference, spent.check, spent.time) == tuple(
        made.trials * k for k in range(1, 5)
    )
    assert spent.against == "numpy"


def test_rivals_are_prepared_before_they_run() -> None:
    prepared: list[str] = []

    @dataclass
    class Preparing(Faked):
        def prepare(self, steps: Sequence[Step]) -> None:
            prepared.extend(_way(s) for s in steps)

        def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
            assert {_way(s) for s in graph.steps} <= set(prepared)
            return Faked.measure(self, region, graph, dims)

    assert schedules(measured(Preparing())) == {QUICKER}


def _way(step: Step) -> str:
    return f"{identity(step.kernel)} {step.schedule}"


def test_failed_kernel_is_not_tried_again() -> None:
    backend = Faked(broken=failing(Reason.CRASH, QUICKER))
    measured(backend)
    crashed = [identity(s.kernel) for g in backend.trials for s in g.steps if s.schedule == QUICKER]
    assert crashed and max(map(crashed.count, crashed)) <= 2


def test_trials_are_limited() -> None:
    backend = Faked()
    made = measured(backend, trials=3)
    assert len(backend.trials) == made.explanation.trials == 3
    assert made.explanation.measured is not None


def test_no_trial_at_all_leaves_the_modelled_plan() -> None:
    made = measured(Faked(), trials=0)
    assert made.explanation.measured is None and made.graph.steps


def test_seconds_are_limited_by_the_clock_that_is_given() -> None:
    now = [0.0]

    @dataclass
    class Slow(Faked):
        def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
            now[0] += 10.0
            return Faked.measure(self, region, graph, dims)

    region, egraph = graph_of(WORK)
    settings = settings_of(WORK, mode=Mode.MEASURE, evaluations=200, seconds=25.0)
    made = search(region, egraph, settings, Slow(), clock=lambda: now[0])
    assert made.explanation.trials == 3


def test_interrupt_while_measuring_keeps_the_best_so_far() -> None:
    @dataclass
    class Interrupted(Faked):
        def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
            if len(self.trials) == 2:
                raise KeyboardInterrupt
            return Faked.measure(self, region, graph, dims)

    made = measured(Interrupted())
    assert made.explanation.interrupted and made.explanation.measured is not None
    dims = WORK.sizes(WORK.small)
    region, _ = graph_of(WORK)
    buffers = WORK.arrays(region, dims)
    assert_equal(run(made.graph, region, buffers, dims)["B2"], reference(region, buffers, dims)["B2"], 1e-4)


def test_every_hint_is_measured_and_must_be_right() -> None:
    hints = (WORK.sizes(WORK.large), WORK.sizes(WORK.small))

    @dataclass
    class WrongWhenSmall(Faked):
        def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
            if dims == hints[1] and any(s.schedule == QUICKER for s in graph.steps):
                return Failure(Reason.WRONG, "ragged tail")
            return Faked.measure(self, region, graph, dims)

    made = measured(WrongWhenSmall(), hints=hints)
    assert QUICKER not in schedules(made)


def test_measured_time_decides_against_the_model() -> None:
    """The model likes one kernel, this machine pays dearly for kernels with two loops."""

    @dataclass
    class Disagrees(Faked):
        def seconds(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> float:
            return Faked.seconds(self, kernel, schedule, dims) * (1 + 9 * (len(kernel.body) > 2))

    made = measured(Disagrees())
    assert made.explanation.measured < made.explanation.modelled * 10
    assert made.explanation.correlation is None or -1 <= made.explanation.correlation <= 1


def test_equal_kernels_of_other_regions_are_not_measured_again() -> None:
    region, egraph = graph_of(WORK)
    settings = settings_of(WORK, mode=Mode.MEASURE, evaluations=200)
    timings, first, second = Timings(), Faked(), Faked()
    search(region, egraph, settings, first, timings=timings)
    again = search(replace(region, scope="twin"), egraph, settings, second, timings=timings)
    assert len(second.trials) < len(first.trials) / 2
    assert schedules(again) == {QUICKER}


def test_search_is_repeatable() -> None:
    texts = {show_graph(measured(Faked()).graph) for _ in range(2)}
    assert len(texts) == 1


def test_rivals_are_told_with_their_times() -> None:
    made = measured(Faked())
    for story in made.explanation.kernels:
        assert story.measured is not None
        timed = [r.seconds for r in story.rivals if r.seconds is not None]
        assert timed and all(story.measured <= s * 1.021 for s in timed)


def test_backend_that_times_other_kernels_than_it_ran_is_refused() -> None:
    @dataclass
    class Miscounts(Faked):
        def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
            return Timing(1.0, ())

    with pytest.raises(ValueError, match="timed 0 of"):
        measured(Miscounts())


def test_cost_is_an_estimate_only() -> None:
    """A schedule that the model thinks slowest wins if it is measured fastest."""

    @dataclass
    class Pessimist(Faked):
        def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
            cost = Modelled.cost(self, kernel, schedule, dims)
            return replace(cost, seconds=cost.seconds * (1.05 if schedule == QUICKER else 1.0))

    assert QUICKER in schedules(measured(Pessimist()))
