from __future__ import annotations

import io

import pytest

from tests.cli.conftest import Lumi


def say(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_entries_come_from_a_pipe(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    say("(+ 1\n   2)\n(str 3)\n", monkeypatch)
    said = lumi("repl")
    assert (said.status, said.out, said.err) == (0, '3\n"3"\n', "")


def test_a_mistake_ends_nothing_but_the_status(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    say("nope\n(+ 1 2)\n", monkeypatch)
    said = lumi("repl")
    assert (said.status, said.out) == (1, "3\n")
    assert "unknown name `nope`" in said.err


def test_json_has_every_entry(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    say("(iota 3)\nnope\n", monkeypatch)
    first, second = lumi("repl", "--json").json["entries"]
    assert first == {"text": "(iota 3)", "results": ["[0 1 2]  ; i32 [3]"]}
    assert second["results"] == []
    assert second["error"]["kind"] == "name error"


@pytest.mark.cuda
def test_entries_are_computed_on_the_gpu(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    say("(def x (iota 3))\n(* x 2)\n(reduce-sum (* x 2))\n", monkeypatch)
    said = lumi("repl", "--target", "cuda")
    assert (said.status, said.out) == (0, "[0 2 4]  ; i32 [3]\n6  ; i32 []\n")


def test_an_unknown_target_is_refused(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    say("1\n", monkeypatch)
    said = lumi("repl", "--target", "abacus")
    assert said.status == 1 and "does not compile for 'abacus'" in said.err


def test_kernels_are_those_of_the_target(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    say(",plan (iota 3)\n", monkeypatch)
    assert "cuda" in lumi("repl", "--target", "cuda").out


def test_tf32_may_be_allowed(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    say("(+ 1 2)\n", monkeypatch)
    said = lumi("repl", "--target", "cpu", "--relaxed", "tf32")
    assert (said.status, said.out) == (0, "3\n")
    assert "--relaxed tf32 changes nothing on cpu" in said.err
