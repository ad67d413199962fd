"""What calls ask of a driver once their variant has run: no graph, no memory, one copy in and one graph."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.plan import Plan
from lumi.runtime.counters import Counters
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings
from tests.backends.cuda.simulated import Bindings, simulate

TEXT = """
(defdim seq :min 1 :max 8 :hint [1 4])
(defdim past :min 0 :max 63 :hint 20)

(defmodel steps [(x f32 [seq 16])]
  "What a decoder does: keeps rows, and looks at all of them."
  (let [rows (state "rows" [64 16])]
    (set! rows (update-slice rows x :axis 0 :start past))
    (outputs :y (matmul x (transpose (slice rows :axis 0 :stop (+ past seq)))))))
"""


@cache
def plan() -> Plan:
    return compile_plan(Source("steps.lumi", TEXT), Options(target="cuda", settings=Settings(Mode.NONE)))


def rows(count: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(count).standard_normal((count, 16)).astype(np.float32)


def steady(session: Session, first: int, last: int) -> Counters:
    """What steps from one position to another count, the one before having run."""
    session(x=rows(1), past=first - 1)
    before = session.counters
    for past in range(first, last):
        assert session(x=rows(1), past=past)["y"].shape == (1, past + 1)
    return session.counters - before


def check_steady(session: Session, launches: int) -> None:
    """Steps make nothing; they send dims and inputs, and fetch what they return."""
    session(x=rows(5), past=0)
    found = steady(session, 6, 60)
    assert (found.captures, found.device_allocations, found.host_allocations) == (0, 0, 0)
    assert found.launches == launches * 54
    assert found.bytes_in <= 54 * 1024 and found.bytes_within == 0
    assert found.bytes_out == sum(4 * (past + 1) for past in range(6, 60))


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> Bindings:
    return simulate(monkeypatch)


def test_steps_replay_one_graph(bindings: Bindings) -> None:
    session = Session(plan())
    check_steady(session, 1)
    captured = session.counters.captures
    bindings.calls.clear()
    assert steady(session, 3, 63).captures == 0
    assert session.counters.captures == captured
    assert dict(bindings.calls) == {
        "cuMemcpyHtoDAsync": 61,
        "cuGraphLaunch": 61,
        "cuMemcpyDtoHAsync": 61,
        "cuStreamSynchronize": 61,
    }


def test_each_variant_is_captured_once(bindings: Bindings) -> None:
    session = Session(plan())
    made = []
    for seq in (1, 3, 1, 8, 3, 2):
        session(x=rows(seq), past=0)
        made.append(session.counters.captures)
    assert made[0] < made[1] and made[1:] == [made[1]] * 5


def test_forks_count_for_themselves(bindings: Bindings) -> None:
    session = Session(plan())
    session(x=rows(1), past=0)
    other = session.fork()
    assert other.counters.launches == 0
    other(x=rows(1), past=1)
    assert other.counters.launches == 1


def test_tensors_are_kept_on_the_device_by_a_copy_of_their_own(bindings: Bindings) -> None:
    session = Session(plan())
    session(x=rows(1), past=0)
    before = session.counters
    session.run_on_device({"x": rows(1)}, {"past": 1})
    found = session.counters - before
    assert (found.device_allocations, found.bytes_within, found.bytes_out) == (1, 8, 0)


@pytest.mark.cuda
def test_steps_replay_one_graph_on_the_gpu() -> None:
    check_steady(Session(plan()), 1)
