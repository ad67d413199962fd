"""A recorded search is replayed to the same plan, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lumi.errors import LumiError
from lumi.llir.json import encode
from lumi.search.protocol import Failure, Reason
from lumi.search.record import Record, Recorder, Replay
from lumi.search.search import Found, search
from lumi.search.settings import Mode, Settings
from tests.search.plans import graph_of, settings_of
from tests.search.test_measure import CHOSEN, QUICKER, WORK, Choosing, Faked, failing


def settings(**options: object) -> Settings:
    return settings_of(WORK, mode=Mode.MEASURE, evaluations=200, **options)


def recorded(**options: object) -> tuple[Found, Record]:
    region, egraph = graph_of(WORK)
    ticks = iter(range(10_000))
    recorder = Recorder(Faked(broken=failing(Reason.CRASH, QUICKER)), clock=lambda: float(next(ticks)))
    found = search(region, egraph, settings(**options), recorder, clock=recorder.now)
    return found, recorder.record


def replayed(record: Record, **options: object) -> Found:
    region, egraph = graph_of(WORK)
    replay = Replay(Faked(), record)
    return search(region, egraph, settings(**options), replay, clock=replay.now)


def text(found: Found) -> str:
    return json.dumps([encode(found.graph), encode(found.explanation)], sort_keys=True)


@pytest.mark.parametrize("limits", [{}, {"trials": 7}, {"seconds": 9.5}])
def test_replay_finds_the_same_plan(limits: dict[str, object], tmp_path: Path) -> None:
    found, record = recorded(**limits)
    record.save(tmp_path / "record.json")
    again = replayed(Record.load(tmp_path / "record.json"), **limits)
    assert text(again) == text(found)
    assert found.explanation.trials > 0


def test_replay_takes_what_the_device_chose() -> None:
    region, egraph = graph_of(WORK)
    recorder = Recorder(Choosing())
    found = search(region, egraph, settings(), recorder, clock=recorder.now)
    assert CHOSEN in {s.schedule for s in found.graph.steps}
    assert text(replayed(recorder.record)) == text(found)


def test_record_reads_back_equal(tmp_path: Path) -> None:
    _, record = recorded()
    record.save(tmp_path / "r.json")
    assert Record.load(tmp_path / "r.json") == record
    results = [e.result for entries in record.trials.values() for e in entries]
    assert any(isinstance(r, Failure) and r.reason is Reason.CRASH for r in results)


def test_trial_that_was_not_recorded_is_an_error() -> None:
    _, record = recorded(trials=2)
    with pytest.raises(LumiError, match="no trial 1") as error:
        replayed(record)
    assert "record the search again" in error.value.hint


def test_damaged_record_is_refused(tmp_path: Path) -> None:
    _, record = recorded(trials=1)
    path = tmp_path / "r.json"
    record.save(path)
    whole = path.read_text()
    for damage in (whole[: len(whole) // 2], whole.replace("Timing", "Tming"), "[]"):
        path.write_text(damage)
        with pytest.raises(LumiError):
            Record.load(path)


def test_record_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    Record(99, "device", {}).save(path)
    with pytest.raises(LumiError, match="format 99"):
        Record.load(path)


def test_missing_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LumiError, match="cannot read"):
        Record.load(tmp_path / "none.json")
