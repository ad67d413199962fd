"""Candidates that write out of bounds, never end, or are fast but wrong: none of them wins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi.backends.cuda import measure
from lumi.backends.cuda.backend import CudaBackend
from lumi.egraph.saturate import saturate
from lumi.search import child
from lumi.search.child import Worker
from lumi.search.protocol import Reason, Timing
from lumi.search.search import Found, search
from lumi.search.settings import Mode, Settings
from lumi.search.trial import Timings
from tests.backends.cuda import planted
from tests.workloads import WORKLOADS

WORK = WORKLOADS["rmsnorm"]
REASONS = {"outside": Reason.CRASH, "endless": Reason.TIMEOUT, "wrong": Reason.WRONG}


@pytest.fixture(autouse=True)
def planting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "emit", planted.emit)
    monkeypatch.setattr(measure, "Worker", lambda _: Worker(planted.__name__))
    monkeypatch.setattr(child, "HANG", 7.0)


def searched(*names: str) -> Found:
    region, hint = WORK.region(), WORK.sizes(WORK.small)
    settings = Settings(Mode.MEASURE, hints=(hint,), evaluations=40, trials=2 + 2 * len(names), seconds=120.0)
    backend = planted.PlantedBackend(*names)
    return search(region, saturate(region), settings, backend, timings=Timings())


@pytest.mark.parametrize("name", planted.STATEMENTS)
def test_planted_code_compiles_but_is_not_the_default(name: str) -> None:
    """The plant is in the entry itself, so that no block does anything before it."""
    region, hint = WORK.region(), WORK.sizes(WORK.small)
    settings = Settings(Mode.MODEL, hints=(hint,), evaluations=40)
    step = search(region, saturate(region), settings, CudaBackend(), timings=Timings()).graph.steps[0]
    text = planted.emit(replace(step, schedule=planted.Schedule(name)), "kernel").text
    head, _, body = text.partition("__global__")
    assert body.partition("{")[2].lstrip().startswith(planted.STATEMENTS[name])
    assert planted.STATEMENTS[name] not in head


@pytest.mark.cuda
@pytest.mark.parametrize("name", planted.STATEMENTS)
def test_planted_candidate_is_refused_by_name(name: str) -> None:
    found = searched(name)
    reason = REASONS[name].value
    assert any(line.startswith(reason) and name in line for line in found.explanation.failures)
    assert found.explanation.refusals[reason] > 0
    assert_right(found)


@pytest.mark.cuda
def test_search_among_all_planted_candidates_ends_with_a_right_plan() -> None:
    found = searched(*planted.STATEMENTS)
    assert {r for r, count in found.explanation.refusals.items() if count} & {
        r.value for r in REASONS.values()
    }
    assert_right(found)


def assert_right(found: Found) -> None:
    """No planted schedule is left, and the plan computes what the region says."""
    assert not {s.schedule.template for s in found.graph.steps} & set(planted.STATEMENTS)
    again = CudaBackend().measure(WORK.region(), found.graph, WORK.sizes(WORK.small))
    assert isinstance(again, Timing), again
