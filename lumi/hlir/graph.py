"""Nodes and graphs: plain immutable data.  `builder` makes them, passes read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lumi.dim import DimRange, Extent
from lumi.dtype import DType
from lumi.errors import Span
from lumi.hlir.op import LEAVES, Input, Op, State, Update, View

RING = 1 << 30
"""Starts in a ring, if nothing else is known of them: i32 holds what is added to one."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape of a value."""

    dtype: DType
    shape: tuple[Extent, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __str__(self) -> str:
        """`f32 [batch (+ past seq)]`."""
        return f"{self.dtype} [{' '.join(map(str, self.shape))}]"


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One operation.  Equal nodes are one object (hash-consed), so identity is equality.

    `id` counts in creation order, which is a topological order.  `scope` is the path of layers it was
    made in ("model/layers.0/self_attn"), empty for leaves.  `span` is where the source made it first.
    """

    id: int
    op: Op
    inputs: tuple[Node, ...]
    type: TensorType
    scope: str
    span: Span | None

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The shape of its type."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """The dtype of its type."""
        return self.type.dtype

    @property
    def is_leaf(self) -> bool:
        """Whether it has no inputs: an input, param, state, const, symbol or iota."""
        return isinstance(self.op, LEAVES)

    def __repr__(self) -> str:
        return f"%{self.id}:{type(self.op).__name__}:{self.type}"


@dataclass(frozen=True, slots=True)
class Graph:
    """A model: what it reads, what it returns, what it leaves in its states.

    `outputs` maps names to nodes.  `updates` maps a state's key to its value after the call.
    `dims` holds every declared dim that the graph mentions.
    """

    name: str
    nodes: tuple[Node, ...]
    outputs: Mapping[str, Node]
    updates: Mapping[str, Node]
    dims: Mapping[str, DimRange]
    doc: str = ""

    def leaves(self, kind: type) -> list[Node]:
        """The leaves whose op is a `kind`, in order."""
        return [n for n in self.nodes if isinstance(n.op, kind)]

    def roots(self) -> list[Node]:
        """Outputs and state updates: everything a call must compute."""
        return [*self.outputs.values(), *self.updates.values()]


def reachable(roots: Iterable[Node]) -> list[Node]:
    """Every node that `roots` depend on, in topological order."""
    found: dict[int, Node] = {}
    todo = list(roots)
    while todo:
        node = todo.pop()
        if node.id not in found:
            found[node.id] = node
            todo.extend(node.inputs)
    return [found[i] for i in sorted(found)]


def users(nodes: Iterable[Node]) -> dict[int, list[Node]]:
    """Readers of each node, by id."""
    table: dict[int, list[Node]] = {}
    for node in nodes:
        for source in node.inputs:
            table.setdefault(source.id, []).append(node)
    return table


def state_of(node: Node) -> State | None:
    """The state that a chain of updates writes, or None when it does not start at one."""
    while isinstance(node.op, Update):
        node = node.inputs[0]
    return node.op if isinstance(node.op, State) else None


def starts(update: Node) -> Extent:
    """How many starts an update with starts of its own may have: those from 0 on that it is clamped into.

    They are those of the input that gives them, if it tells, else all at which the new part fits.
    """
    x, y, given = update.inputs
    assert isinstance(update.op, Update)
    source = under_views(given)
    if isinstance(source.op, Input) and source.op.most is not None:
        return source.op.most + 1
    return RING if update.op.wrap else x.shape[update.op.axis] - y.shape[update.op.axis] + 1


def under_views(node: Node) -> Node:
    """What a chain of views looks at."""
    while isinstance(node.op, View):
        node = node.inputs[0]
    return node


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, each once, inputs first."""
    yield from reachable([node])
