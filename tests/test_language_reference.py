"""docs/language.md: its programs load, its entries print what it shows, its names are all names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lumi.errors import LumiError, Source
from lumi.interpreter.library import library
from lumi.interpreter.module import load
from lumi.interpreter.registry import CONSTANTS, SPECIAL
from lumi.interpreter.session import Session
from lumi.interpreter.trace import trace
from lumi.repl.prompt import Conversation, answer
from lumi.syntax.formatter import format_text

PAGE = Path(__file__).parents[1] / "docs" / "language.md"
TEXT = PAGE.read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```lisp\n(.*?)```", TEXT, re.DOTALL)
NAMES = set(re.findall(r"[^\s`()\[\]]+", " ".join(re.findall(r"`(.+?)`", TEXT))))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda text: text.split("\n")[0][:30])
def test_a_program_loads_and_has_the_canonical_layout(program: str) -> None:
    source = Source("language.md", program)
    load(source)
    assert format_text(source) == program


def test_every_special_form_and_constant_is_on_the_page() -> None:
    assert {*SPECIAL, *CONSTANTS} - NAMES == set()


def test_every_name_of_the_library_is_on_the_page() -> None:
    assert set(Session().names()) - NAMES == set()


def test_the_table_of_the_library_lists_what_each_file_defines() -> None:
    listed = {file: set(names.split()) for file, names in re.findall(r"\| `(\w+\.lumi)` \| `(.*?)` \|", TEXT)}
    defined: dict[str, set[str]] = {}
    for name in library().own_names():
        defined.setdefault(library().file_of(name) or "", set()).add(name)
    assert listed == defined


def test_a_mistake_is_told_as_the_page_shows() -> None:
    program, message = re.findall(r"```lisp\n([^`]*)```\n\nit says:\n\n```text\n(.*?)```", TEXT, re.DOTALL)[0]
    with pytest.raises(LumiError) as caught:
        trace(load(Source("language.md", program)))
    assert caught.value.render() + "\n" == message


def test_the_prompt_prints_what_the_page_shows() -> None:
    (shown,) = [block for block in re.findall(r"```text\n(.*?)```", TEXT, re.DOTALL) if "lumi> " in block]
    conversation = Conversation()
    printed = []
    for entry in re.findall(r"^lumi> (.*)$", shown, re.MULTILINE):
        printed.append(f"lumi> {entry}")
        said = answer(conversation, entry, printed.append)
        assert said.error is None, said.error
    assert "\n".join(printed) + "\n" == shown
