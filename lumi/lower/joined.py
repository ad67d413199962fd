"""Sets of things that are to be the same."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Joined(Generic[T]):
    """Disjoint sets; each is represented by the member it has had longest."""

    def __init__(self) -> None:
        self._parent: dict[T, T] = {}

    def find(self, x: T) -> T:
        """The representative of the set that `x` is in."""
        parent = self._parent
        root = x
        while (above := parent.setdefault(root, root)) != root:
            root = above
        while (above := parent[x]) != root:
            parent[x], x = root, above
        return root

    def join(self, a: T, b: T) -> None:
        """Make the sets of `a` and `b` one."""
        self._parent[self.find(b)] = self.find(a)
