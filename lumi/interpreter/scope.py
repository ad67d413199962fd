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
    """A hint naming what `name` may have been meant to be, or ""."""
    close = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.6)
    if not close:
        return ""
    *others, last = close
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"
