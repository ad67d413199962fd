"""Reads a source text, writes it in the canonical layout.

Every form keeps its spelling and every comment its text; only spaces, line ends and the number of
semicolons change.  `;` begins a comment behind code, `;;` one on a line of its own, `;;;` one for a whole
file or section.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from lumi.errors import Source
from lumi.syntax.concrete import Comment, Item, parse
from lumi.syntax.grouping import group
from lumi.syntax.layout import WIDTH, Layout, Line, Lines

_DIM = re.compile(r"(\(defdim [^\s()\[\]]+) ([^\s()\[\]].*)")


def format_text(source: Source) -> str:
    """The text in canonical layout; formatting the result again changes nothing.

    Raises the reader's "syntax error".
    """
    lines = [line for block in _paragraphs(parse(source)) for line in block]
    return "".join(f"{text}\n" for text in _render(lines))


def _paragraphs(parts: tuple[Item | Comment, ...]) -> Iterator[Lines]:
    """The lines of each top-level part, with an empty line wherever one belongs."""
    above: Item | Comment | None = None
    long_above = False
    dims: list[Line] = []
    for part in parts:
        lines = (Line("", part.text),) if isinstance(part, Comment) else Layout().item(group(part))
        long = len(lines) > 1
        apart = isinstance(above, Item) and (long or long_above)
        separate = above is not None and (part.blank or apart)
        is_dim = not long and _DIM.match(lines[0].text) is not None
        if dims and (separate or not is_dim):
            yield _aligned(dims)
            dims = []
        if separate:
            yield (Line(""),)
        if is_dim:
            dims.append(lines[0])
        else:
            yield lines
        above, long_above = part, long
    if dims:
        yield _aligned(dims)


def _aligned(dims: list[Line]) -> Lines:
    """Neighbouring declarations of dims with their keywords in one column, if the width allows it."""
    matches = [match for line in dims if (match := _DIM.match(line.text))]
    column = max(len(match[1]) for match in matches)
    texts = [f"{match[1].ljust(column)} {match[2]}" for match in matches]
    if max(map(len, texts)) > WIDTH:
        return tuple(dims)
    return tuple(replace(line, text=text) for line, text in zip(dims, texts, strict=True))


def _render(lines: list[Line]) -> Iterator[str]:
    """Text of lines; the comments behind neighbouring lines begin in one column."""
    for has_note, run in groupby(lines, key=lambda line: bool(line.note and line.text.strip())):
        together = list(run)
        column = max(len(line.text) for line in together) + 2
        for line in together:
            yield _behind_code(line, column) if has_note else _alone(line) if line.note else line.text


def _alone(line: Line) -> str:
    text = line.note.lstrip(";")
    count = len(line.note) - len(text)
    return line.text + ";" * (max(2, count) if line.text == "" else 2) + text


def _behind_code(line: Line, column: int) -> str:
    if line.text.endswith(("(", "[")):
        return f"{line.text};;{line.note.lstrip(';')}"
    return f"{line.text.ljust(column)};{line.note.lstrip(';')}"
