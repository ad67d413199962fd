from __future__ import annotations

import re
from pathlib import Path

import pytest

from lumi.errors import LumiError, Source
from lumi.hlir import text as hlir
from lumi.repl import commands
from lumi.repl.evaluator import Evaluator
from lumi.repl.session import Conversation


@pytest.fixture
def conversation() -> Conversation:
    found = Conversation()
    list(found.evaluate("(def x (reshape (cast (iota 6) f32) [2 3]))"))
    return found


def told(conversation: Conversation, text: str) -> str:
    (result,) = commands.run(conversation, text)
    return result


def test_doc_tells_call_and_docstring(conversation: Conversation) -> None:
    assert told(conversation, ",doc softmax").startswith("(softmax x :axis -1)\n  eˣ / Σeˣ along `axis`")
    assert told(conversation, ",doc let").startswith("(let …)\n")


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("x", "f32 [2 3]"),
        ("(einsum x [i k]  x [j k]  -> [i j])", "f32 [2 2]"),
        ("3", "integer"),
        ("softmax", "function"),
        ("[1 x]", "list of 2: integer, f32 [2 3]"),
        ("(outputs :y x)", "y: f32 [2 3]"),
    ],
)
def test_type_runs_nothing(
    conversation: Conversation, expression: str, type_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Evaluator, "run", None)
    assert told(conversation, f",type {expression}") == type_


def test_graph_reads_back(conversation: Conversation) -> None:
    text = told(conversation, ",graph (* x 2)")
    assert hlir.show(hlir.parse(Source("graph", text))) == text
    assert '(input "x" f32 [2 3])' in text


@pytest.mark.parametrize(
    ("command", "head"), [("fields", "(region"), ("kernels", ";;; entry: "), ("plan", "(plan entry")]
)
def test_stages_are_shown(conversation: Conversation, command: str, head: str) -> None:
    assert told(conversation, f",{command} (softmax x)").startswith(head)


def test_time_leaves_states_as_they_were(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_TIMED_RUNS", 3)
    list(conversation.evaluate('(def c (state "c" [2]))'))
    list(conversation.evaluate("(set! c (+ c 1))"))
    text = told(conversation, ",time (set! c (+ c 1))")
    assert re.fullmatch(r"first [\d.]+ ms, then [\d.]+ µs at best, median of [1-3]: [\d.]+ µs", text)
    assert list(conversation.evaluate("c")) == ["[1. 1.]  ; f32 [2]"]


def test_load_tells_what_a_file_defines(conversation: Conversation, tmp_path: Path) -> None:
    path = tmp_path / "a file.lumi"
    path.write_text("(defn f [x] x)\n")
    assert told(conversation, f",load {path}") == f"{path}: 1 names"
    assert list(conversation.evaluate("(f 1)")) == ["1"]


def test_help_lists_every_command(conversation: Conversation) -> None:
    listed = [line.split()[0] for line in told(conversation, ",help").splitlines()]
    assert listed == [f",{name}" for name in commands.COMMANDS]


def test_quit_ends(conversation: Conversation) -> None:
    with pytest.raises(commands.QuitError):
        told(conversation, ",quit")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (",grap x", "there is no command ,grap"),
        (",", "there is no command ,"),
        (",doc", "write ,doc NAME"),
        (",help me", "write ,help"),
        (",doc nothing-like-this", "unknown name `nothing-like-this`"),
        (",graph 3", "3 is no tensor"),
        (",graph x", "x is no tensor"),
        (",type x x", "one expression is expected"),
        (",type (f", "this `(` is never closed"),
        (",load none.lumi", "none.lumi cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_command_is_explained(conversation: Conversation, text: str, message: str) -> None:
    with pytest.raises(LumiError) as caught:
        told(conversation, text)
    assert message in caught.value.message
