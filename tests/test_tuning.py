"""The tuning database: what a compilation takes from it, and what ends in a correct plan all the same."""

from __future__ import annotations

import hashlib
import json
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lumi import compiler
from lumi.compiler import Compilation, Options, Stage, compile_model
from lumi.errors import LumiError, Source
from lumi.plan.file import to_bytes
from lumi.runtime.session import Session
from lumi.search.database import Database
from lumi.search.kept import fingerprint
from lumi.search.settings import Mode, Settings

TEXT = """
(defdim n :min 1 :max 64 :hint [1 16])

(defmodel norm [(x f32 [n 32])]
  "Rows over their sums of squares."
  (/ x (reduce-sum (* x x) :axis 1 :keepdims true)))
"""


def compiled(path: Path | None, **more: Any) -> Compilation:
    settings = Settings(evaluations=30, trials=2, seconds=5.0, mode=more.pop("mode", Mode.MODEL))
    until = more.pop("until", Stage.PLAN)
    return compile_model(Source("norm.lumi", TEXT), Options(database=path, settings=settings, **more), until)


def plan_bytes(work: Compilation) -> bytes:
    assert work.plan is not None
    return to_bytes(work.plan)


def is_right(work: Compilation) -> bool:
    assert work.plan is not None
    x = np.random.default_rng(0).standard_normal((3, 32)).astype(np.float32)
    want = x / (x * x).sum(1, keepdims=True)
    return bool(np.allclose(Session(work.plan)(x=x)["out"], want, rtol=1e-5))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "tuning.sqlite"


def test_what_was_searched_is_not_searched_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiled(path)
    assert not first.recalled
    monkeypatch.setattr(compiler, "search", lambda *a, **k: pytest.fail("it searches"))
    monkeypatch.setattr(compiler, "saturate", lambda *a, **k: pytest.fail("it saturates"))
    again = compiled(path)
    assert again.recalled == set(first.found)
    assert plan_bytes(again) == plan_bytes(first)
    assert again.counts()["enodes"] == first.counts()["enodes"]
    assert again.troubles == ()


def test_stages_that_are_looked_at_are_made(path: Path) -> None:
    compiled(path)
    assert compiled(path, until=Stage.EGRAPH).egraphs


@pytest.mark.parametrize(
    "more",
    [
        {"families": ("exact",)},
        {"without": ("add-zero-left",)},
        {"barred": ("rows",)},
        {"bind": {"n": 5}},
        {"mode": Mode.NONE},
    ],
    ids=lambda more: next(iter(more)),
)
def test_another_question_has_another_answer(path: Path, more: dict[str, Any]) -> None:
    compiled(path)
    assert not compiled(path, **more).recalled


def test_another_lumi_searches_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(path)
    monkeypatch.setattr("lumi.search.kept.fingerprint", lambda: "another")
    assert not compiled(path).recalled
    assert len(fingerprint()) == 64


def test_recorded_searches_are_made(path: Path, tmp_path: Path) -> None:
    compiled(path, mode=Mode.MEASURE)
    assert not compiled(path, mode=Mode.MEASURE, record=tmp_path / "trials.json").recalled


def test_interrupted_searches_are_not_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = compiler.search

    def stopped(*given: Any, **more: Any) -> Any:
        found = search(*given, **more)
        return replace(found, explanation=replace(found.explanation, interrupted=True))

    monkeypatch.setattr(compiler, "search", stopped)
    compiled(path)
    assert Database(path).entries() == []


@pytest.mark.parametrize(
    ("lumi", "days", "stays"), [("another", 31, False), ("another", 29, True), (fingerprint(), 31, True)]
)
def test_old_results_of_another_lumi_are_removed(path: Path, lumi: str, days: int, stays: bool) -> None:
    compiled(path, mode=Mode.NONE, bind={"n": 5})
    with sqlite3.connect(path) as rows:
        rows.execute("UPDATE results SET lumi = ?, made = ?", (lumi, time.time() - days * 86400))
    compiled(path, mode=Mode.NONE, bind={"n": 4})
    assert len(Database(path).entries()) == (2 if stays else 1)


def test_a_database_of_an_older_format_is_made_anew(path: Path) -> None:
    first = compiled(path)
    with sqlite3.connect(path) as rows:
        rows.execute("ALTER TABLE results DROP COLUMN lumi")
        rows.execute("PRAGMA user_version = 1")
    again = compiled(path)
    assert (again.recalled, again.troubles) == (set(), ())
    assert compiled(path).recalled == set(first.found)


# -- damage


def changed(path: Path, change: Callable[[Any], Any], keeps_digest: bool = False) -> None:
    """Change the content of all entries, as one who knows how they are checked would."""
    with sqlite3.connect(path) as rows:
        for key, content in rows.execute("SELECT key, content FROM results").fetchall():
            raw = zlib.compress(json.dumps(change(json.loads(zlib.decompress(content)))).encode())
            rows.execute("UPDATE results SET content = ? WHERE key = ?", (raw, key))
            if not keeps_digest:
                digest = hashlib.sha256(raw).hexdigest()
                rows.execute("UPDATE results SET digest = ? WHERE key = ?", (digest, key))


def swapped(old: str, new: str) -> Callable[[Any], Any]:
    return lambda value: json.loads(json.dumps(value).replace(f'"{old}"', f'"{new}"'))


def test_content_that_is_not_what_was_kept_is_removed(path: Path) -> None:
    first = compiled(path)
    changed(path, swapped("mul", "add"), keeps_digest=True)
    again = compiled(path)
    assert not again.recalled
    assert len(again.troubles) == len(first.found)
    assert "is not what was kept" in again.troubles[0]
    assert plan_bytes(again) == plan_bytes(first)
    assert compiled(path).recalled


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda value: value[:2], "expected"),
        (swapped("B0", "B7"), "do not compute the region's results"),
        (swapped("recip", "reciprocal"), "number 0"),
    ],
    ids=["cut short", "other buffers", "no operator"],
)
def test_ill_formed_kernels_are_removed(path: Path, change: Callable[[Any], Any], told: str) -> None:
    compiled(path)
    changed(path, change)
    again = compiled(path)
    assert not again.recalled
    assert told in again.troubles[0]
    assert is_right(again)


def test_a_poisoned_result_is_found_out_where_times_decide(path: Path) -> None:
    compiled(path, mode=Mode.MEASURE)
    assert compiled(path, mode=Mode.MEASURE).recalled
    changed(path, swapped("recip", "neg"))
    again = compiled(path, mode=Mode.MEASURE)
    assert not again.recalled
    assert "wrong result" in again.troubles[0]
    assert is_right(again)


def test_a_database_that_cannot_be_used_is_done_without(tmp_path: Path) -> None:
    junk, other, folder = tmp_path / "junk", tmp_path / "other", tmp_path / "file" / "tuning.sqlite"
    junk.write_text("no database " * 100)
    folder.parent.write_text("")
    with sqlite3.connect(other) as rows:
        rows.execute("PRAGMA user_version = 99")
    for path, told in ((junk, "not a database"), (other, "format 99"), (folder, "File exists")):
        work = compiled(path)
        assert len(work.troubles) == 1
        assert told in work.troubles[0]
        assert is_right(work)
    assert junk.read_text().startswith("no database")


def test_a_full_disk_is_told_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(path, mode=Mode.NONE)
    pages = "PRAGMA max_page_count = 1"  # what SQLite answers is what it answers where the disk is full
    connect = sqlite3.connect

    def small(*given: Any, **more: Any) -> sqlite3.Connection:
        rows = connect(*given, **more)
        rows.execute(pages)
        return rows

    monkeypatch.setattr(sqlite3, "connect", small)
    work = compiled(path, families=("exact",))
    assert "full" in work.troubles[0]
    assert is_right(work)


# -- several processes

WRITER = """
import sys
from pathlib import Path
from lumi.search.database import Database
from tests.test_tuning import compiled, kept_of
work = compiled(None)
database, name = Database(Path(sys.argv[1])), sys.argv[2]
kept = kept_of(work)
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    database.keep(f"{name}{number}", name, "machine", kept, 1.0)
assert not database.troubles, database.troubles
"""


def kept_of(work: Compilation) -> Any:
    from lumi.search.kept import Kept

    key, (_, region) = next(iter(work.distinct().items()))
    return Kept.of(region, work.settings(key), work.found[key], work.egraphs[key])


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(path), name, str(count)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def is_sound(path: Path) -> bool:
    with sqlite3.connect(path) as rows:
        return bool(rows.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def test_processes_write_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "tuning.sqlite"
    running = [writer(path, name, 40) for name in ("a", "b")]
    assert [process.wait(60) for process in running] == [0, 0]
    assert is_sound(path)
    assert len(Database(path).entries()) == 80


def test_a_process_that_is_killed_leaves_what_it_had_kept(tmp_path: Path) -> None:
    path = tmp_path / "tuning.sqlite"
    process = writer(path, "a", 100_000)
    while not path.exists() or not Database(path).entries():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    assert is_sound(path)
    database = Database(path)
    work = compiled(tmp_path / "other.sqlite")
    _, region = next(iter(work.distinct().values()))
    assert database.find("a0", region) == kept_of(work)


# -- moving


def test_results_move_between_databases(path: Path, tmp_path: Path) -> None:
    first = compiled(path)
    exported, other = tmp_path / "exported.sqlite", tmp_path / "other.sqlite"
    assert Database(path).export(exported) == len(first.found)
    assert Database(other).take(exported) == len(first.found)
    assert compiled(other).recalled
    with pytest.raises(LumiError, match="is there already"):
        Database(path).export(exported)
    exported.write_text("junk" * 1000)
    with pytest.raises(LumiError, match="not a database"):
        Database(other).take(exported)
    with pytest.raises(LumiError, match="there is no"):
        Database(other).take(tmp_path / "none.sqlite")
