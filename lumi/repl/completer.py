"""Completes names, keywords of the call around the cursor, and commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

_WORD = re.compile(r"[^\s()\[\]{}\"';`~@,]*\Z")
_TOKEN = re.compile(r";[^\n]*|\"(?:\\.|[^\"\\])*\"?|[()\[\]]|[^\s()\[\]\";]+")
_CLOSED = re.compile(r"\"(?:\\.|[^\"\\])*\"", re.DOTALL)


class Names(Protocol):
    """What is there to be completed."""

    def names(self) -> Iterable[str]:
        """Every name that can be used."""

    def summary(self, name: str) -> str:
        """A line that says what a name is."""

    def keywords(self, name: str) -> Mapping[str, str]:
        """The keywords that a call of `name` takes, each with a line."""


class NameCompleter(Completer):
    """Completions for what stands before the cursor."""

    def __init__(self, names: Names, commands: Mapping[str, str]) -> None:
        """`commands` are those of the prompt, without their comma, each with a line."""
        self._names = names
        self._commands = commands

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Names that begin with the word before the cursor, each with its line."""
        text = document.text_before_cursor
        for name, summary in candidates(text, self._names, self._commands):
            yield Completion(name, start_position=-len(word(text)), display_meta=summary)


def candidates(text: str, names: Names, commands: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What can stand in the place of the word that `text` ends with, sorted, each with its line."""
    typed = word(text)
    if re.fullmatch(r"\s*,[a-z]*", text):
        yield from _beginning(text.strip()[1:], commands)
    elif typed.startswith(":"):
        keywords = names.keywords(head_of_call(text))
        yield from _beginning(typed, {f":{name}": summary for name, summary in keywords.items()})
    elif typed and not inside_string(text):
        for name in sorted(name for name in names.names() if name.startswith(typed)):
            yield name, names.summary(name)


def _beginning(typed: str, found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from sorted((name, summary) for name, summary in found.items() if name.startswith(typed))


def word(text: str) -> str:
    """The name or keyword that `text` ends with, maybe empty."""
    match = _WORD.search(text)
    return match.group() if match else ""


def head_of_call(text: str) -> str:
    """The first word of the innermost bracket that is open at the end of `text`."""
    heads: list[str | None] = []
    for token in _TOKEN.findall(text):
        if token in ("(", "["):
            heads.append(None if token == "(" else "")
        elif token in (")", "]"):
            heads[-1:] = []
        elif heads and heads[-1] is None and not token.startswith(";"):
            heads[-1] = token
    return (heads[-1] or "") if heads else ""


def inside_string(text: str) -> bool:
    """Whether the end of `text` lies within a string or a comment."""
    tokens = _TOKEN.findall(text)
    last = tokens[-1] if tokens else ""
    if last.startswith(";"):
        return not text.endswith("\n")
    return last.startswith('"') and not _CLOSED.fullmatch(last)
