"""The ladder of bench/attention.py, on plans of a small attention."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(scope="module")
def ladder() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        yield importlib.import_module("ladder")


class Counting:
    """A processor on which a launch takes a millisecond."""

    heading: Mapping[str, Any] = {}
    bandwidth, peak = 1e9, 1e12

    def prepare(self, plans: object) -> None:
        pass

    def contestant(self, session: Any, data: object) -> Callable[[], float]:
        return lambda: 1e-3 * len(session.plan.variants[0].launches)


def small(ladder: ModuleType) -> Any:
    return replace(ladder.CPU_CASES[1], heads=2, key_heads=1, queries=40, keys=40, width=16)


def test_rungs_grow_to_all_rules(ladder: ModuleType) -> None:
    rungs = ladder.rungs_of_rules()
    assert [r.name for r in rungs][:5] == ["structure", "+ identities", "+ factors", "+ online", "+ masks"]
    for lower, higher in itertools.pairwise(rungs):
        assert set(higher.without) < set(lower.without)
        assert higher.rules - lower.rules == len(lower.without) - len(higher.without)
    assert rungs[-1].without == ()


def test_every_rung_is_right_and_told_once(ladder: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = ladder.run("cpu", Counting(), [small(ladder)], map)
    rows = found["rules"]
    assert not any(row["failure"] for row in rows)
    assert all(0 < row["error"] <= ladder.TOLERANCE for row in rows)
    assert all(row["seconds"] == pytest.approx(1e-3 * row["launches"]) for row in rows)
    assert rows[1]["same"] and not rows[0]["same"]
    assert rows[-1]["launches"] == 1 and rows[-1]["scratch"] == 0
    assert found["floor"] == pytest.approx(found["bytes"] / Counting.bandwidth)
    assert capsys.readouterr().out.count("| the same |") == 2 * sum(row["same"] for row in rows)


def test_nothing_runs_where_the_model_tells_the_times(ladder: ModuleType) -> None:
    case = replace(ladder.GPU_CASES[1], batch=1, queries=128, keys=128)
    (found,) = ladder.run("cuda", None, [case], map)
    first, *_, last = found["rules"]
    assert first["seconds"] > last["seconds"] > found["floor"] > 0
    assert last == {**found["templates"][-1], "rung": last["rung"], "same": last["same"]}


def test_a_wrong_result_is_not_timed(ladder: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    case = small(ladder)
    monkeypatch.setattr(ladder.Case, "want", lambda self, *_: np.ones((self.queries, self.width)))
    rung = ladder.rungs_of_rules()[-1]
    plan = ladder.compiled(case, rung, "cpu")
    (row,) = ladder.rows([rung], [plan], ladder.measured(Counting(), case, [plan]))
    assert row.failure.startswith("wrong by ") and row.seconds is None
    assert f"| {row.failure} |" in ladder.table([row], 1.0)


def test_templates_come_back_one_at_a_time(ladder: ModuleType) -> None:
    case = replace(ladder.GPU_CASES[0], batch=1, queries=512, keys=512)
    rungs = ladder.rungs_of_templates()
    assert rungs[-1].barred == ()
    for rung in (rungs[0], rungs[2]):
        plan = ladder.compiled(case, rung, "cuda")
        used = {k.schedule.template for k in plan.kernels}
        assert not used & set(rung.barred)
        assert bool(used & set(ladder.TEMPLATES)) == (rung is not rungs[0])


def test_table(ladder: ModuleType, golden: Callable[..., None]) -> None:
    made = ladder.Row("structure", 6, False, ("wgmma", "stream"), 2, 4 << 30, 38.2e-3, 3e-3, "")
    rows = [
        made,
        replace(made, rung="+ identities", rules=44, same=True),
        replace(made, rung="+ factors", rules=114, scratch=3000, seconds=None, failure="wrong by 0.3"),
        replace(made, rung="+ online", rules=124, kernels=("wgmma",), launches=1, scratch=0, seconds=5e-4),
    ]
    golden(ladder.table(rows, 4e-4), ".md")
    cases = [
        {"name": name, "floor": 4e-4, "rules": [asdict(row) for row in rows]} for name in ("full", "causal")
    ]
    golden(ladder.summary(cases, "rules"), ".md", name="summary")


def test_bytes_and_operations_of_a_case(ladder: ModuleType) -> None:
    case = replace(ladder.GPU_CASES[1], batch=3, heads=4, key_heads=2, queries=5, keys=7, width=8)
    assert case.bytes == sum(2 * np.prod(s) for s in [*case.shapes.values(), case.shapes["q"]])
    seen = np.tri(5, 7).sum()
    assert case.flops == 3 * 4 * seen * (2 * 8 + 2 * 8)
    assert replace(case, causal=False).flops == 3 * 4 * 35 * 32
