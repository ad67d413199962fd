from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest

from lumi.cli.progress import Display
from lumi.compiler import Progress, Stage
from lumi.plan.file import load
from lumi.search import explain
from tests.cli.conftest import Lumi


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def to_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal, wide enough for every line."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def test_a_terminal_sees_every_stage(
    lumi: Lumi, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = to_terminal(monkeypatch)
    said = lumi("compile", model, "-o", tmp_path / "p", "--json")
    assert said.status == 0
    assert said.json["plan"]
    for stage in ("forms", "hlir", "fields", "egraph", "kernels", "plan"):
        assert stage in terminal.getvalue()


def test_a_terminal_sees_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = to_terminal(monkeypatch)
    with pytest.raises(KeyboardInterrupt), Display() as display:
        display.stage(Progress(Stage.KERNELS, 2, 5, "head"))
        refusals = {"does not fit": 3, "illegal plan": 1}
        display.search(explain.Progress("head", "climb", 1.5e-3, 4, 120, 7, 0, refusals))
        raise KeyboardInterrupt
    assert "2/5" in terminal.getvalue()
    assert "head climb: 1.5 ms, 4 kernels; 120 compared, 7 measured, 4 refused" in terminal.getvalue()


def test_lines_tell_of_what_is_measured_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Display(in_lines=True) as display:
        for trial, passed in enumerate((0.0, 0.5, 1.0, 1.0)):
            now[0] += passed
            display.search(explain.Progress("head", "measure", 1e-3, 4, 9, trial, 0, {}, spent=3.0))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"  head measure: 1 ms, 4 kernels; 9 compared, {k} measured in 3 s" for k in (1, 3)]


def test_a_long_silence_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with Display(in_lines=True) as display:
        for done, passed in enumerate((0.0, 9.0, 1.0, 9.0)):
            now[0] += passed
            display.stage(Progress(Stage.KERNELS, done, 14, f"layer {done}"))
        for passed in (0.5, 0.5, 9.0):
            now[0] += passed
            display.search(explain.Progress("head", "climb", 1e-3, 4, 9, 0, 0, {}))
    assert capsys.readouterr().err.splitlines() == [
        "kernels: 14 regions",
        "  2 of 14 done, now layer 2",
        "  head climb: 1 ms, 4 kernels; 9 compared",
    ]


LINES = [
    "hlir: 1 variant",
    "fields: 1 variant",
    "egraph: 1 region",
    "kernels: 1 region",
    "plan: 1 variant",
]


def test_without_a_terminal_stages_are_lines(lumi: Lumi, model: Path, tmp_path: Path) -> None:
    forms, *stages, summary = lumi("compile", model, "-o", tmp_path / "p", "--json").err.splitlines()
    assert (forms, stages) == (f"forms: {model}", LINES)
    assert summary.startswith(f"{tmp_path / 'p'}: ")


def test_without_rich_stages_are_lines(
    lumi: Lumi, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    terminal = to_terminal(monkeypatch)
    said = lumi("compile", model, "-o", tmp_path / "p", "--json")
    assert said.status == 0
    assert terminal.getvalue().splitlines()[1:-1] == LINES


def test_ctrl_c_in_a_search_keeps_the_best_so_far(
    lumi: Lumi, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(display: Display, event: explain.Progress) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Display, "search", interrupt)
    said = lumi("compile", model, "-o", tmp_path / "p", "--search", "model")
    assert said.status == 130
    assert load(tmp_path / "p").kernels
    assert "stopped by Ctrl-C: the best so far was kept" in lumi("explain", tmp_path / "p").out
