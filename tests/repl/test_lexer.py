from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.document import Document

from lumi.repl.lexer import FormLexer, highlight

SPECIAL = {"let", "defn"}
KNOWN = {"softmax", "+"}


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("let", "special"),
        ("softmax", "known"),
        ("-1.5e-3", "number"),
        (":axis", "keyword"),
        ('"a (b"', "string"),
        ('"never closed', "string"),
        ("; note", "comment"),
        ("#_", "comment"),
        ("(", "bracket"),
        (",doc", "command"),
    ],
)
def test_a_piece_has_its_style(text: str, style: str) -> None:
    assert highlight(text, SPECIAL, KNOWN) == [(f"class:{style}", text)]


@pytest.mark.parametrize("text", ["mine", "-", "softmaxes", "let-go"])
def test_an_unknown_name_is_plain(text: str) -> None:
    assert highlight(text, SPECIAL, KNOWN) == [("", text)]


@settings(deadline=None, derandomize=True)
@given(st.text(alphabet='()[] \n"\\;:#_,1.-eax', max_size=40))
def test_no_character_is_lost(text: str) -> None:
    assert "".join(piece for _, piece in highlight(text, SPECIAL, KNOWN)) == text


def test_each_line_has_its_pieces() -> None:
    get_line = FormLexer(SPECIAL, KNOWN).lex_document(Document('(let "a\nb" 1)\n'))
    assert get_line(0) == [
        ("class:bracket", "("),
        ("class:special", "let"),
        ("", " "),
        ("class:string", '"a'),
    ]
    assert "".join(piece for _, piece, *_ in get_line(1)) == 'b" 1)'
    assert "".join(piece for _, piece, *_ in get_line(2)) == ""
    assert get_line(7) == []
