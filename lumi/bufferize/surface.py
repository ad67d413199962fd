"""What callers and checkpoints see of a plan: its signatures and where its params come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lumi.errors import LumiError
from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import Input, Param, State
from lumi.plan.plan import Binding, Signature

PLANE = "#"
"""Stands between the key of a packed weight and the name of a plane of it."""


def inputs(graph: Graph) -> tuple[Signature, ...]:
    """The inputs that a graph reads."""
    found = ((n, n.op) for n in graph.nodes if isinstance(n.op, Input))
    return tuple(Signature(op.name, n.dtype, n.shape, op.most) for n, op in found)


def states(graph: Graph) -> tuple[Signature, ...]:
    """The states of a graph, and the params that a call changes."""
    return tuple(
        Signature(n.op.key, n.dtype, n.shape)
        for n in graph.nodes
        if isinstance(n.op, State) or (isinstance(n.op, Param) and n.op.key in graph.updates)
    )


def outputs(graph: Graph) -> tuple[Signature, ...]:
    """The outputs of a graph."""
    return tuple(Signature(name, n.dtype, n.shape) for name, n in graph.outputs.items())


def bindings(graphs: Sequence[Graph], packing: Mapping[str, str]) -> tuple[Binding, ...]:
    """The params of all graphs, each once; `packing` names the block format of packed keys.

    Raises `LumiError` for a param whose shape depends on a dim.
    """
    found: dict[str, Binding] = {}
    for graph in graphs:
        for node in graph.nodes:
            if isinstance(node.op, Param):
                found.setdefault(node.op.key, _binding(node, node.op, packing))
    return tuple(found.values())


def _binding(node: Node, param: Param, packing: Mapping[str, str]) -> Binding:
    shape = tuple(z for z in node.shape if isinstance(z, int))
    if len(shape) != len(node.shape):
        raise LumiError(
            "shape error",
            f"param {param.key} has the shape [{' '.join(map(str, node.shape))}]",
            node.span,
            hint="a param's shape may not depend on a dim: weights have one size",
        )
    key, mark, plane = param.key.partition(PLANE)
    if mark and key in packing:
        return Binding(param.key, key, node.dtype, shape, packing[key], plane, param.init)
    return Binding(param.key, param.key, node.dtype, shape, init=param.init)
