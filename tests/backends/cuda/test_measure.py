"""Measuring on the GPU: right candidates get times, others are refused by reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.schedule import DEFAULT
from lumi.llir.kernel import KernelGraph, Map, Step
from lumi.search.protocol import Failure, Reason, Timing
from lumi.search.unfused import unfused
from tests.backends.cuda.kernels import plan_of, variants
from tests.field.test_widen import NAMES, REGIONS
from tests.workloads import WORKLOADS

pytestmark = pytest.mark.cuda


AGREED = "its unfused plan in f64, which is what numpy computes"


@pytest.fixture(scope="module")
def backend() -> CudaBackend:
    return CudaBackend()


@pytest.mark.parametrize("name", WORKLOADS)
def test_workload_is_right_under_every_schedule(name: str, backend: CudaBackend) -> None:
    work, plan = WORKLOADS[name], plan_of(name)
    dims = work.sizes(work.small)
    for number in range(3):
        steps = []
        for step in plan.steps:
            every = variants(step.kernel)
            steps.append(Step(step.kernel, every[min(number, len(every) - 1)]))
        timing = backend.measure(work.region(), KernelGraph(tuple(steps), plan.temporaries), dims)
        assert isinstance(timing, Timing), timing
        assert timing.seconds > 0
        assert timing.effort.against == AGREED
        assert len(timing.steps) == len(steps)


@pytest.mark.parametrize("number", range(len(REGIONS)), ids=NAMES)
def test_region_is_compared_with_what_numpy_computes(number: int, backend: CudaBackend) -> None:
    """States, gathers, halves, packed weights; the candidate is the unfused plan in their own types."""
    _, region, dims = REGIONS[number]
    plan = unfused(region, dims, 1 << 30)
    graph = KernelGraph(tuple(Step(k, DEFAULT) for k in plan.kernels), plan.temporaries)
    timing = backend.measure(region, graph, dims)
    assert isinstance(timing, Timing), timing
    assert timing.effort.against == AGREED


def test_large_region_is_compared_on_the_device_alone(backend: CudaBackend) -> None:
    work = WORKLOADS["attention_causal"]
    dims = {"b": 2, "hk": 8, "g": 4, "i": 2048, "j": 2048}
    timing = backend.measure(work.region(), plan_of("attention_causal"), dims)
    assert isinstance(timing, Timing), timing
    assert timing.effort.against == "its unfused plan in f64"
    assert timing.effort.reference < 10


def test_wrong_candidate_is_refused(backend: CudaBackend) -> None:
    work, plan = WORKLOADS["rmsnorm"], plan_of("rmsnorm")
    kernel = plan.steps[0].kernel
    body = tuple(replace(s, op="add") if isinstance(s, Map) and s.op == "mul" else s for s in kernel.body)
    wrong = KernelGraph((Step(replace(kernel, body=body), DEFAULT),), {})
    told = backend.measure(work.region(), wrong, work.sizes(work.small))
    assert isinstance(told, Failure)
    assert told.reason is Reason.WRONG
