"""models/gemma3.lumi at a small configuration against a plain numpy decoder without a cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lumi import paths
from lumi.errors import Source
from lumi.hlir.graph import Graph
from lumi.hlir.op import Param, State
from lumi.hlir.reference import evaluate
from lumi.interpreter.module import Module, load
from lumi.interpreter.trace import trace
from tests.language import Array, random_params

FILE = paths.data("models") / "gemma3.lumi"
SMALL: dict[str, Any] = {
    "batch": 2,
    "layers": 3,
    "width": 32,
    "heads": 4,
    "kv-heads": 2,
    "head-dim": 8,
    "hidden": 48,
    "vocab": 97,
    "context": 24,
    "window": 5,
    "pattern": 3,
    "unit-offset": True,
    "last-only": False,
}
TOKENS = np.random.default_rng(1).integers(0, SMALL["vocab"], (2, 12)).astype(np.int32)


@pytest.fixture(scope="module")
def module() -> Module:
    return load(Source(str(FILE), Path(FILE).read_text()))


def norm(x: Array, weight: Array, offset: float) -> Array:
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-6) * (offset + weight)


def attention(x: Array, w: dict[str, Array], c: dict[str, Any], is_global: bool) -> Array:
    batch, length, _ = x.shape
    heads, kv_heads, d = c["heads"], c["kv-heads"], c["head-dim"]
    offset = float(c["unit-offset"])
    position = np.arange(length)
    rate = (1e6 if is_global else 1e4) ** (-np.arange(d // 2) * 2 / d)
    angle = position[:, None] * np.concatenate([rate, rate])
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]

    def rotate(t: Array) -> Array:
        return t * cos + np.concatenate([-t[..., d // 2 :], t[..., : d // 2]], -1) * sin

    def project(name: str, count: int) -> Array:
        return (x @ w[f"self_attn.{name}.weight"].T).reshape(batch, length, count, d)

    q = rotate(norm(project("q_proj", heads), w["self_attn.q_norm.weight"], offset))
    k = rotate(norm(project("k_proj", kv_heads), w["self_attn.k_norm.weight"], offset))
    v = project("v_proj", kv_heads)
    k, v = (np.repeat(t, heads // kv_heads, 2) for t in (k, v))
    scores = np.einsum("bihd,bjhd->bhij", q, k) / np.sqrt(d)
    seen = position[None] <= position[:, None]
    if not is_global:
        seen = seen & (position[:, None] - position[None] < c["window"])
    scores = np.where(seen, scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return np.einsum("bhij,bjhd->bihd", p, v).reshape(batch, length, -1) @ w["self_attn.o_proj.weight"].T


def mlp(x: Array, w: dict[str, Array]) -> Array:
    gate, up = x @ w["mlp.gate_proj.weight"].T, x @ w["mlp.up_proj.weight"].T
    gelu = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
    return (gelu * up) @ w["mlp.down_proj.weight"].T


def decoder(tokens: Array, params: dict[str, Array], c: dict[str, Any]) -> Array:
    """Logits [batch length vocab] in f64, the whole sequence at once."""
    wide = {k: v.astype(np.float64) for k, v in params.items()}
    offset = float(c["unit-offset"])
    table = wide["model.embed_tokens.weight"]
    x = table[tokens] * np.sqrt(c["width"])
    for layer in range(c["layers"]):
        prefix = f"model.layers.{layer}."
        w = {k.removeprefix(prefix): v for k, v in wide.items() if k.startswith(prefix)}
        y = attention(norm(x, w["input_layernorm.weight"], offset), w, c, (layer + 1) % c["pattern"] == 0)
        x = x + norm(y, w["post_attention_layernorm.weight"], offset)
        y = mlp(norm(x, w["pre_feedforward_layernorm.weight"], offset), w)
        x = x + norm(y, w["post_feedforward_layernorm.weight"], offset)
    return norm(x, wide["model.norm.weight"], offset) @ table.T


def call(graph: Graph, params: dict[str, Array], states: dict[str, Array], past: int, stop: int) -> Array:
    """The logits of tokens past … stop - 1; `states` is left as the call leaves it."""
    arrays = {**params, **states, "tokens": TOKENS[:, past:stop]}
    found = evaluate(graph, arrays, {"seq": stop - past, "past": past}, wide=True)
    logits = found.pop("logits")
    states.update(found)
    return logits


@pytest.mark.parametrize("unit_offset", [True, False])
def test_prefill_then_steps_equal_the_whole_sequence(module: Module, unit_offset: bool) -> None:
    config = {**SMALL, "unit-offset": unit_offset}
    general = trace(module, config=config)
    step = trace(module, config=config, bind={"seq": 1})
    params = random_params(general)
    want = decoder(TOKENS, params, config)
    states: dict[str, Array] = {}
    for past, stop in ((0, 6), (6, 7), (7, 8), (8, 11), (11, 12)):
        graph = step if stop - past == 1 else general
        logits = call(graph, params, states, past, stop)
        np.testing.assert_allclose(logits, want[:, past:stop], rtol=0, atol=1e-6 * np.abs(want).max())


def test_nan_in_the_unused_cache_is_not_read(module: Module) -> None:
    graph = trace(module, config=SMALL)
    params = random_params(graph)
    states = {
        n.op.key: np.full([int(z) for z in n.shape if isinstance(z, int)], np.nan)
        for n in graph.leaves(State)
        if isinstance(n.op, State)
    }
    want = decoder(TOKENS, params, SMALL)
    for past, stop in ((0, 7), (7, 12)):
        logits = call(graph, params, states, past, stop)
        np.testing.assert_allclose(logits, want[:, past:stop], rtol=0, atol=1e-6 * np.abs(want).max())


def test_last_position_alone_is_returned(module: Module) -> None:
    every = trace(module, config=SMALL)
    last = trace(module, config={**SMALL, "last-only": True})
    params = random_params(every)
    want = call(every, params, {}, 0, 7)[:, -1:]
    np.testing.assert_allclose(call(last, params, {}, 0, 7), want, rtol=1e-12)


def test_bf16_stays_near_f32(module: Module) -> None:
    graph = trace(module, config={**SMALL, "dtype": "bf16"})
    assert {n.dtype.name for n in graph.leaves(Param)} == {"bf16"}
    assert {n.dtype.name for n in graph.leaves(State)} == {"bf16"}
    params = random_params(graph)
    want = decoder(TOKENS[:, :7], params, SMALL)
    logits = call(graph, params, {}, 0, 7)
    assert np.abs(logits.astype(np.float64) - want).max() < 0.1 * np.abs(want).max()


def test_keys_are_those_of_the_checkpoint(module: Module) -> None:
    graph = trace(module)
    keys = {n.op.key: n.shape for n in graph.leaves(Param) if isinstance(n.op, Param)}
    assert len(keys) == 2 + 18 * 13
    assert keys["model.embed_tokens.weight"] == (262144, 640)
    assert keys["model.norm.weight"] == (640,)
    shapes = {
        "self_attn.q_proj": (1024, 640),
        "self_attn.k_proj": (256, 640),
        "self_attn.v_proj": (256, 640),
        "self_attn.o_proj": (640, 1024),
        "self_attn.q_norm": (256,),
        "self_attn.k_norm": (256,),
        "mlp.gate_proj": (2048, 640),
        "mlp.up_proj": (2048, 640),
        "mlp.down_proj": (640, 2048),
        "input_layernorm": (640,),
        "post_attention_layernorm": (640,),
        "pre_feedforward_layernorm": (640,),
        "post_feedforward_layernorm": (640,),
    }
    for layer in (0, 17):
        for name, shape in shapes.items():
            assert keys[f"model.layers.{layer}.{name}.weight"] == shape


def test_scopes_begin_with_the_regions(module: Module) -> None:
    graph = trace(module, config={"layers": 2}, bind={"seq": 1})
    regions = dict.fromkeys(n.scope.split("/")[0] for n in graph.nodes if not n.is_leaf)
    assert list(regions) == ["embed", "rope", "model.layers.0", "model.layers.1", "head"]


def test_layers_of_one_kind_trace_alike(module: Module) -> None:
    graph = trace(module)
    counts: dict[str, int] = {}
    for node in graph.nodes:
        region = node.scope.split("/")[0]
        if region.startswith("model.layers."):
            counts[region] = counts.get(region, 0) + 1
    near = {counts[f"model.layers.{i}"] for i in range(2, 18) if i % 6 != 5}
    assert len(near) == 1
