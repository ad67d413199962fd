"""Runs pieces of .lumi on numpy arrays, through the interpreter and the HLIR reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lumi.dtype import from_numpy
from lumi.errors import Source
from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import Param
from lumi.hlir.reference import evaluate
from lumi.interpreter.module import load
from lumi.interpreter.trace import trace

Array = np.ndarray[Any, Any]


def graph_of(expression: str, arrays: Mapping[str, Array], definitions: str = "") -> Graph:
    """The graph of an expression over inputs with the dtypes and shapes of `arrays`."""
    inputs = [f"({k} {from_numpy(a.dtype)} [{' '.join(map(str, a.shape))}])" for k, a in arrays.items()]
    text = f"{definitions}\n(defmodel test [{' '.join(inputs)}] {expression})"
    return trace(load(Source("test.lumi", text)))


def run(expression: str, wide: bool = False, definitions: str = "", **arrays: Any) -> Array:
    """The value of an expression; `name` in Python is `name` in Lumi."""
    given = {k: np.asarray(v) for k, v in arrays.items()}
    return evaluate(graph_of(expression, given, definitions), given, {}, wide=wide)["out"]


def run_all(expression: str, **arrays: Any) -> list[Array]:
    """The values of an expression that is a list of tensors."""
    given = {k: np.asarray(v) for k, v in arrays.items()}
    found = evaluate(graph_of(expression, given), given, {})
    return [found[f"out.{i}"] for i in range(len(found))]


def random_params(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Seeded values for every param: products keep their scale, vectors are small."""
    rng = np.random.default_rng(seed)

    def values(node: Node) -> Array:
        shape = tuple(int(z) for z in node.shape if isinstance(z, int))
        scale = 0.2 if len(shape) < 2 else 2 * shape[-1] ** -0.5
        return (rng.standard_normal(shape) * scale).astype(node.dtype.numpy)

    return {n.op.key: values(n) for n in graph.leaves(Param) if isinstance(n.op, Param)}
