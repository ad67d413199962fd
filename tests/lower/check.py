"""Lowers a graph, evaluates its regions, and compares them with the reference of HLIR."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lumi import dim
from lumi.dtype import DType, from_memory, to_memory
from lumi.errors import Source
from lumi.field.evaluate import evaluate_regions
from lumi.field.region import Region
from lumi.field.text import parse, show
from lumi.hlir import reference
from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import Input, Param, State
from lumi.lower.lower import lower
from lumi.lower.order import results

Arrays = dict[str, np.ndarray]


def check(
    graph: Graph,
    arrays: Mapping[str, np.ndarray],
    dims: Mapping[str, int] | None = None,
    *,
    wide: bool = True,
    tolerance: float = 1e-10,
) -> list[Region]:
    """The regions of a graph, after their values have been compared with the reference's.

    Floats may differ by `tolerance` times the largest finite magnitude; everything else not at all.
    """
    dims = dict(dims or {})
    want = reference.evaluate(graph, arrays, dims, wide=wide)
    regions = lower(graph)
    held = memory(graph, arrays, dims)
    evaluate_regions(regions, held, dims, wide=wide)
    found = results(graph)
    for name, node in graph.outputs.items():
        same(held[found.outputs[name]], want[name], node, tolerance)
    for key, node in graph.updates.items():
        same(held[found.updates[key]], want[key], node, tolerance)
    for region in regions:
        assert parse(Source("region", show(region))) == region
    return regions


def memory(graph: Graph, arrays: Mapping[str, np.ndarray], dims: Mapping[str, int]) -> Arrays:
    """The buffers of a call: copies of what is given, zeros for other states, params at their `init`."""
    held: Arrays = {}
    for node in graph.nodes:
        shape = tuple(dim.value(z, dims) for z in node.shape)
        match node.op:
            case Input(name) | State(name) | Param(name) if name in arrays:
                held[name] = stored(np.asarray(arrays[name]), node.dtype).reshape(shape)
            case Param(key, init):
                held[key] = stored(np.full(shape, init or 0.0), node.dtype)
            case State(key):
                held[key] = np.zeros(shape, node.dtype.numpy)
            case _:
                pass
    return held


def stored(array: np.ndarray, dtype: DType) -> np.ndarray:
    """A copy of an array as the memory of a call holds it: narrow floats are rounded, others as wide."""
    if dtype.is_raw:
        return to_memory(array, dtype)
    with np.errstate(over="ignore"):
        return array.copy() if dtype.is_float and not dtype.is_narrow else array.astype(dtype.storage)


def same(got: np.ndarray, want: np.ndarray, node: Node, tolerance: float) -> None:
    """Fail unless two arrays of a node's values agree."""
    assert got.size == want.size, (got.shape, want.shape)
    if not node.dtype.is_float:
        np.testing.assert_array_equal(got.reshape(want.shape), want)
        return
    if node.dtype.is_raw and got.dtype == node.dtype.storage:
        got = from_memory(got, node.dtype)
    with np.errstate(invalid="ignore"):  # signalling NaN
        x, y = (np.asarray(v, np.float64).reshape(want.shape) for v in (got, want))
    finite = np.isfinite(y)
    scale = np.abs(y[finite]).max() if finite.any() else 1.0
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * max(float(scale), 1e-300))
