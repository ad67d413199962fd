"""Along which dimensions values vary, and which sums are contractions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lumi.hlir.graph import Node
from lumi.hlir.op import (
    Affine,
    Binary,
    BinaryKind,
    Bitcast,
    Cast,
    Const,
    Monoid,
    Reduce,
    Reshape,
    Scan,
    Select,
    Symbol,
    Unary,
    View,
)
from lumi.lower.reshape import groups


def varying(nodes: Iterable[Node], memory: Mapping[int, str]) -> dict[int, frozenset[int]]:
    """The dimensions along which each node is not a mere broadcast; all of them for what is in memory.

    `nodes` has inputs first; what stands below a node in memory may be missing.
    """
    found: dict[int, frozenset[int]] = {}
    for node in nodes:
        wide = frozenset(k for k, z in enumerate(node.shape) if z != 1)
        known = node.id not in memory and all(i.id in found for i in node.inputs)
        found[node.id] = _varying(node, found) & wide if known else wide
    return found


def _varying(node: Node, found: Mapping[int, frozenset[int]]) -> frozenset[int]:
    wide = frozenset(range(node.type.rank))
    match node.op:
        case Const() | Symbol():
            return frozenset()
        case Unary() | Binary() | Select() | Cast():
            return frozenset().union(*(found[i.id] for i in node.inputs))
        case Reduce(_, axes):
            source = node.inputs[0]
            kept = [k for k in range(source.type.rank) if k not in axes]
            return frozenset(o for o, k in enumerate(kept) if k in found[source.id])
        case Bitcast():
            return found[node.inputs[0].id] | {node.type.rank - 1}
        case Scan(_, axis):
            return found[node.inputs[0].id] | {axis}
        case View(Affine(rows, fill)):
            if fill is not None:
                return wide
            below = found[node.inputs[0].id]
            return frozenset(o for k, row in enumerate(rows) if k in below for o, _ in row.terms)
        case View(Reshape()):
            below = found[node.inputs[0].id]
            found_groups = groups(node.inputs[0].shape, node.shape)
            return frozenset(o for g in found_groups if not below.isdisjoint(g.before) for o in g.after)
        case _:
            return wide


def contractions(nodes: Iterable[Node], varies: Mapping[int, frozenset[int]]) -> frozenset[int]:
    """The sums of products whose factors vary over different kept dimensions: costly to compute twice."""
    return frozenset(n.id for n in nodes if isinstance(n.op, Reduce) and _is_contraction(n, n.op, varies))


def _is_contraction(node: Node, op: Reduce, varies: Mapping[int, frozenset[int]]) -> bool:
    product = node.inputs[0]
    while isinstance(product.op, Cast):
        product = product.inputs[0]
    if op.kind is not Monoid.SUM or product.op != Binary(BinaryKind.MUL):
        return False
    if any(i.id not in varies for i in product.inputs):
        return False
    kept = frozenset(range(product.type.rank)) - frozenset(op.axes)
    a, b = (varies[i.id] for i in product.inputs)
    return product.inputs[0] is not product.inputs[1] and bool(a and b) and a & kept != b & kept
