from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from lumi.repl import prompt
from lumi.repl.commands import QuitError
from lumi.repl.session import Conversation


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("(+ 1 2)", True),
        ("(+ 1", False),
        ('"a', False),
        ("'", False),
        ("(+ 1))", True),
        ("(a]", True),
        ("1 2", True),
        (",doc (", True),
        ("", True),
    ],
)
def test_an_entry_is_complete_when_more_text_cannot_mend_it(text: str, complete: bool) -> None:
    assert prompt.is_complete(text) is complete


def test_lines_are_joined_until_brackets_close() -> None:
    lines = ["(f x\n", "\n", "   y)\n", "\n", ",help\n", "1 2\n", "(open\n", "; end"]
    assert list(prompt.entries(lines)) == ["(f x\n\n   y)", ",help", "1 2", "(open\n; end"]


@pytest.mark.parametrize(
    ("text", "column"),
    [("(f x", 2), ("(let [a 1", 6), ("(f [1] (g", 9), ("(f\n  (g", 4), ("(f)", 0), ("", 0), ('(f ")"', 2)],
)
def test_the_next_line_begins_inside_the_bracket(text: str, column: int) -> None:
    assert prompt.indentation(text) == column


def fail(error: BaseException) -> object:
    def evaluate(self: Conversation, text: str) -> Iterator[str]:
        yield "first"
        raise error

    return evaluate


def test_ctrl_c_ends_an_entry_and_not_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conversation, "evaluate", fail(KeyboardInterrupt()))
    entry = prompt.answer(Conversation(), "(long)", lambda text: None)
    assert entry.results == ["first"]
    assert entry.error is not None
    assert entry.error.kind == "interrupted"


def test_a_fault_of_ours_ends_an_entry_and_not_the_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conversation, "evaluate", fail(ZeroDivisionError("boom")))
    entry = prompt.answer(Conversation(), "(odd)", lambda text: None)
    assert entry.error is not None
    assert entry.error.message == "ZeroDivisionError: boom"


def test_quit_passes_through() -> None:
    with pytest.raises(QuitError):
        prompt.answer(Conversation(), ",quit", print)


def test_a_pipe_prints_results_and_complaints(tmp_path: Path) -> None:
    text = "(def x (iota 3))\n(* x\n   2)\nnope\n(+ 1 2)\n,type x\n(f\n"
    told = subprocess.run(
        [sys.executable, "-m", "lumi", "repl"], input=text, capture_output=True, text=True, check=False
    )
    assert told.stdout == "[0 2 4]  ; i32 [3]\n3\ni32 [3]\n"
    assert "unknown name `nope`" in told.stderr
    assert "this `(` is never closed" in told.stderr
    assert told.returncode == 1


def test_a_pipe_ends_at_quit() -> None:
    said: list[str] = []
    answered = prompt.converse(["1\n", ",quit\n", "2\n"], said.append, said.append)
    assert said == ["1"]
    assert len(answered) == 1


def typed(keys: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A person types keys at the terminal, then Ctrl-D."""
    monkeypatch.setenv("LUMI_CACHE", str(tmp_path))
    with create_pipe_input() as given, create_app_session(input=given, output=DummyOutput()):
        given.send_text(keys + "\x04")
        prompt.interact()


def test_a_terminal_asks_for_another_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("(+ 1\r2)\rnope\r(str 4)\r", monkeypatch, tmp_path)
    said = capsys.readouterr()
    assert said.out.splitlines()[1:] == ["3", '"4"']
    assert "unknown name `nope`" in said.err
    assert "+(+ 1\n+  2)" in (tmp_path / "history").read_text()


def test_a_terminal_drops_a_line_at_ctrl_c_and_leaves_at_quit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed("(dropped\x03(str 1)\r\r,quit\r(str 2)\r", monkeypatch, tmp_path)
    assert capsys.readouterr().out.splitlines()[1:] == ['"1"']


def test_without_a_writable_cache_there_is_no_history(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    typed("(str 1)\r", monkeypatch, tmp_path / "file")
    assert capsys.readouterr().out.splitlines()[1:] == ['"1"']


def test_memory_that_is_not_there_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Conversation, "evaluate", fail(MemoryError("37 GiB")))
    entry = prompt.answer(Conversation(), "(zeros [100000 100000])", lambda text: None)
    assert entry.error is not None
    assert entry.error.render() == (
        "memory error: this machine is out of memory: 37 GiB\n  = use smaller sizes"
    )
