"""Lexical scopes: names, and the scope around them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any


class Missing:
    """The type of `MISSING`, which no binding holds."""


MISSING = Missing()


class Scope:
    """Bindings, looked up outwards.  A bound `Cell` stays a cell: only reading a name opens it."""

    __slots__ = ("names", "parent")

    def __init__(self, parent: Scope | None = None, names: dict[str, Any] | None = None) -> None:
        self.names: dict[str, Any] = names if names is not None else {}
        self.parent = parent

    def find(self, name: str) -> Any:
        """The innermost value of `name`, or `MISSING`."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names or scope.supply(name):
                return scope.names[name]
            scope = scope.parent
        return MISSING

    def supply(self, name: str) -> bool:
        """Bind a name that this scope makes on demand; whether there is one."""
        return False

    def own_names(self) -> Iterator[str]:
        """The names bound in this scope alone."""
        yield from self.names

    def visible(self) -> Iterator[str]:
        """Every name that `find` finds, inner ones first; shadowed names come again."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope.own_names()
            scope = scope.parent


def nearest(name: str, known: Iterator[str] | list[str]) -> str:
    """A hint naming what `name` may have been meant to be, or "".

    Names that are alike, and a typing mistake away for every three characters; of longer ones also those
    that begin or end with it.  In a name this short another letter makes another word.
    """
    close = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.6)
    close = [n for n in close if _edits(name, n) <= max(1, len(name) // 3) or (len(name) > 3 and name in n)]
    if len(name) <= 3:
        close = [n for n in close if len(n) != len(name) or sorted(n) == sorted(name)]
    if not close:
        return ""
    *others, last = close
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def _edits(a: str, b: str) -> int:
    """Characters to leave out, put in, replace or swap with a neighbour to get from one name to the other."""
    before, row = [], list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and (x, a[i - 2]) == (b[j - 2], y):
                best = min(best, last[j - 2] + 1)
            row.append(best)
    return row[-1]
