from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumi import paths
from lumi.errors import LumiError, Source
from lumi.syntax.form import Form
from lumi.syntax.formatter import format_text
from lumi.syntax.layout import WIDTH
from lumi.syntax.printer import show
from lumi.syntax.reader import read, tokens

from .forms import EXAMPLES, forms, programs

SHIPPED = sorted(path for folder in ("stdlib", "models") for path in paths.data(folder).glob("*.lumi"))
MESSY = sorted(Path(__file__).parent.joinpath("layouts").glob("*.lumi"))


def formatted(text: str) -> str:
    return format_text(Source("test.lumi", text))


def comments(text: str) -> str:
    """What all comments say, in order."""
    found = [t.lstrip(";") for t in tokens(Source("test.lumi", text)) if t.type == "COMMENT"]
    return "".join("".join(found).replace(";", "").split())


@pytest.mark.parametrize("path", MESSY, ids=lambda path: path.stem)
def test_layout(path: Path, golden: Callable[..., None]) -> None:
    golden(format_text(Source(path.name, path.read_text(encoding="utf-8"))), ".lumi", name=path.stem)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_shipped_file_has_the_canonical_layout(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_text(Source(str(path), text)) == text


@EXAMPLES
@given(programs)
def test_formatting_twice_changes_nothing_more(text: str) -> None:
    once = formatted(text)
    assert formatted(once) == once


@EXAMPLES
@given(programs)
def test_formatting_keeps_every_form(text: str) -> None:
    assert read(Source("test.lumi", formatted(text))) == read(Source("test.lumi", text))


@EXAMPLES
@given(programs)
def test_formatting_keeps_every_comment(text: str) -> None:
    assert sorted(comments(formatted(text))) == sorted(comments(text))


@EXAMPLES
@given(programs)
def test_no_line_ends_in_a_space_and_no_two_are_empty(text: str) -> None:
    written = formatted(text)
    if '"' not in written:
        assert all(line == line.rstrip() for line in written.split("\n"))
        assert "\n\n\n" not in written


@EXAMPLES
@given(st.lists(forms, min_size=1, max_size=6))
def test_a_form_of_short_atoms_keeps_within_the_width(items: list[Form]) -> None:
    """Only an atom that is too long where it must stand may cross the width."""
    text = "(f " + " ".join(show(item) for item in items) + ")"
    for line in formatted(text).splitlines():
        code = line.split(";")[0].strip()
        assert len(line) <= WIDTH or len(code.lstrip("([").split()) <= 2 or '"' in line


def test_an_empty_text_stays_empty() -> None:
    assert formatted("\n \n") == ""


def test_text_that_does_not_read_is_refused() -> None:
    with pytest.raises(LumiError, match="never closed"):
        formatted("(f")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_layout_does_not_depend_on_how_it_was_typed(path: Path) -> None:
    """Every form on one line and every form on many lines become the same text."""
    forms = [form.span.text for form in read(Source(str(path), path.read_text())) if form.span]
    source = Source("shipped", "\n\n".join(forms))
    bare = [("SPACE" if t.type == "COMMENT" else t.type, str(t)) for t in tokens(source)]
    runs = [(kind, [text for _, text in run]) for kind, run in groupby(bare, key=lambda piece: piece[0])]
    wide, narrow = (
        "".join(space if kind == "SPACE" else "".join(texts) for kind, texts in runs) for space in (" ", "\n")
    )
    assert formatted(wide) == formatted(narrow)
