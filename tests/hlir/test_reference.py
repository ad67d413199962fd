"""The reference against numpy, and at the edges its docstring promises."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lumi import dim
from lumi.dtype import BF16, BOOL, DTYPES, F16, F32, F64, I8, I32, I64, U8, DType
from lumi.errors import LumiError
from lumi.hlir.builder import Builder
from lumi.hlir.graph import Node
from lumi.hlir.op import BinaryKind, Monoid, UnaryKind
from lumi.hlir.reference import evaluate
from tests.hlir.graphs import DIMS, everything

INTS = [I8, U8, I32, I64]
FLOATS = [F16, BF16, F32, F64]


def run(b: Builder, node: Node, dims: dict[str, int] | None = None, **arrays: Any) -> np.ndarray[Any, Any]:
    return evaluate(b.graph("g", {"y": node}), arrays, dims or {})["y"]


def binary(kind: BinaryKind, dtype: DType, a: Any, c: Any) -> np.ndarray[Any, Any]:
    b = Builder()
    x, y = np.asarray(a, dtype.numpy), np.asarray(c, dtype.numpy)
    return run(b, b.binary(kind, b.input("x", dtype, x.shape), b.input("y", dtype, y.shape)), x=x, y=y)


def cast(dtype: DType, to: DType, values: Any) -> list[Any]:
    b = Builder()
    x = np.asarray(values, dtype.numpy)
    return list(run(b, b.cast(b.input("x", dtype, x.shape), to), x=x).tolist())


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_add_and_mul_wrap(dtype: DType) -> None:
    low, high = dtype.bounds
    assert binary(BinaryKind.ADD, dtype, [high], [1]).tolist() == [low]
    assert binary(BinaryKind.MUL, dtype, [high], [2]).tolist() == [high * 2 - (high - low + 1)]


@pytest.mark.parametrize("dtype", [I8, I32, I64], ids=str)
def test_integer_division_rounds_as_named(dtype: DType) -> None:
    a, b = (g.ravel() for g in np.meshgrid(np.arange(-9, 10), np.arange(-4, 5)))
    want_div = [0 if y == 0 else int(x / y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    want_rem = [x if y == 0 else int(math.fmod(x, y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    want_mod = [x if y == 0 else x % y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert binary(BinaryKind.DIV, dtype, a, b).tolist() == want_div
    assert binary(BinaryKind.REM, dtype, a, b).tolist() == want_rem
    assert binary(BinaryKind.MOD, dtype, a, b).tolist() == want_mod


def test_integer_division_is_exact_where_float_reciprocals_are_not() -> None:
    near = [2**24 - 1, 2**24, 2**24 + 1, 2**31 - 1, 110]
    assert binary(BinaryKind.DIV, I32, near, [1, 1, 1, 1, 55]).tolist() == [*near[:4], 2]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_half_arithmetic_rounds_once(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 100)).astype(dtype.numpy)
    wide = np.float64 if dtype is F64 else np.float32
    want = (x.astype(wide) * y.astype(wide)).astype(dtype.numpy)
    assert binary(BinaryKind.MUL, dtype, x, y).tolist() == want.tolist()


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_cast_of_floats_truncates_and_saturates(dtype: DType) -> None:
    low, high = dtype.bounds
    got = cast(F32, dtype, [math.nan, math.inf, -math.inf, 2.9, -2.9])
    assert got == [0, high, low, 2, max(low, -2)]


def test_cast_of_ints_wraps_and_bool_is_nonzero() -> None:
    assert cast(I32, I8, [128, -129, 300]) == [-128, 127, 44]
    assert cast(I32, U8, [256, -1]) == [0, 255]
    assert cast(F32, BOOL, [0.0, -0.0, 0.5, math.nan]) == [False, False, True, True]


def test_cast_to_bf16_rounds_to_even() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(1000).astype(np.float32)
    assert cast(F32, BF16, x) == x.astype(ml_dtypes.bfloat16).tolist()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_reduce_max_propagates_nan_and_empty_gives_identity(dtype: DType) -> None:
    b = Builder()
    x = b.input("x", dtype, (2, 3))
    y = run(b, b.reduce(Monoid.MAX, x, [1]), x=np.asarray([[1, np.nan, 2], [1, 5, 2]], dtype.numpy))
    assert np.isnan(float(y[0])) and float(y[1]) == 5
    b = Builder()
    none = b.input("x", dtype, (2, 0))
    for kind, identity in ((Monoid.MAX, -math.inf), (Monoid.SUM, 0), (Monoid.MUL, 1)):
        assert run(b, b.reduce(kind, none, [1]), x=np.zeros((2, 0), dtype.numpy)).tolist() == [identity] * 2


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_reductions_wrap_and_start_at_the_least(dtype: DType) -> None:
    low, high = dtype.bounds
    b = Builder()
    x = b.input("x", dtype, (2,))
    assert run(b, b.reduce(Monoid.SUM, x, [0]), x=np.asarray([high, 1], dtype.numpy)) == low
    b = Builder()
    assert run(b, b.reduce(Monoid.MAX, b.input("x", dtype, (0,)), [0]), x=np.zeros(0, dtype.numpy)) == low


@pytest.mark.parametrize("kind", [k for k in UnaryKind if k is not UnaryKind.TF32], ids=lambda k: k.value)
def test_unary_equals_numpy(kind: UnaryKind) -> None:
    x = np.asarray([0.0, 0.5, 2.0, 80.0, -80.0, math.inf, -math.inf, math.nan], np.float32)
    numpy = {"recip": np.reciprocal}.get(kind.value) or getattr(np, kind.value)
    b = Builder()
    with np.errstate(all="ignore"):
        want = numpy(x)
    np.testing.assert_array_equal(run(b, b.unary(kind, b.input("x", F32, x.shape)), x=x), want)


def test_tf32_rounds_f32_alone() -> None:
    """Halves have no more digits and stay what they are; f64 is none of what tensor cores take for f32."""
    x = np.asarray([1 + 2.0**-11, 1 + 2.0**-12, -0.0, math.inf, math.nan], np.float32)
    b = Builder()
    got = run(b, b.unary(UnaryKind.TF32, b.input("x", F32, x.shape)), x=x)
    np.testing.assert_array_equal(got, np.asarray([1 + 2.0**-10, 1.0, -0.0, math.inf, math.nan], np.float32))
    half = b.input("h", BF16, (3,))
    assert b.unary(UnaryKind.TF32, half) is half
    with pytest.raises(LumiError, match="tf32 takes f32, not f64"):
        b.unary(UnaryKind.TF32, b.input("d", F64, (3,)))


@pytest.mark.parametrize("length", [0, 1, 2, 33])
@pytest.mark.parametrize("axis", [0, 1])
def test_scan_equals_cumsum(length: int, axis: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (length, 3)).astype(np.int32)
    b = Builder()
    got = run(b, b.scan(Monoid.SUM, b.input("x", I32, x.shape), axis), x=x)
    np.testing.assert_array_equal(got, np.cumsum(x, axis=axis))


def test_scatter_adds_repeated_indices() -> None:
    b = Builder()
    y = b.scatter(b.input("x", F32, (3, 2)), b.input("i", I32, (4,)), b.input("u", F32, (4, 2)))
    x, u = np.ones((3, 2), np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
    got = run(b, y, x=x, i=np.asarray([2, 0, 2, 2], np.int32), u=u)
    np.testing.assert_array_equal(got, [[3, 4], [1, 1], [1 + 0 + 4 + 6, 1 + 1 + 5 + 7]])


@pytest.mark.parametrize("index", [-1, 3])
def test_gather_out_of_range_is_an_error(index: int) -> None:
    b = Builder()
    y = b.gather(b.input("x", F32, (3,)), b.input("i", I32, (1,)))
    with pytest.raises(LumiError, match="leave an axis of size 3"):
        run(b, y, x=np.zeros(3, np.float32), i=np.asarray([index], np.int32))


def test_update_past_the_end_is_an_error() -> None:
    b = Builder(DIMS)
    x, u = b.input("x", F32, (3,)), b.input("u", F32, (2,))
    y = b.update(x, u, 0, dim.var("seq"))
    arrays = {"x": np.zeros(3, np.float32), "u": np.zeros(2, np.float32)}
    with pytest.raises(LumiError, match=r"update writes 2 … 4 of axis 0, size 3"):
        evaluate(b.graph("g", {"y": y}), arrays, {"seq": 2})
    with pytest.raises(LumiError, match=r"update-slice writes 2 … 4 along axis 0 of f32 \[3\]"):
        b.update(x, u, 0, 2)


def test_views_equal_numpy() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    b = Builder()
    n = b.input("x", F32, x.shape)
    cases = {
        "permute": (b.permute(n, (2, 0, 1)), x.transpose(2, 0, 1)),
        "reshape": (b.reshape(n, (4, 6)), x.reshape(4, 6)),
        "expand": (b.expand(n, (5, 2, 3, 4)), np.broadcast_to(x, (5, 2, 3, 4))),
        "slice": (b.slice(n, 2, 1, 4, 2), x[:, :, 1:4:2]),
        "flip": (b.flip(n, 1), x[:, ::-1]),
        "pad": (b.pad(n, 1, 2, 1, 7), np.pad(x, [(0, 0), (2, 1), (0, 0)], constant_values=7)),
        "windows": (
            b.windows(n, 2, 2, 1),
            np.lib.stride_tricks.sliding_window_view(x, 2, axis=2),
        ),
    }
    for name, (node, want) in cases.items():
        np.testing.assert_array_equal(run(b, node, x=x), want, err_msg=name)


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d is not BOOL], ids=str)
def test_bitcast_round_trips_through_bytes(dtype: DType) -> None:
    b = Builder()
    x = np.random.default_rng(0).integers(0, 100, 6).astype(dtype.numpy)
    n = b.input("x", dtype, x.shape)
    assert run(b, b.bitcast(b.bitcast(n, U8), dtype), x=x).tolist() == x.tolist()


def test_equal_nodes_are_one_object() -> None:
    b = Builder()
    x = b.input("x", F32, (2,))
    assert b.unary(UnaryKind.EXP2, x) is b.unary(UnaryKind.EXP2, x)
    assert b.const(0.0, F32) is not b.const(-0.0, F32)
    assert b.const(math.nan, F32) is b.const(math.nan, F32)
    assert b.const(1, I32) is not b.const(1.0, F32)
    assert b.reshape(x, (2,)) is x
    assert b.permute(x, (0,)) is x


def test_graph_with_states_leaves_them_updated() -> None:
    graph = everything()
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.standard_normal((5, 4)).astype(np.float32),
        "raw": rng.integers(0, 60, (4, 2)).astype(np.uint8),
        "cache": rng.standard_normal((64, 4)).astype(np.float32),
    }
    dims = {"seq": 5, "past": 7}
    got = evaluate(graph, arrays, dims)
    wide = evaluate(graph, arrays, dims, wide=True)
    before, after = arrays["cache"], got["cache"]
    np.testing.assert_array_equal(after[:7], before[:7])
    np.testing.assert_array_equal(after[12:], before[12:])
    assert not np.array_equal(after[7:12], before[7:12])
    np.testing.assert_allclose(got["flat"], wide["flat"], rtol=1e-4)
    assert got["wide"].tolist() == [2.0] * 4
