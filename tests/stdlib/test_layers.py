"""Layers against numpy, with params under the keys that checkpoints use."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lumi.dtype import round_to_tf32
from lumi.hlir.op import Unary, UnaryKind
from lumi.hlir.reference import evaluate
from tests.language import Array, graph_of, random_params


def run_layer(expression: str, **arrays: Array) -> tuple[Array, dict[str, Array]]:
    """The value of an expression in f64, and the params it was given."""
    graph = graph_of(expression, arrays)
    params = random_params(graph)
    return evaluate(graph, {**params, **arrays}, {}, wide=True)["out"], params


def sample(*shape: int) -> Array:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def test_linear_multiplies_by_the_transpose() -> None:
    x = sample(2, 3, 4)
    y, p = run_layer('(linear x 5 :bias true :name "a")', x=x)
    assert sorted(p) == ["a.bias", "a.weight"]
    np.testing.assert_allclose(y, x @ p["a.weight"].T.astype(np.float64) + p["a.bias"], rtol=1e-6, atol=1e-6)


def test_linear_rounds_what_it_multiplies_to_its_operands() -> None:
    x = sample(2, 3, 4)
    y, p = run_layer('(linear x 5 :operands bf16 :name "a")', x=x)
    rounded = x.astype(ml_dtypes.bfloat16).astype(np.float64)
    np.testing.assert_allclose(y, rounded @ p["a.weight"].T.astype(np.float64), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("layer", "shape", "rounded"),
    [
        ('(linear x 5 {} :name "a")', (2, 4), 2),
        ('(gated-mlp x 6 {} :name "a")', (2, 4), 5),
        ('(convolution x 4 3 {} :name "a")', (1, 2, 5, 5), 2),
        ("(sdpa x y z :causal true {})", (1, 2, 6, 8), 4),
    ],
)
def test_every_factor_is_rounded_to_the_precision(layer: str, shape: tuple[int, ...], rounded: int) -> None:
    given = {name: sample(*shape) for name in "xyz" if f" {name}" in layer}
    for precision, count in (("", 0), (":precision tf32", rounded)):
        graph = graph_of(layer.format(precision), given)
        assert sum(node.op == Unary(UnaryKind.TF32) for node in graph.nodes) == count


def test_linear_multiplies_what_is_rounded_to_its_precision() -> None:
    x = sample(2, 3, 4)
    y, p = run_layer('(linear x 5 :precision tf32 :name "a")', x=x)
    a, w = (round_to_tf32(v.astype(np.float64)) for v in (x, p["a.weight"]))
    np.testing.assert_allclose(y, a @ w.T, rtol=1e-12)


def test_embedding_takes_rows() -> None:
    ids = np.array([[3, 0], [1, 1]], np.int32)
    y, p = run_layer('(embedding ids 4 6 :name "e")', ids=ids)
    np.testing.assert_array_equal(y, p["e.weight"][ids])


def test_gated_mlp() -> None:
    x = sample(2, 4)
    y, p = run_layer('(gated-mlp x 6 :name "mlp")', x=x)
    gate, up, down = (p[f"mlp.{n}_proj.weight"].astype(np.float64) for n in ("gate", "up", "down"))
    g = x @ gate.T
    np.testing.assert_allclose(y, (g / (1 + np.exp(-g)) * (x @ up.T)) @ down.T, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("option", "offset"), [("", 0.0), (":unit-offset true", 1.0)])
def test_rms_norm(option: str, offset: float) -> None:
    x = sample(2, 3, 4)
    y, p = run_layer(f'(rms-norm x :eps 1e-6 {option} :name "n")', x=x)
    want = (
        x / np.sqrt(np.mean(x.astype(np.float64) ** 2, -1, keepdims=True) + 1e-6) * (p["n.weight"] + offset)
    )
    np.testing.assert_allclose(y, want, rtol=1e-5)


def test_layer_norm() -> None:
    x = sample(2, 3, 4)
    y, p = run_layer('(layer-norm x :name "n")', x=x)
    wide = x.astype(np.float64)
    z = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, z * p["n.weight"] + p["n.bias"], rtol=1e-5, atol=1e-6)


def test_group_norm() -> None:
    x = sample(2, 6, 3, 2)
    y, p = run_layer('(group-norm x 3 :name "n")', x=x)
    wide = x.astype(np.float64).reshape(2, 3, -1)
    z = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    want = z.reshape(x.shape) * p["n.weight"][:, None, None] + p["n.bias"][:, None, None]
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6)


def test_batch_norm_uses_the_running_statistics() -> None:
    x = sample(2, 6, 3)
    graph = graph_of('(batch-norm x :name "n")', {"x": x})
    p = random_params(graph)
    p["n.running_var"] = np.abs(p["n.running_var"]) + np.float32(0.5)
    y = evaluate(graph, {**p, "x": x}, {}, wide=True)["out"]
    mean, var, weight, bias = (
        p[f"n.{k}"][:, None] for k in ("running_mean", "running_var", "weight", "bias")
    )
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(var + 1e-5) * weight + bias, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("expression", ["(rms-norm x)", "(layer-norm x)", "(group-norm x 2)", "(linear x 4)"])
def test_halves_stay_halves(expression: str) -> None:
    x = sample(2, 4).astype(ml_dtypes.bfloat16)
    definitions = "(deflayer wrapped [x] " + expression + ")"
    graph = graph_of("(cast (wrapped (cast x f32)) bf16)", {"x": x}, definitions)
    assert graph.outputs["out"].dtype.name == "bf16"


def test_convolution_adds_its_bias_to_each_channel() -> None:
    x = sample(1, 2, 4, 4)
    y, p = run_layer('(convolution x 3 1 :name "c")', x=x)
    want = np.einsum("bchw,oc->bohw", x.astype(np.float64), p["c.weight"][:, :, 0, 0])
    np.testing.assert_allclose(y, want + p["c.bias"][:, None, None], rtol=1e-5, atol=1e-6)
