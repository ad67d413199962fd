"""What candidates are compared with, and what of them is refused; the child's commands are numpy's here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from lumi import paths
from lumi.backends.cuda import measure, subject
from lumi.backends.cuda.measure import Measurer
from lumi.backends.cuda.schedule import DEFAULT
from lumi.compiler import Options, Stage, compile_model
from lumi.errors import Source
from lumi.field.access import Access
from lumi.field.evaluate import evaluate
from lumi.field.index import of_axis
from lumi.field.region import Region
from lumi.field.widen import cut_factors
from lumi.llir.kernel import Kernel, KernelGraph, Load, Map, Step, Temporary, walk
from lumi.llir.kernel import Store as Write
from lumi.search.child import Worker, WorkerError
from lumi.search.draft import InfeasibleError
from lumi.search.protocol import Failure, Reason, Timing
from lumi.search.unfused import Unfused, unfused
from tests.backends.cuda import numpy_bench
from tests.backends.cuda.kernels import plan_of
from tests.backends.cuda.numpy_bench import NumpyWorker
from tests.field.test_widen import LLAMA
from tests.search.test_data import ANGLES
from tests.search.test_model_plans import CASES, regions
from tests.workloads import WORKLOADS


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[NumpyWorker]:
    made = NumpyWorker()
    monkeypatch.setattr(measure, "Worker", lambda _: made)
    monkeypatch.setattr(measure, "_refused", lambda steps, arch, ahead: None)
    yield made
    made.stop()


def simple(plan: Unfused) -> KernelGraph:
    """A plan as a candidate."""
    return KernelGraph(tuple(Step(k, DEFAULT) for k in plan.kernels), plan.temporaries)


def measured(name: str, graph: KernelGraph, measurer: Measurer | None = None) -> Timing | Failure:
    work = WORKLOADS[name]
    return (measurer or Measurer()).measure(work.region(), graph, work.sizes(work.small), "sm_90a")


@pytest.mark.parametrize("name", WORKLOADS)
def test_right_plans_are_timed_and_their_reference_is_numpys(name: str, worker: NumpyWorker) -> None:
    found = measured(name, plan_of(name))
    assert isinstance(found, Timing), found
    assert len(found.steps) == len(plan_of(name).steps)
    assert found.effort.against == "its unfused plan in f64, which is what numpy computes"
    assert found.effort.reference > 0 and found.effort.check > 0


def test_a_child_that_dies_is_replaced_by_one_that_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process of its own, as on a GPU: what it had is made again, and numpy is not asked again."""
    monkeypatch.setattr(measure, "Worker", lambda _: Worker(numpy_bench.__name__))
    monkeypatch.setattr(measure, "_refused", lambda steps, arch, ahead: None)
    measurer = Measurer()
    first = measured("rmsnorm", plan_of("rmsnorm"), measurer)
    assert isinstance(first, Timing), first
    assert measurer._worker is not None
    measurer._worker._process.kill()
    crashed = measured("rmsnorm", plan_of("rmsnorm"), measurer)
    assert isinstance(crashed, Failure) and crashed.reason is Reason.CRASH
    monkeypatch.setattr(subject, "numpy_seconds", lambda *given: pytest.fail("numpy is asked again"))
    again = measured("rmsnorm", plan_of("rmsnorm"), measurer)
    assert isinstance(again, Timing), again
    assert again.effort.against == first.effort.against


@pytest.mark.parametrize("case", CASES)
def test_regions_of_models_are_right_as_they_are_written(case: str, worker: NumpyWorker) -> None:
    """States that are read and partly written, gathers, integers."""
    measurer = Measurer()
    for region in regions(case):
        graph = simple(unfused(region, CASES[case].dims, 1 << 30))
        found = measurer.measure(region, graph, CASES[case].dims, "sm_90a")
        assert isinstance(found, Timing), found


def test_regions_with_states_are_measured_where_a_call_can_be(worker: NumpyWorker) -> None:
    """The hints of Llama's dims are together beyond a short context, whose states nothing may leave."""
    path = paths.data("models") / "llama.lumi"
    work = compile_model(
        Source(path.name, path.read_text()), Options(config=LLAMA, target="cuda"), Stage.FIELDS
    )
    measurer, met = Measurer(), set[int]()
    layers = [(v, r) for v, r in work.distinct().values() if r.scope == "model.layers.0"]
    for variant, region in layers:
        for hint in variant.hints(region):
            found = measurer.measure(region, simple(unfused(region, hint, 1 << 30)), hint, "sm_90a")
            assert isinstance(found, Timing), found
            met.add(hint["past"] + hint.get("seq", 1))
    assert met == {LLAMA["context"]}


def changed(kernel: Kernel) -> Kernel:
    """The kernel with sums in the place of products."""
    body = tuple(replace(s, op="add") if isinstance(s, Map) and s.op == "mul" else s for s in kernel.body)
    return replace(kernel, body=body)


def test_wrong_plan_is_refused_with_its_error(worker: NumpyWorker) -> None:
    wrong = KernelGraph((Step(changed(plan_of("rmsnorm").steps[0].kernel), DEFAULT),), {})
    found = measured("rmsnorm", wrong)
    assert isinstance(found, Failure) and found.reason is Reason.WRONG
    assert found.detail.startswith("B2: off by") and "is allowed" in found.detail


def test_plan_that_writes_nothing_is_refused_after_one_that_was_right(worker: NumpyWorker) -> None:
    measurer = Measurer()
    assert isinstance(measured("rmsnorm", plan_of("rmsnorm"), measurer), Timing)
    access = next(s.access for s in walk(plan_of("rmsnorm").steps[0].kernel.body) if isinstance(s, Write))
    idle = filling(replace(access, buffer="T0"))
    graph = KernelGraph((Step(idle, DEFAULT),), {"T0": Temporary(access.shape, access.dtype)})
    found = measured("rmsnorm", graph, measurer)
    assert isinstance(found, Failure) and found.reason is Reason.WRONG


def filling(access: Access) -> Kernel:
    """A kernel that makes every element of a buffer 7."""
    axes = {f"x{k}": size for k, size in enumerate(access.shape)}
    whole = replace(access, index=tuple(map(of_axis, axes)))
    body = (Write(whole, 7.0, tuple(axes)),)
    return Kernel(axes, tuple(axes), (), dict.fromkeys(axes, 1), body)


def test_plan_that_writes_what_it_may_only_read_is_refused_and_the_next_one_is_right(
    worker: NumpyWorker,
) -> None:
    measurer, kernel = Measurer(), plan_of("rmsnorm").steps[0].kernel
    access = next(s.access for s in walk(kernel.body) if isinstance(s, Load) and s.access.buffer == "B0")
    spoiling = filling(access)
    found = measured(
        "rmsnorm", KernelGraph((*plan_of("rmsnorm").steps, Step(spoiling, DEFAULT)), {}), measurer
    )
    assert isinstance(found, Failure) and found.reason is Reason.WRONG
    assert "writes where nothing" in found.detail
    assert isinstance(measured("rmsnorm", plan_of("rmsnorm"), measurer), Timing)


def test_unfused_plan_that_is_not_what_numpy_computes_refuses_everything(
    worker: NumpyWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*given: object) -> Unfused:
        made = unfused(*given)  # type: ignore[arg-type]
        return Unfused(tuple(map(changed, made.kernels)), made.temporaries)

    monkeypatch.setattr(subject, "unfused", wrong)
    measurer = Measurer()
    for _ in range(2):
        found = measured("rmsnorm", plan_of("rmsnorm"), measurer)
        assert isinstance(found, Failure) and found.reason is Reason.WRONG
        assert "the unfused plan itself, by numpy" in found.detail


@pytest.mark.parametrize(("apart", "is_right"), [(1e-11, True), (1e-6, False)])
def test_reference_may_round_otherwise_than_numpy(
    apart: float, is_right: bool, worker: NumpyWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sines of angles in the thousands: the last bits of an angle are the twelfth digit of its sine."""

    def nudged(region: Region, arrays: dict[str, np.ndarray], dims: Mapping[str, int]) -> None:
        evaluate(region, arrays, dims)
        arrays["B1"] += apart

    monkeypatch.setattr(subject, "evaluate", nudged)
    region = ANGLES.region()
    found = Measurer().measure(region, simple(unfused(region, {}, 1 << 30)), {}, "")
    assert isinstance(found, Timing) == is_right, found


def test_large_regions_are_not_computed_by_numpy(
    worker: NumpyWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> None:
        raise AssertionError("numpy was asked")

    monkeypatch.setattr(subject, "BRIEF", 0.0)
    monkeypatch.setattr(subject, "evaluate", refuse)
    found = measured("rmsnorm", plan_of("rmsnorm"))
    assert isinstance(found, Timing)
    assert found.effort.against == "its unfused plan in f64"


def test_reference_is_made_once_for_each_region_at_each_dims(worker: NumpyWorker) -> None:
    measurer, work = Measurer(), WORKLOADS["rmsnorm"]
    region, graph, dims = work.region(), plan_of("rmsnorm"), work.sizes(work.small)
    other = {name: size + 1 for name, size in dims.items()}
    for hint in (dims, other):
        assert isinstance(measurer.measure(region, graph, hint, ""), Timing)
    before = worker.bench.runs
    for hint in (dims, other, dims):
        assert isinstance(measurer.measure(region, graph, hint, ""), Timing)
    assert worker.bench.runs == before + 3 * len(graph.steps)


def test_memory_of_other_regions_is_freed(worker: NumpyWorker) -> None:
    measurer = Measurer()
    for hint in (WORKLOADS["rmsnorm"].sizes(WORKLOADS["rmsnorm"].small), {"i": 3, "k": 5}):
        measurer.measure(WORKLOADS["rmsnorm"].region(), plan_of("rmsnorm"), hint, "")
    assert {"0 0", "0 wanted", "1 0", "1 wanted"} <= set(worker.bench.blocks)
    measured("softmax", plan_of("softmax"), measurer)
    assert set(worker.bench.blocks) - {"between"} == {"0 0", "0 wanted"}


def test_rounding_that_the_region_amplifies_is_right(worker: NumpyWorker) -> None:
    """The unfused plan in f32 is as far off as the candidate, by thousands of spacings."""
    region = ANGLES.region()
    found = Measurer().measure(region, simple(unfused(region, {}, 1 << 30)), {}, "")
    assert isinstance(found, Timing), found


def test_products_in_tf32_are_right_only_where_they_are_allowed(
    worker: NumpyWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = WORKLOADS["rmsnorm_matmul"]
    region, dims = work.region(), work.sizes(work.small)
    graph = simple(unfused(cut_factors(region), dims, 1 << 30))
    found = Measurer().measure(region, graph, dims, "")
    assert isinstance(found, Failure) and found.reason is Reason.WRONG
    monkeypatch.setattr(measure, "is_tf32", lambda schedule: True)
    assert isinstance(Measurer().measure(region, graph, dims, ""), Timing)


@pytest.mark.parametrize(
    "error",
    [InfeasibleError("an axis is already open"), WorkerError(Reason.TIMEOUT, "no answer in 20 s")],
    ids=["infeasible", "timeout"],
)
def test_region_without_a_reference_is_tried_once_and_no_candidate_blamed(
    error: Exception, worker: NumpyWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def refuse(*given: object) -> Unfused:
        tried.append(given)
        raise error

    monkeypatch.setattr(subject, "unfused", refuse)
    measurer = Measurer()
    for _ in range(3):
        found = measured("rmsnorm", plan_of("rmsnorm"), measurer)
        assert isinstance(found, Failure) and found.reason is Reason.UNCHECKED
    assert len(tried) == 1
