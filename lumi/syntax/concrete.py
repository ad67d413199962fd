"""The concrete syntax of a text: forms as they were spelled, with the comments around them.

Comments belong to a neighbour: those on lines of their own to the form below, one behind a form to that form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from lark import Token

from lumi.errors import Source
from lumi.syntax.form import PREFIXES
from lumi.syntax.mistake import CLOSERS
from lumi.syntax.reader import read, tokens


class Role(Enum):
    """What the items of a bracket are to each other: it decides where they stand."""

    CALL = "a head and its arguments"
    STEPS = "a head and arguments that always stand below one another"
    BODY = "a first line and a body"
    BINDINGS = "pairs of name and value"
    CLAUSES = "a head and pairs of test and value"
    PARAMETERS = "names, then keywords with defaults"
    SEQUENCE = "anything else"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An atom, a bracket with its items, or a prefix with what it applies to.

    `text` is the atom, the opening bracket or the prefix; `below` are comments before the closing bracket.
    """

    text: str
    items: tuple[Item, ...] | None = None
    below: tuple[str, ...] = ()
    role: Role = Role.SEQUENCE

    @property
    def close(self) -> str:
        """The closing bracket; nothing behind an atom or a prefix."""
        return CLOSERS.get(self.text, "")


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """Nodes that stand together on a line, one unless grouped, with the comments that are theirs.

    `blank` tells that an empty line stands above; `note` is the comment behind, on the same line.
    """

    nodes: tuple[Node, ...]
    above: tuple[str, ...] = ()
    note: str = ""
    blank: bool = False

    @property
    def text(self) -> str:
        """The text of its first node."""
        return self.nodes[0].text


@dataclass(frozen=True, slots=True, eq=False)
class Comment:
    """A comment between top-level forms, on a line of its own."""

    text: str
    blank: bool


def parse(source: Source) -> tuple[Item | Comment, ...]:
    """The top-level forms and comments of a text.  Raises the reader's "syntax error"."""
    read(source)
    return _Parser(tokens(source)).top()


class _Parser:
    """Walks the tokens of a text that is known to be well formed."""

    def __init__(self, stream: Iterator[Token]) -> None:
        self._stream = stream
        self._newlines = 2  # line ends since the last token: a text begins like a new paragraph
        self._token = self._advance()

    def top(self) -> tuple[Item | Comment, ...]:
        """Everything, to the end of the text."""
        found: list[Item | Comment] = []
        while self._token is not None:
            if self._token.type == "COMMENT":
                self._top_comment(found)
            else:
                found.append(self._item((), self._newlines > 1))
        return tuple(found)

    def _top_comment(self, found: list[Item | Comment]) -> None:
        last = found[-1] if found else None
        blank, margin = self._newlines > 1, self._newlines == 0
        text = self._take().rstrip()
        if margin and isinstance(last, Item):
            found[-1] = _noted(last, text)
        else:
            found.append(Comment(text, blank))

    def _item(self, above: tuple[str, ...], blank: bool) -> Item:
        text = str(self._take())
        if text in CLOSERS:
            return self._bracketed(text, above, blank)
        if text == "#_" or text in PREFIXES:
            return self._prefixed(text, above, blank)
        return Item((Node(text),), above, blank=blank)

    def _bracketed(self, text: str, above: tuple[str, ...], blank: bool) -> Item:
        items, below = self._items(CLOSERS[text])
        self._take()
        return Item((Node(text, tuple(items), below),), above, blank=blank)

    def _prefixed(self, text: str, above: tuple[str, ...], blank: bool) -> Item:
        inner: list[Item] = []
        while not inner or inner[-1].text == "#_":
            while self._token is not None and self._token.type == "COMMENT":
                above = (*above, self._take().rstrip())
            inner.append(self._item((), blank=False))
        return Item((Node(text, tuple(inner)),), above, blank=blank)

    def _items(self, close: str) -> tuple[list[Item], tuple[str, ...]]:
        """The items up to the closing bracket, and the comments before it that have no item below."""
        items: list[Item] = []
        above: list[str] = []
        blank = False
        while self._token != close:
            blank = blank or (self._newlines > 1 and bool(items))
            if self._token is not None and self._token.type == "COMMENT":
                margin = self._newlines == 0 and items and not above
                text = self._take().rstrip()
                if margin:
                    items[-1] = _noted(items[-1], text)
                else:
                    above.append(text)
            else:
                items.append(self._item(tuple(above), blank))
                above, blank = [], False
        return items, tuple(above)

    def _take(self) -> Token:
        """The current token; the next one becomes current."""
        token = self._token
        assert token is not None
        self._newlines = 0
        self._token = self._advance()
        return token

    def _advance(self) -> Token | None:
        for token in self._stream:
            if token.type != "SPACE":
                return token
            self._newlines += token.count("\n")
        return None


def _noted(item: Item, note: str) -> Item:
    return replace(item, note=f"{item.note} {note}".strip())
