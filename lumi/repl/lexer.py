"""Colours for a line being typed; the text need not be complete."""

from __future__ import annotations

import re
from collections.abc import Callable, Container

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

STYLE = Style.from_dict(
    {
        "comment": "ansibrightblack italic",
        "string": "ansigreen",
        "number": "ansicyan",
        "keyword": "ansiyellow",
        "special": "ansimagenta bold",
        "known": "ansiblue",
        "bracket": "ansibrightblack",
        "command": "ansimagenta",
    }
)

_TOKEN = re.compile(
    r"""
      (?P<command>\A\s*,[a-z]*)
    | (?P<comment>;[^\n]*|\#_)
    | (?P<string>"(?:\\.|[^"\\])*"?)
    | (?P<keyword>:[^\s()\[\]{}"';`~@,:]+)
    | (?P<number>[+-]?\d[\d.eE+-]*(?=[\s()\[\]]|\Z))
    | (?P<bracket>[()\[\]])
    | (?P<name>[^\s()\[\]{}"';`~@,:]+)
    | (?P<other>\s+|.)
    """,
    re.VERBOSE | re.DOTALL,
)


def highlight(text: str, special: Container[str], known: Container[str]) -> list[tuple[str, str]]:
    """The text in pieces, each with the class of its style: "class:string", or "" for plain."""
    pieces = []
    for match in _TOKEN.finditer(text):
        kind, piece = match.lastgroup or "other", match.group()
        if kind == "name":
            kind = "special" if piece in special else "known" if piece in known else "other"
        pieces.append(("" if kind == "other" else f"class:{kind}", piece))
    return pieces


class FormLexer(Lexer):
    """Colours forms; `special` and `known` are asked again at every key, because names come and go."""

    def __init__(self, special: Container[str], known: Container[str]) -> None:
        self._special = special
        self._known = known

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The pieces of each line."""
        lines: list[StyleAndTextTuples] = [[]]
        for style, piece in highlight(document.text, self._special, self._known):
            first, *rest = piece.split("\n")
            lines[-1].append((style, first))
            lines += [[(style, part)] for part in rest]
        return lambda number: lines[number] if number < len(lines) else []
