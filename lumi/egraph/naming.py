"""Names for classes that depend on the contents of an e-graph alone.

A class is named by the hash of its smallest-depth e-node over the names of its children.  So two egglog
versions, or two orders of rules, that reach the same e-graph name its classes alike.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from lumi.egraph.graph import Attribute

Id = TypeVar("Id", bound=Hashable)

Node: TypeAlias = "tuple[str, tuple[Attribute, ...], tuple[Id, ...]]"
"""An operator, its attributes, the classes of its children."""

Name: TypeAlias = "tuple[int, str]"
"""The depth and the hash of a class's smallest e-node; names order classes, children first."""


def names(classes: Mapping[Id, Sequence[Node[Id]]]) -> dict[Id, Name]:
    """The name of every class."""
    return _Namer(classes).run()


class _Namer(Generic[Id]):
    """Dijkstra's algorithm on depths: an e-node is ready when all its children are named."""

    def __init__(self, classes: Mapping[Id, Sequence[Node[Id]]]) -> None:
        self._classes = classes
        self._found: dict[Id, Name] = {}
        self._heap: list[tuple[Name, int]] = []
        self._pushed: list[Id] = []
        self._users: dict[Id, list[tuple[Id, int]]] = defaultdict(list)
        self._missing: dict[tuple[Id, int], int] = {}
        for cls, nodes in classes.items():
            for k, (_, _, children) in enumerate(nodes):
                distinct = set(children)
                self._missing[cls, k] = len(distinct)
                for child in distinct:
                    self._users[child].append((cls, k))

    def run(self) -> dict[Id, Name]:
        """Name classes in the order of depth, and within a depth in that of hashes."""
        for at, count in self._missing.items():
            if not count:
                self._push(*at)
        while self._heap:
            name, position = heapq.heappop(self._heap)
            cls = self._pushed[position]
            if cls in self._found:
                continue
            self._found[cls] = name
            for user in self._users[cls]:
                self._missing[user] -= 1
                if not self._missing[user]:
                    self._push(*user)
        return self._found

    def _push(self, cls: Id, k: int) -> None:
        op, attrs, children = self._classes[cls][k]
        inside = [self._found[c] for c in children]
        text = f"({op} {' '.join([*map(repr, attrs), *(digest for _, digest in inside)])})"
        depth = 1 + max((d for d, _ in inside), default=0)
        name = depth, hashlib.sha256(text.encode()).hexdigest()[:16]
        self._pushed.append(cls)
        heapq.heappush(self._heap, (name, len(self._pushed) - 1))
