"""The small models against numpy, and what holds for every model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lumi import paths
from lumi.errors import Source
from lumi.hlir import text
from lumi.hlir.graph import Graph
from lumi.hlir.reference import evaluate
from lumi.interpreter.module import Module, load
from lumi.interpreter.trace import trace
from tests.language import Array, random_params
from tests.stdlib.test_attention import attention
from tests.stdlib.test_conv import convolution

FILES = sorted(paths.data("models").glob("*.lumi"))


def module_of(path: Path) -> Module:
    return load(Source(str(path), path.read_text()))


def model(name: str, entry: str | None = None, **config: Any) -> Graph:
    return trace(module_of(paths.data("models") / f"{name}.lumi"), entry, config=config)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_model_loads_without_a_warning_and_reads_back(path: Path) -> None:
    module = module_of(path)
    assert module.warnings == ()
    for entry, function in module.models.items():
        graph = trace(module, entry)
        assert function.doc.endswith(".") and graph.doc == function.doc
        shown = text.show(graph)
        assert text.show(text.parse(Source(path.name, shown))) == shown


@pytest.mark.parametrize("entry", ["bidirectional", "causal", "ragged"])
def test_attention_graph(entry: str, golden: Callable[..., None]) -> None:
    golden(text.show(model("attention", entry, heads=4, kv_heads=2, width=16)), ".lumi", name=entry)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_mlp_equals_numpy(batch: int) -> None:
    graph = model("mlp", width=6, hidden=8, classes=3)
    p = random_params(graph)
    x = np.random.default_rng(batch).standard_normal((batch, 6)).astype(np.float32)
    hidden = np.maximum(x @ p["up.weight"].T.astype(np.float64) + p["up.bias"], 0)
    want = softmax(hidden @ p["down.weight"].T + p["down.bias"])
    found = evaluate(graph, {**p, "x": x}, {"batch": batch})["out"]
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def test_convnet_equals_numpy() -> None:
    graph = model("convnet", size=12, channels=4, classes=3)
    p = random_params(graph)
    x = np.random.default_rng(0).standard_normal((2, 1, 12, 12)).astype(np.float32)
    y = convolution(x, p["conv1.weight"], 2, 1, 1, 1) + p["conv1.bias"][:, None, None]
    y = convolution(np.maximum(y, 0), p["conv2.weight"], 1, 1, 1, 1) + p["conv2.bias"][:, None, None]
    y = np.maximum(y, 0).reshape(2, 8, 3, 2, 3, 2).max((3, 5)).reshape(2, -1)
    want = softmax(y @ p["head.weight"].T + p["head.bias"])
    found = evaluate(graph, {**p, "image": x}, {"batch": 2})["out"]
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)


def attention_inputs(seq: int, keys: int, heads: int, kv_heads: int) -> dict[str, Array]:
    rng = np.random.default_rng(seq)
    shapes = {"q": (1, heads, seq, 8), "k": (1, kv_heads, keys, 8), "v": (1, kv_heads, keys, 8)}
    return {name: rng.standard_normal(s).astype(np.float32) for name, s in shapes.items()}


@pytest.mark.parametrize("seq", [1, 2, 33, 64, 130])
@pytest.mark.parametrize("kv_heads", [1, 4])
@pytest.mark.parametrize("window", [None, 1, 7])
def test_causal_attention_equals_numpy(seq: int, kv_heads: int, window: int | None) -> None:
    x = attention_inputs(seq, seq, 4, kv_heads)
    graph = model("attention", "causal", heads=4, kv_heads=kv_heads, width=8, window=window)
    i, j = np.arange(seq)[:, None], np.arange(seq)[None]
    seen = (j <= i) & (i - j < (window or seq))
    found = evaluate(graph, x, {"seq": seq})["out"]
    np.testing.assert_allclose(found, attention(**x, seen=seen), atol=2e-5)


@pytest.mark.parametrize(("seq", "keys"), [(1, 1), (5, 3), (3, 130)])
def test_bidirectional_attention_equals_numpy(seq: int, keys: int) -> None:
    x = attention_inputs(seq, keys, 4, 2)
    graph = model("attention", "bidirectional", heads=4, kv_heads=2, width=8)
    found = evaluate(graph, x, {"seq": seq, "keys": keys})["out"]
    np.testing.assert_allclose(found, attention(**x, seen=np.ones((1, 1))), atol=2e-5)


@pytest.mark.parametrize("length", [0, 1, 6, 9])
def test_attention_to_no_key_is_0(length: int) -> None:
    x = attention_inputs(4, 9, 4, 4)
    graph = model("attention", "ragged", heads=4, kv_heads=4, width=8)
    found = evaluate(graph, x, {"seq": 4, "keys": 9, "length": length})["out"]
    np.testing.assert_allclose(found, attention(**x, seen=np.arange(9)[None] < length), atol=2e-5)
    assert np.any(found) == (length > 0)
