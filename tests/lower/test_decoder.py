"""A whole decoder: lowered, evaluated step by step, and compared with plain numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lumi import dim
from lumi.field.evaluate import evaluate_regions
from lumi.field.region import Region
from lumi.field.text import show
from lumi.hlir import reference
from lumi.hlir.graph import Graph
from lumi.lower.lower import lower
from lumi.lower.order import results
from tests.lower.check import Arrays, memory
from tests.lower.decoder import Config, caches, decoder, plain, weights

SEQ = dim.var("seq")


def step(graph: Graph, regions: list[Region], held: Arrays, dims: dict[str, int]) -> np.ndarray:
    """One call on `held`, whose states move on; the logits."""
    called = memory(graph, held, dims)
    evaluate_regions(regions, called, dims)
    for key in graph.updates:
        held[key] = called[results(graph).updates[key]]
    return called[results(graph).outputs["logits"]]


def error(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.abs(got - want).max() / np.abs(want).max())


@pytest.mark.parametrize(
    "config", [Config(), Config(packed=True), Config(batch=1, kv_heads=1)], ids=["f32", "q8", "one"]
)
def test_prefill_and_steps_equal_plain_numpy(config: Config) -> None:
    w = weights(config)
    tokens = np.random.default_rng(1).integers(0, config.vocab, (config.batch, 10)).astype(np.int32)
    want = plain(config, w, tokens)
    prefill, decode = decoder(config, SEQ), decoder(config, 1)
    plans = {id(g): lower(g) for g in (prefill, decode)}
    held: Arrays = {**w, **caches(config)}
    for low, high, graph in [
        (0, 4, prefill),
        (4, 5, decode),
        (5, 6, decode),
        (6, 7, prefill),
        (7, 10, prefill),
    ]:
        held["tokens"] = tokens[:, low:high]
        dims = {"past": low, "seq": high - low}
        logits = step(graph, plans[id(graph)], held, dims)
        assert error(logits, want[:, low:high]) < 1e-12


def test_rounded_projections_equal_the_reference() -> None:
    config = Config(rounded=True)
    graph, held = decoder(config, SEQ), {**weights(config), **caches(config)}
    held["tokens"] = np.arange(12, dtype=np.int32).reshape(2, 6)
    dims = {"past": 3, "seq": 6}
    want = reference.evaluate(graph, held, dims, wide=True)["logits"]
    assert error(step(graph, lower(graph), held, dims), want) < 1e-6


def test_equal_layers_share_their_region() -> None:
    regions = lower(decoder(Config(layers=6, pattern=3), SEQ))
    assert [r.scope for r in regions] == ["embed", "rope", *(f"layers.{k}" for k in range(6)), "head"]
    near, far = {regions[k].key for k in (2, 3, 5, 6)}, {regions[k].key for k in (4, 7)}
    assert len(near) == len(far) == 1
    assert near != far
    assert len({r.key for r in regions}) == 5


def test_shared_regions_differ_in_their_buffers_alone() -> None:
    regions = lower(decoder(Config(layers=3, pattern=9), 1))
    first, second = regions[2], regions[3]
    assert first.stores is second.stores
    assert [a.replace("layers.0", "layers.1") for a in first.buffers if "layers" in a] == [
        a for a in second.buffers if "layers" in a
    ]
    assert {n.node for n in first.notes}.isdisjoint(n.node for n in second.notes)


def test_packed_embedding_is_unpacked_by_each_reader() -> None:
    regions = {r.scope: r for r in lower(decoder(Config(packed=True), 1))}
    for scope in ("embed", "head"):
        assert {"embed.q", "embed.s"} <= set(regions[scope].buffers)


def test_region_of_a_layer(golden: Callable[..., None]) -> None:
    regions = {r.scope: r for r in lower(decoder(Config(), SEQ))}
    for scope in ("rope", "layers.0", "head"):
        golden(show(regions[scope]), ".lisp", name=scope)
