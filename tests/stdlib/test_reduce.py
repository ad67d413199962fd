"""Reductions and searches against numpy, for every length that a tile could split."""

from __future__ import annotations

import numpy as np
import pytest

from tests.language import run, run_all

EPS = float(np.finfo(np.float32).eps)


@pytest.mark.parametrize("length", range(1, 34))
def test_argmax_is_the_first_greatest(length: int) -> None:
    rng = np.random.default_rng(length)
    x = rng.integers(0, 4, (5, length)).astype(np.float32)
    x[1, rng.integers(length)] = np.nan
    x[2] = -np.inf
    np.testing.assert_array_equal(run("(argmax x)", x=x), np.argmax(x, -1))
    np.testing.assert_array_equal(run("(argmin x)", x=x), np.argmin(x, -1))
    ints = rng.integers(-2, 2, (5, length)).astype(np.int32)
    np.testing.assert_array_equal(run("(argmax x)", x=ints), np.argmax(ints, -1))
    np.testing.assert_array_equal(run("(argmin x)", x=ints), np.argmin(ints, -1))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("length", [0, 1, 2, 4097])
def test_cumsum_runs_along_any_axis(axis: int, length: int) -> None:
    shape = [2, 3, 2]
    shape[axis] = length
    x = np.random.default_rng(0).integers(-50, 50, shape).astype(np.int32)
    np.testing.assert_array_equal(run(f"(cumsum x :axis {axis})", x=x), np.cumsum(x, axis, np.int32))


@pytest.mark.parametrize("axis", ["0", "1", "-1", "[0 2]", "nil"])
def test_statistics_equal_numpy(axis: str) -> None:
    x = np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)
    axes = {"[0 2]": (0, 2), "nil": None}.get(axis, int(axis) if axis.lstrip("-").isdigit() else None)
    wide = x.astype(np.float64)
    tolerance = {"rtol": 60 * EPS, "atol": 60 * EPS}
    np.testing.assert_allclose(run(f"(mean x :axis {axis})", x=x), wide.mean(axes), **tolerance)
    np.testing.assert_allclose(run(f"(variance x :axis {axis})", x=x), wide.var(axes), **tolerance)
    np.testing.assert_array_equal(run(f"(reduce-min x :axis {axis})", x=x), x.min(axes))
    log = np.log(np.exp(wide).sum(axes))
    np.testing.assert_allclose(run(f"(logsumexp x :axis {axis})", x=x), log, **tolerance)
    positive = x > 0
    np.testing.assert_array_equal(run(f"(any x :axis {axis})", x=positive), positive.any(axes))
    np.testing.assert_array_equal(run(f"(all x :axis {axis})", x=positive), positive.all(axes))


@pytest.mark.parametrize("k", [1, 2, 7])
def test_top_k_is_a_stable_descending_sort(k: int) -> None:
    rng = np.random.default_rng(k)
    x = rng.integers(0, 5, (4, 7)).astype(np.float32)
    values, indices = run_all(f"(top-k x {k})", x=x)
    order = np.argsort(-x, axis=-1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


def test_take_along_equals_numpy() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    for axis in (0, 1, 2):
        shape = [3, 4, 5]
        shape[axis] = 2
        index = rng.integers(0, x.shape[axis], shape).astype(np.int32)
        found = run(f"(take-along x i :axis {axis})", x=x, i=index)
        np.testing.assert_array_equal(found, np.take_along_axis(x, index, axis))
