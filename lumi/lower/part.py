"""A part: what one region has to compute, before it has axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from lumi.hlir.graph import Node
from lumi.hlir.op import Const, Input, Param, State


class Rooted(Enum):
    """How a root comes into memory."""

    VALUE = auto()
    """It is computed here, stored, and read from memory by everyone else."""
    WRITE = auto()
    """An update, written into the buffer of its state."""
    COPY = auto()
    """A copy of a value that its readers do not need: a view, a free value, a state."""


@dataclass(frozen=True, slots=True)
class Root:
    """A node that a part must leave in memory."""

    node: Node
    kind: Rooted


@dataclass(frozen=True, slots=True)
class Part:
    """Roots, and all nodes below them down to what is in memory.

    `nodes` has inputs first and is numbered by first use, so that equal parts of a graph have equal
    positions.  `memory` names the buffer of every node that is read from memory; `owned` are the nodes
    that no other part computes.  Values that a part stores for itself get names that end in `.number`
    unless it owns them.
    """

    number: int
    scope: str
    nodes: tuple[Node, ...]
    roots: tuple[Root, ...]
    memory: Mapping[int, str]
    owned: frozenset[int]

    def buffer(self, node: Node, copy: bool = False) -> str:
        """The buffer that holds a node, or the copy of it."""
        if not copy and node.id in self.memory:
            return self.memory[node.id]
        return f"%{node.id}" if copy or node.id in self.owned else f"%{node.id}.{self.number}"

    def fingerprint(self) -> tuple[object, ...]:
        """Equal for parts that differ only in names, scopes and the numbers of nodes."""
        positions = {node.id: k for k, node in enumerate(self.nodes)}
        roots = {root.node.id: root.kind for root in self.roots}
        names: dict[str, int] = {}
        entries: list[object] = []
        for node in self.nodes:
            inside = node.id not in self.memory or node.id in roots
            place = names.setdefault(self.memory[node.id], len(names)) if node.id in self.memory else -1
            op = _signature(node) if inside else "memory"
            below = tuple(positions.get(i.id, -1) for i in node.inputs) if inside else ()
            entries.append((op, below, node.type, place))
        return tuple(entries), tuple((positions[r.node.id], r.kind) for r in self.roots)


def _signature(node: Node) -> object:
    match node.op:
        case Input() | Param() | State():
            return "memory"
        case Const(value):
            return "const", repr(value)
        case op:
            return op


def collect(
    roots: Iterable[Root], memory: Callable[[Node], str | None]
) -> tuple[tuple[Node, ...], dict[int, str]]:
    """Every node below the roots, inputs first, and the buffers of those in memory.

    `memory` names the buffer of a node; what is below such a node is left out, unless it is a root.
    """
    done: dict[int, Node] = {}
    names: dict[int, str] = {}
    for root in roots:
        todo: list[tuple[Node, bool]] = [(root.node, False)]
        while todo:
            node, ready = todo.pop()
            if node.id in done:
                continue
            if ready:
                done[node.id] = node
                continue
            name = memory(node)
            if name:
                names[node.id] = name
            todo.append((node, True))
            todo.extend((i, False) for i in reversed(_below(node, root, name)))
    return tuple(done.values()), names


def _below(node: Node, root: Root, name: str | None) -> tuple[Node, ...]:
    if node is root.node and root.kind is not Rooted.COPY:
        return node.inputs[1:] if root.kind is Rooted.WRITE else node.inputs
    return () if name else node.inputs
