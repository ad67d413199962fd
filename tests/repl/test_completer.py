from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from lumi.repl.completer import NameCompleter, candidates, head_of_call, inside_string

COMMANDS = {"doc": "what a name is", "graph": "the graph", "quit": "leave"}


class Few:
    """A few names."""

    docs: ClassVar = {"softmax": "eˣ / Σeˣ", "sigmoid": "1 / (1 + e⁻ˣ)", "matmul": "a b"}

    def names(self) -> Iterable[str]:
        return self.docs

    def summary(self, name: str) -> str:
        return self.docs[name]

    def keywords(self, name: str) -> Mapping[str, str]:
        return {"softmax": {"axis": "default -1"}, "mean": {"axis": "", "keepdims": ""}}.get(name, {})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s", ["sigmoid", "softmax"]),
        ("(* 2 (so", ["softmax"]),
        ("(softmax x :", [":axis"]),
        ("(mean (softmax x) :k", [":keepdims"]),
        ("(mean [(softmax x :a", [":axis"]),
        ("(mean [x :a", []),
        (":a", []),
        (",", ["doc", "graph", "quit"]),
        (" ,g", ["graph"]),
        (",doc so", ["softmax"]),
        ('(str "so', []),
        ("; so", []),
        ("(f ", []),
        ("", []),
    ],
)
def test_candidates(text: str, found: list[str]) -> None:
    assert [name for name, _ in candidates(text, Few(), COMMANDS)] == found


def test_a_completion_replaces_the_word_and_shows_its_line() -> None:
    (completion,) = NameCompleter(Few(), COMMANDS).get_completions(Document("(exp (soft"), CompleteEvent())
    assert (completion.text, completion.start_position) == ("softmax", -4)
    assert completion.display_meta_text == "eˣ / Σeˣ"


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("(f x (g y) ", "f"),
        ("(f (g ", "g"),
        ("[a ", ""),
        ("(f [a ", ""),
        ('(f "(g" ', "f"),
        ("(f) ", ""),
        (")", ""),
    ],
)
def test_head_of_call(text: str, head: str) -> None:
    assert head_of_call(text) == head


@pytest.mark.parametrize(
    ("text", "inside"),
    [('"a', True), ('"a"', False), ('"', True), ("; a", True), ("; a\n", False), ('"a\\"', True)],
)
def test_inside_string(text: str, inside: bool) -> None:
    assert inside_string(text) is inside
