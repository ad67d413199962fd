"""models/llama.lumi against Transformers, on the checkpoints of `oracles/make_llama.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lumi import inspect, paths
from lumi.compiler import Options, Stage, compile_model
from lumi.errors import Source
from lumi.hlir.graph import Graph
from lumi.hlir.op import Param, State
from lumi.hlir.reference import evaluate
from lumi.interpreter.module import Module, load
from lumi.interpreter.trace import trace
from lumi.runtime.generate import Limits, generate
from lumi.runtime.session import Session
from lumi.runtime.weights import open_weights
from lumi.search.settings import Settings
from tests.language import Array, random_params

FILE = paths.data("models") / "llama.lumi"
FOLDER = Path(__file__).parent.parent / "oracles" / "llama"
CASES = ("plain", "stretched", "biased")
CONTEXT = 32
BRIEF = Settings(evaluations=80)
TARGETS = ("cpu", pytest.param("cuda", marks=pytest.mark.cuda))
SMALL: dict[str, Any] = {
    "layers": 2,
    "width": 32,
    "heads": 4,
    "kv-heads": 2,
    "hidden": 48,
    "vocab": 97,
    "context": 24,
    "last-only": False,
}


@pytest.fixture(scope="module")
def module() -> Module:
    return load(Source(FILE.name, FILE.read_text()))


def oracle(case: str) -> dict[str, Any]:
    """Tokens, logits of the whole sequence, greedy tokens behind it."""
    found: dict[str, Any] = json.loads((FOLDER / f"{case}.json").read_text())
    return found


@cache
def session_of(case: str, target: str, dtype: str = "f32") -> Session:
    """The model as compiled for a checkpoint folder, which states its configuration."""
    config = {"context": CONTEXT, "dtype": dtype, "last-only": False}
    options = Options(weights=FOLDER / case, config=config, target=target, settings=BRIEF)
    plan = compile_model(Source(FILE.name, FILE.read_text()), options).plan
    assert plan is not None
    return Session(plan, FOLDER / case)


def call(graph: Graph, arrays: dict[str, Array], states: dict[str, Array], tokens: Any, past: int) -> Array:
    """The logits of a call of the reference; `states` is left as the call leaves it."""
    given = {**arrays, **states, "tokens": np.asarray([tokens], np.int32)}
    found = evaluate(graph, given, {"seq": len(tokens), "past": past}, wide=True)
    logits = found.pop("logits")
    states.update(found)
    return logits[0]


SPANS = ((0, 6), (6, 7), (7, 8), (8, 12), (12, 13))
"""Calls of several tokens and of one, in turn."""


@pytest.mark.parametrize("case", CASES)
def test_definition_equals_transformers(module: Module, case: str) -> None:
    weights, told = open_weights(FOLDER / case), oracle(case)
    config = weights.config() | {"context": CONTEXT, "dtype": "f32", "last-only": False}
    graph, step = (trace(module, config=config, bind=bind) for bind in ({}, {"seq": 1}))
    params = {
        n.op.key: weights.array(n.op.key, n.dtype) for n in graph.leaves(Param) if isinstance(n.op, Param)
    }
    assert set(params) == set(weights.keys())
    states: dict[str, Array] = {}
    for past, stop in SPANS:
        found = call(step if stop == past + 1 else graph, params, states, told["tokens"][past:stop], past)
        np.testing.assert_allclose(found, told["logits"][past:stop], rtol=0, atol=3e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_compiled_model_equals_transformers(case: str, target: str) -> None:
    session, told = session_of(case, target), oracle(case)
    for spans in (((0, 13),), SPANS):
        session.reset()
        for past, stop in spans:
            found = session(tokens=[told["tokens"][past:stop]], past=past)["logits"][0]
            np.testing.assert_allclose(found, told["logits"][past:stop], rtol=0, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_greedy_chain_equals_transformers(case: str, target: str) -> None:
    told = oracle(case)
    found = generate(session_of(case, target), told["tokens"], limits=Limits(len(told["greedy"]))).run()
    assert found.tokens == told["greedy"]


@pytest.mark.parametrize("target", TARGETS)
def test_bf16_weights_stay_near_f32(target: str) -> None:
    told = oracle("plain")
    found = session_of("plain", target, "bf16")(tokens=[told["tokens"]], past=0)["logits"][0]
    want = np.asarray(told["logits"])
    assert 0 < np.linalg.norm(found - want) < 2e-2 * np.linalg.norm(want)


def test_operands_are_rounded_unless_told_otherwise(module: Module) -> None:
    rounded, plain, narrow = (
        trace(module, config=SMALL | config)
        for config in ({}, {"operands": "f32"}, {"dtype": "f32", "operands": "bf16"})
    )
    params, tokens = random_params(rounded), list(range(3, 14))
    found, want = (call(graph, params, {}, tokens, 0) for graph in (rounded, plain))
    wide = {k: v.astype(np.float32) for k, v in params.items()}
    assert 0 < np.linalg.norm(found - want) < 1e-2 * np.linalg.norm(want)
    assert np.linalg.norm(call(narrow, wide, {}, tokens, 0) - want) < 2e-2 * np.linalg.norm(want)


def test_nan_in_the_unused_cache_is_not_read(module: Module) -> None:
    graph = trace(module, config=SMALL)
    params = random_params(graph)
    tokens = list(range(7))
    filled = {
        n.op.key: np.full([int(z) for z in n.shape if isinstance(z, int)], np.nan, n.dtype.numpy)
        for n in graph.leaves(State)
        if isinstance(n.op, State)
    }
    want = call(graph, params, {}, tokens, 0)
    np.testing.assert_array_equal(call(graph, params, filled, tokens, 0), want)


@pytest.mark.parametrize("stored", ["bf16", "f32"])
@pytest.mark.parametrize("compute", ["bf16", "f32"])
def test_dtypes_follow_the_configuration(module: Module, stored: str, compute: str) -> None:
    graph = trace(module, config=SMALL | {"dtype": stored, "compute": compute})
    assert {n.dtype.name for n in graph.leaves(Param)} == {stored}
    assert {n.dtype.name for n in graph.leaves(State)} == {stored}
    assert graph.outputs["logits"].dtype.name == compute
    exact = trace(module, config=SMALL | {"dtype": "f32"})
    params = random_params(graph)
    wide = {k: v.astype(np.float32) for k, v in params.items()}
    tokens = list(range(3, 14))
    want = call(exact, wide, {}, tokens, 0)
    found = call(graph, params, {}, tokens, 0).astype(np.float64)
    assert np.linalg.norm(found - want) < 3e-2 * np.linalg.norm(want)


def test_factors_of_gguf_files_divide_the_rates(module: Module) -> None:
    plain, factored = (trace(module, config=SMALL | {"dtype": "f32", "factored": f}) for f in (False, True))
    params = random_params(plain)
    tokens = list(range(9))
    want = call(plain, params, {}, tokens, 0)
    one, two = (
        call(factored, {**params, "rope_freqs.weight": np.full(4, f, np.float32)}, {}, tokens, 0)
        for f in (1.0, 2.0)
    )
    np.testing.assert_allclose(one, want, rtol=0, atol=1e-6 * np.abs(want).max())
    assert np.abs(two - want).max() > 1e-3 * np.abs(want).max()


def test_keys_and_shapes_are_those_of_the_checkpoint(module: Module) -> None:
    graph = trace(module)
    keys = {n.op.key: n.shape for n in graph.leaves(Param) if isinstance(n.op, Param)}
    assert len(keys) == 3 + 32 * 9
    assert keys["model.embed_tokens.weight"] == keys["lm_head.weight"] == (128256, 4096)
    assert keys["model.layers.31.self_attn.k_proj.weight"] == (1024, 4096)
    assert keys["model.layers.31.mlp.down_proj.weight"] == (4096, 14336)


def test_layers_are_one_region(module: Module, golden: Callable[..., None]) -> None:
    config = SMALL | {"width": 64, "hidden": 128, "last-only": True}  # wide enough for steps of their own
    options, source = Options(config=config, settings=BRIEF), Source(FILE.name, FILE.read_text())
    lowered = compile_model(source, options, Stage.FIELDS)
    layers = [(v, r) for v in lowered.variants for r in v.regions if r.scope.startswith("model.layers.")]
    assert len(layers) == 6
    assert len({v.key(r) for v, r in layers}) == 3
    golden(inspect.show(lowered, Stage.HLIR), name="hlir")
    work = compile_model(source, options)
    assert len(work.variants) == 2
    golden(inspect.show(work, Stage.KERNELS), name="kernels")
