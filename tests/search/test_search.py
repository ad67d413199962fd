"""Whole searches by the model: the shapes of plans, their results, and how far they can be trusted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from lumi.dim import DimRange
from lumi.errors import LumiError
from lumi.llir.kernel import Kernel, Schedule
from lumi.llir.text import show_graph
from lumi.search.explain import Progress
from lumi.search.protocol import Cost
from lumi.search.search import search
from lumi.search.settings import Mode
from tests.search.plans import (
    Modelled,
    assert_equal,
    found,
    graph_of,
    loops,
    planner_of,
    reference,
    run,
    settings_of,
)
from tests.workloads import WORKLOADS

KERNELS = {
    "decode": 2,
    "decode_length_mask": 2,
    "log_sum_exp_split": 2,
    "layernorm_matmul": 2,
    "layernorm_matmul_fast": 2,
    "variance_split": 2,
    "matmul_split": 2,
    "matmul_amax_rounded": 2,
}
"""Workloads whose plan has more than one kernel: split ones, and those that need whole rows first."""

PASSES = {"softmax": 2, "rmsnorm": 2, "layernorm": 2, "gate_overflow": 2, "softmax_topped": 3}
"""Loops of single kernels that have more than one."""


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload_has_its_plan_and_its_value(name: str, golden: Callable[..., None]) -> None:
    work = WORKLOADS[name]
    region, _ = graph_of(work)
    graph = found(work).graph
    golden(show_graph(graph), ".kernels", name=name)
    assert len(graph.steps) == KERNELS.get(name, 1)
    if len(graph.steps) == 1:
        assert len(loops(graph.steps[0].kernel)) == PASSES.get(name, 1)
    dims = work.sizes(work.small)
    buffers = work.arrays(region, dims)
    got, want = run(graph, region, buffers, dims), reference(region, buffers, dims)
    out = region.stores[0].access.buffer
    assert_equal(got[out], want[out], work.tolerance)


def test_mode_none_takes_a_seed_as_it_is() -> None:
    work = WORKLOADS["softmax"]
    first, best = found(work, mode=Mode.NONE).explanation, found(work).explanation
    assert first.evaluations < best.evaluations
    assert best.modelled <= first.modelled


@pytest.mark.parametrize("name", ["attention_window", "decode", "layernorm_matmul"])
def test_search_never_ends_worse_than_its_seeds(name: str) -> None:
    work = WORKLOADS[name]
    first, best = (found(work, mode=m).explanation.modelled for m in (Mode.NONE, Mode.MODEL))
    assert best <= first


SCRIPT = """
from lumi.llir.text import show_graph
from tests.search.plans import found
from tests.workloads import WORKLOADS
for name in ("decode", "layernorm_matmul"):
    result = found(WORKLOADS[name], seed=7, evaluations=150)
    print(show_graph(result.graph), result.explanation)
"""


def test_plan_does_not_depend_on_the_process() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "31337")
    }
    assert len(texts) == 1 and "(kernels" in texts.pop()


def test_budget_counts_evaluations() -> None:
    work = WORKLOADS["decode_length_mask"]
    few, many = (found(work, evaluations=n).explanation for n in (60, 800))
    assert few.evaluations < many.evaluations <= 800 + 40
    assert many.modelled <= few.modelled


def test_temporary_that_does_not_fit_at_the_largest_dims_is_never_stored() -> None:
    work = WORKLOADS["linear_cross_entropy"]
    ranges = {"i": DimRange("i", 1, 1 << 20, (64,)), "j": DimRange("j", 1, 1 << 18, (64,))}
    made = found(work, hints=({"i": 64, "j": 64},), ranges=ranges, memory=1 << 30)
    for temporary in made.graph.temporaries.values():
        assert len(temporary.shape) < 2
    assert made.explanation.refusals["a temporary does not fit memory"] > 0


def test_no_plan_within_the_memory_limit_is_an_error_that_says_so() -> None:
    work = WORKLOADS["decode"]
    region, egraph = graph_of(work)
    with pytest.raises(LumiError, match="has no plan"):
        search(region, egraph, settings_of(work), _Refusing())


class _Refusing(Modelled):
    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        return Cost(float("inf"), 0.0, 0.0, 0.0, 0.0)


def test_symbolic_axis_is_never_held_whole() -> None:
    work = replace(WORKLOADS["softmax"], dims="i j", large={"i": 64, "j": 8})
    region, _ = graph_of(work)
    for mode in (Mode.NONE, Mode.MODEL):
        graph = found(work, mode=mode).graph
        assert all(not step.kernel.resident for step in graph.steps)
        buffers = work.arrays(region, {"i": 3, "j": 19})
        got = run(graph, region, buffers, {"i": 3, "j": 19})
        assert_equal(got["B1"], reference(region, buffers, {"i": 3, "j": 19})["B1"], 1e-5)


def test_plan_for_several_hints_is_good_at_each_of_them() -> None:
    work = WORKLOADS["linear_cross_entropy"]
    small, large = {"i": 1, "j": 64}, {"i": 8192, "j": 128256}
    both = found(work, hints=(small, large))
    backend = Modelled()

    def cost(made: object, dims: Mapping[str, int]) -> float:
        return sum(backend.cost(s.kernel, s.schedule, dims).seconds for s in made.graph.steps)

    alone = found(work, hints=(small,))
    assert both.explanation.modelled == pytest.approx(cost(both, small) + cost(both, large))
    assert cost(both, large) <= cost(alone, large)


def test_progress_is_told_and_never_gets_worse() -> None:
    work = WORKLOADS["decode_length_mask"]
    region, egraph = graph_of(work)
    told: list[Progress] = []
    made = search(region, egraph, settings_of(work), Modelled(), report=told.append)
    assert [p.best for p in told] == sorted((p.best for p in told), reverse=True)
    assert told[-1].best == pytest.approx(made.explanation.modelled)
    assert made.explanation.curve[-1][1] == told[-1].best


@dataclass
class _Interrupting(Modelled):
    """Ctrl-C at the `left`-th estimate."""

    left: int = 0

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return Modelled.cost(self, kernel, schedule, dims)


def test_interrupt_keeps_the_best_plan_so_far() -> None:
    work = WORKLOADS["decode_length_mask"]
    region, egraph = graph_of(work)
    made = search(region, egraph, settings_of(work), _Interrupting(left=200))
    assert made.explanation.interrupted
    whole = search(region, egraph, settings_of(work), Modelled())
    assert not whole.explanation.interrupted
    assert whole.explanation.modelled <= made.explanation.modelled
    dims = work.sizes(work.small)
    buffers = work.arrays(region, dims)
    assert_equal(run(made.graph, region, buffers, dims)["B3"], reference(region, buffers, dims)["B3"], 1e-5)


@dataclass
class _Numbered(Modelled):
    """One template with two numbers, of which the second is the better one."""

    def schedules(self, kernel: Kernel) -> Sequence[Schedule]:
        return tuple(Schedule("numbered", (("number", n),)) for n in (1, 2))

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        cost = Modelled.cost(self, kernel, schedule, dims)
        return replace(cost, seconds=(3 - dict(schedule.options)["number"]) * cost.seconds)


def test_best_numbers_of_a_template_are_chosen_in_the_end() -> None:
    work = WORKLOADS["softmax"]
    made = search(*graph_of(work), settings_of(work), _Numbered())
    assert [dict(s.schedule.options) for s in made.graph.steps] == [{"number": 2}]
    assert made.explanation.curve[-1][1] == pytest.approx(made.explanation.modelled)


def test_interrupt_before_any_plan_goes_on_to_the_caller() -> None:
    work = WORKLOADS["softmax"]
    region, egraph = graph_of(work)
    with pytest.raises(KeyboardInterrupt):
        search(region, egraph, settings_of(work), _Interrupting(left=1))


def test_explanation_has_a_story_for_each_kernel() -> None:
    made = found(WORKLOADS["decode"])
    assert len(made.explanation.kernels) == len(made.graph.steps)
    for story in made.explanation.kernels:
        assert story.modelled >= story.floor > 0 and story.ratio >= 1 and story.measured is None
    assert made.explanation.modelled == pytest.approx(sum(k.modelled for k in made.explanation.kernels))


def test_deeply_nested_term_does_not_exhaust_the_stack() -> None:
    from tests.workloads import Workload, add, read

    term = read("x", "i")
    for k in range(1500):
        term = add(term, 1.0 + k % 3)
    work = Workload("deep", term, {"i": 8}, {"i": 5}, "i", {"x": "i"})
    planner = planner_of(work)
    made = found(work, mode=Mode.NONE)
    assert planner.sizes == {"i": 8} and len(made.graph.steps) == 1
