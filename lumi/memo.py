"""Remembers what has been found out about an object, by which object it is.

Tile programs are compared, priced and arranged many times in a search, and are deep: to hash one takes
longer than much of what is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST = 1 << 12
"""Objects that are remembered at once."""


class Memo(Generic[K, V]):
    """A function of one object that nothing changes, called once for each; the objects are kept alive."""

    def __init__(self, function: Callable[[K], V], most: int = MOST) -> None:
        self._function, self._most = function, most
        self._known: dict[int, tuple[K, V]] = {}
        self.__doc__ = function.__doc__

    def __call__(self, thing: K) -> V:
        """What the function says of it."""
        known = self._known.get(id(thing))
        if known is not None:
            return known[1]
        found = self._function(thing)
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[id(thing)] = thing, found
        return found
