"""Elementwise functions against numpy in f64, sampled over their range and at its edges."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.language import Array, run

EPS = float(np.finfo(np.float32).eps)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)


def spread(low: float, high: float, seed: int = 0) -> Array:
    """Values of both signs of magnitude 2^low … 2^high, and between them the integers near 0."""
    rng = np.random.default_rng(seed)
    sizes = 2.0 ** rng.uniform(low, high, 4000)
    signs = rng.choice([-1.0, 1.0], sizes.shape)
    return np.concatenate([sizes * signs, np.arange(-8.0, 9.0)]).astype(np.float32)


WIDE = spread(-30, 6.3)
SMALL = spread(-40, 0)

# name, numpy's function, samples, tolerance relative to the result in units of the f32 spacing
CASES: dict[str, tuple[str, Callable[[Array], Array], Array, float]] = {
    "exp": ("(exp x)", np.exp, spread(-30, math.log2(80)), 80),
    "expm1": ("(expm1 x)", np.expm1, WIDE, 80),
    "expm1 near 0": ("(expm1 x)", np.expm1, SMALL, 8),
    "log": ("(log x)", np.log, np.abs(spread(-100, 100)) + np.float32(1e-30), 4),
    "log1p": ("(log1p x)", np.log1p, np.abs(WIDE), 8),
    "log1p near 0": ("(log1p x)", np.log1p, SMALL * np.float32(0.9), 8),
    "tanh": ("(tanh x)", np.tanh, WIDE, 8),
    "tanh near 0": ("(tanh x)", np.tanh, SMALL, 8),
    "sigmoid": ("(sigmoid x)", lambda x: 1 / (1 + np.exp(-x)), spread(-30, 6), 80),
    "silu": ("(silu x)", lambda x: x / (1 + np.exp(-x)), spread(-30, 6), 80),
    "softplus": ("(softplus x)", lambda x: np.logaddexp(0, x), spread(-30, 6), 80),
    "abs": ("(abs x)", np.abs, WIDE, 0),
    "sign": ("(sign x)", np.sign, WIDE, 0),
    "ceil": ("(ceil x)", np.ceil, WIDE, 0),
    "round": ("(round x)", np.round, np.concatenate([WIDE, np.arange(-9, 9, dtype=np.float32) / 2]), 0),
    "relu": ("(relu x)", lambda x: np.maximum(x, 0), WIDE, 0),
    "square root": ("(pow x 0.5)", np.sqrt, np.abs(WIDE), 1),
    "cube": ("(pow x 3)", lambda x: x**3, spread(-10, 10), 4),
    "inverse square": ("(pow x -2)", lambda x: x**-2.0, np.abs(spread(-10, 10)) + np.float32(1), 4),
    "power": ("(pow x 1.7)", lambda x: x**1.7, np.abs(spread(-10, 10)), 40),
}


@pytest.mark.parametrize("name", CASES)
def test_function_is_accurate_relative_to_its_result(name: str) -> None:
    expression, reference, x, units = CASES[name]
    found = run(expression, x=x)
    with np.errstate(all="ignore"):
        want = reference(x.astype(np.float64))
    np.testing.assert_allclose(found, want, rtol=units * EPS, atol=1e-37)


@pytest.mark.parametrize(("expression", "reference"), [("(cos x)", np.cos), ("(sin x)", np.sin)])
def test_circular_function_is_accurate_to_a_few_units_of_1(
    expression: str, reference: Callable[[Array], Array]
) -> None:
    x = spread(-20, 11)
    np.testing.assert_allclose(run(expression, x=x), reference(x.astype(np.float64)), rtol=0, atol=4 * EPS)


@pytest.mark.parametrize(
    ("expression", "reference"),
    [
        ("(exp x)", np.exp),
        ("(log x)", np.log),
        ("(expm1 x)", np.expm1),
        ("(log1p x)", np.log1p),
        ("(tanh x)", np.tanh),
        ("(abs x)", np.abs),
        ("(sqrt x)", np.sqrt),
        ("(round x)", np.round),
        ("(ceil x)", np.ceil),
        ("(max x 1)", lambda x: np.maximum(x, 1)),
        ("(min 1 x)", lambda x: np.minimum(x, 1)),
        ("(cast (nan? x) f32)", np.isnan),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_special_values_are_those_of_numpy(expression: str, reference: Callable[[Array], Array]) -> None:
    with np.errstate(all="ignore"):
        want = reference(SPECIAL).astype(np.float32)
    np.testing.assert_array_equal(run(expression, x=SPECIAL), want)


@pytest.mark.parametrize("name", ["<", "<=", ">", ">=", "=", "/=", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.float16])
def test_pairs_compare_as_in_numpy(name: str, dtype: type) -> None:
    numpy = {
        "<": np.less,
        "<=": np.less_equal,
        ">": np.greater,
        ">=": np.greater_equal,
        "=": np.equal,
        "/=": np.not_equal,
        "max": np.maximum,
        "min": np.minimum,
    }[name]
    ends = [0, 1, 2] if np.issubdtype(dtype, np.integer) else [0.0, -0.0, 1.5, np.inf, -np.inf, np.nan]
    info = [np.iinfo(dtype).min, np.iinfo(dtype).max] if np.issubdtype(dtype, np.integer) else []
    values = np.array([*ends, *info], dtype)
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    np.testing.assert_array_equal(run(f"({name} x y)", x=x, y=y), numpy(x, y))
    for value in ends[:3]:
        np.testing.assert_array_equal(run(f"({name} x {value})", x=values), numpy(values, dtype(value)))
        np.testing.assert_array_equal(run(f"({name} {value} x)", x=values), numpy(dtype(value), values))


@pytest.mark.parametrize("bits", [8, 32])
def test_integer_division_names_its_rounding(bits: int) -> None:
    dtype = np.dtype(f"int{bits}")
    a, b = (g.ravel().astype(dtype) for g in np.meshgrid(np.arange(-9, 10), np.arange(-4, 5)))
    safe = np.where(b == 0, 1, b)
    truncated = np.where(b == 0, 0, np.trunc(a / safe)).astype(dtype)
    np.testing.assert_array_equal(run("(trunc-div a b)", a=a, b=b), truncated)
    np.testing.assert_array_equal(run("(trunc-rem a b)", a=a, b=b), np.where(b == 0, a, a - safe * truncated))
    np.testing.assert_array_equal(run("(floor-div a b)", a=a, b=b), np.where(b == 0, 0, a // safe))
    found = run("(mod a b)", a=a, b=b)
    np.testing.assert_array_equal(found[b != 0], (a % safe)[b != 0])


@pytest.mark.parametrize(("a", "b"), [(110, 55), (2**24 + 1, 1), (2**31 - 1, 3), (-(2**31), 7)])
def test_large_quotients_are_exact(a: int, b: int) -> None:
    found = run("(floor-div a b)", a=np.array([a], np.int32), b=np.array([b], np.int32))
    assert found.tolist() == [a // b]


def test_gelu_equals_its_definition() -> None:
    x = spread(-20, 5)
    wide = x.astype(np.float64)
    want = 0.5 * wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
    np.testing.assert_allclose(run("(gelu-tanh x)", x=x), want, rtol=0, atol=8 * EPS * 32)
