"""Every operation of HLIR on every dtype, in declared types and wide, against the reference."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lumi.dtype import BF16, BOOL, F8E4M3, F8E5M2, F16, F32, F64, I8, I32, I64, U8, DType
from lumi.hlir.graph import Node
from lumi.hlir.op import BinaryKind, Monoid, UnaryKind
from tests.lower.check import check
from tests.lower.spell import Spell

FLOATS = [F32, F64, F16, BF16, F8E4M3, F8E5M2]
INTEGERS = [I8, U8, I32, I64]
NUMBERS = [*FLOATS, *INTEGERS]
ALL = [*NUMBERS, BOOL]

EPSILON = {"f64": 1e-13, "f32": 1e-5, "f16": 2e-3, "bf16": 2e-2, "f8e4m3": 0.13, "f8e5m2": 0.26}


def sample(dtype: DType, *shape: int, seed: int = 0) -> np.ndarray:
    """Seeded values of a dtype, extremes and zeros among them."""
    rng = np.random.default_rng([seed, *dtype.name.encode()])
    if dtype is BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_float:
        x = rng.standard_normal(shape) * 3
        x.flat[::7] = np.round(x.flat[::7])
        return x.astype(np.float32 if dtype.size < 8 else np.float64)
    low, high = dtype.bounds
    x = rng.integers(low, high, shape, dtype=dtype.storage, endpoint=True)
    small = rng.integers(-4 if low else 0, 5, shape)
    x.flat[::2] = small.flat[::2]
    x.flat[0], x.flat[-1] = low, high
    return x


def agree(b: Spell, arrays: dict[str, np.ndarray], *nodes: Node) -> None:
    graph = b.result(*nodes)
    check(graph, arrays, wide=True, tolerance=1e-12)
    loosest = max((EPSILON[n.dtype.name] for n in nodes if n.dtype.is_float), default=0.0)
    check(graph, arrays, wide=False, tolerance=loosest)


UNARY = [(kind, dtype) for kind in UnaryKind for dtype in FLOATS if (kind, dtype) != (UnaryKind.TF32, F64)]


@pytest.mark.parametrize(("kind", "dtype"), UNARY, ids=str)
def test_unary(kind: UnaryKind, dtype: DType) -> None:
    b = Spell()
    x = sample(dtype, 4, 5)
    x.flat[:4] = [0.0, math.inf, -math.inf, math.nan]
    agree(b, {"x": x}, b.unary(kind, b.input("x", dtype, (4, 5))))


def kinds(dtype: DType) -> list[BinaryKind]:
    """The binary operations that a dtype has."""
    if dtype is BOOL:
        return [BinaryKind.ADD, BinaryKind.MUL, BinaryKind.LESS]
    return [k for k in BinaryKind if not (dtype.is_float and k is BinaryKind.DIV)]


@pytest.mark.parametrize(("dtype", "kind"), [(d, k) for d in ALL for k in kinds(d)], ids=str)
def test_binary(dtype: DType, kind: BinaryKind) -> None:
    b = Spell()
    x, y = b.input("x", dtype, (6, 7)), b.input("y", dtype, (6, 7))
    arrays = {"x": sample(dtype, 6, 7), "y": sample(dtype, 6, 7, seed=1)}
    one = True if dtype is BOOL else 3
    results = [b.two(kind, x, y), b.two(kind, x, one), b.two(kind, one, y), b.two(kind, x, x)]
    agree(b, arrays, *results)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_operations_on_constants_alone(dtype: DType) -> None:
    b = Spell()
    a, c = (b.const(v, dtype) for v in ((True, False) if dtype is BOOL else (7, 2)))
    kinds = [
        k for k in BinaryKind if dtype is not BOOL or k in (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.LESS)
    ]
    made = [b.binary(k, a, c) for k in kinds if not (dtype.is_float and k is BinaryKind.DIV)]
    made += [b.select(b.less(a, c), a, c), b.expand(a, (3,)), a]
    made += [b.cast(a, other) for other in ALL]
    if dtype.is_float:
        made += [b.unary(k, a) for k, of in UNARY if of is dtype]
    if dtype is not BOOL:
        made += [b.reduce(k, b.expand(a, (3, 2)), [0]) for k in Monoid]
        made += [b.scan(k, b.expand(a, (3,)), 0) for k in Monoid]
    agree(b, {}, *made)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_select(dtype: DType) -> None:
    b = Spell()
    c, x, y = b.input("c", BOOL, (3, 4)), b.input("x", dtype, (3, 4)), b.input("y", dtype, (3, 4))
    arrays = {"c": sample(BOOL, 3, 4), "x": sample(dtype, 3, 4), "y": sample(dtype, 3, 4, seed=1)}
    one, zero = (True, False) if dtype is BOOL else (1, 0)
    agree(
        b,
        arrays,
        b.select(c, x, y),
        b.where(c, x, one),
        b.select(c, b.const(one, dtype), b.const(zero, dtype)),
    )


@pytest.mark.parametrize("source", ALL, ids=str)
@pytest.mark.parametrize("target", ALL, ids=str)
def test_cast(source: DType, target: DType) -> None:
    b = Spell()
    x = sample(source, 5, 6)
    if source.is_float:
        x.flat[:8] = [math.nan, math.inf, -math.inf, 300.7, -300.7, 5e9, -0.0, 1e30]
    agree(b, {"x": x}, b.cast(b.input("x", source, (5, 6)), target))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("kind", Monoid)
def test_reduce(kind: Monoid, dtype: DType) -> None:
    b = Spell()
    x = b.input("x", dtype, (3, 4, 5))
    nothing = b.input("z", dtype, (3, 0))
    arrays = {"x": sample(dtype, 3, 4, 5), "z": np.zeros((3, 0), dtype.numpy)}
    made = [b.reduce(kind, x, [0]), b.reduce(kind, x, [1, 2]), b.reduce(kind, x, [0, 1, 2])]
    agree(b, arrays, *made, b.reduce(kind, nothing, [1]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_maximum_keeps_nan_and_infinity(dtype: DType) -> None:
    b = Spell()
    x = np.array([[math.nan, 1.0], [-math.inf, -math.inf], [math.inf, math.nan]])
    agree(b, {"x": x}, b.max(b.input("x", dtype, (3, 2)), 1))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
@pytest.mark.parametrize("kind", Monoid)
def test_scan(kind: Monoid, dtype: DType) -> None:
    b = Spell()
    x = b.input("x", dtype, (3, 6))
    made = [b.scan(kind, x, 0), b.scan(kind, x, 1), b.flip(b.scan(kind, b.flip(x, 1), 1), 1)]
    one = b.scan(kind, b.reshape(x, (18, 1)), 1)
    agree(b, {"x": sample(dtype, 3, 6)}, *made, one)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_scatter(dtype: DType, kind: DType) -> None:
    b = Spell()
    x, u = b.input("x", dtype, (4, 6, 2)), b.input("u", dtype, (4, 5, 2))
    many = b.scatter(x, b.input("i", kind, (5,)), u, 1)
    one = b.scatter(b.slice(x, 1, 0, 1), b.reshape(b.const(0, kind), (1,)), b.slice(u, 1, 0, 1), 1)
    arrays = {
        "x": sample(dtype, 4, 6, 2),
        "u": sample(dtype, 4, 5, 2, seed=1),
        "i": np.array([3, 0, 3, 5, 0]).astype(kind.storage),
    }
    agree(b, arrays, many, one)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_gather_update_and_views(dtype: DType) -> None:
    b = Spell()
    x, y, i = b.input("x", dtype, (4, 5)), b.input("y", dtype, (2, 5)), b.input("i", I32, (3,))
    arrays = {"x": sample(dtype, 4, 5), "y": sample(dtype, 2, 5, seed=1), "i": np.array([2, 0, 3], np.int32)}
    fill: float | bool = False if dtype is BOOL else 3
    made = [b.gather(x, i), b.update(x, y, 0, 1), b.pad(x, 1, 2, 1, fill), b.flip(x, 0), b.windows(x, 1, 2)]
    agree(b, arrays, *made, x)


SAME = [(a, c) for a in ALL for c in ALL if a.size == c.size and a is not c]


@pytest.mark.parametrize(("source", "target"), SAME, ids=str)
def test_bitcast_of_one_size(source: DType, target: DType) -> None:
    b = Spell()
    given = pieces(b, "x", source, 64, 1)
    back = b.bitcast(b.bitcast(given, target), I8 if source.size == 1 else U8)
    narrow = target if target.is_narrow else source
    agree(b, {"x": raw_bytes(narrow, 64, 1, boolean=BOOL in (source, target))}, back)


def raw_bytes(dtype: DType, rows: int, count: int, *, boolean: bool) -> np.ndarray:
    """[rows count·size] random bytes; 0 and 1 where they must be bools, no narrow floats that are NaN."""
    high = 2 if boolean else 256
    x = np.random.default_rng(1).integers(0, high, (rows, count * dtype.size), dtype=np.uint8)
    if dtype.is_narrow:
        x[:, dtype.size - 1 :: dtype.size] &= 0xBF
    return x.view(dtype.storage) if dtype.size == 1 else x


def pieces(b: Spell, name: str, dtype: DType, rows: int, count: int) -> Node:
    """Values [rows count] of a dtype from raw bytes, so that every bit pattern occurs."""
    if dtype.size == 1 and not dtype.is_float:
        return b.input(name, dtype, (rows, count))
    given = b.input(name, U8, (rows, count * dtype.size))
    apart = given if dtype.size == 1 else b.reshape(given, (rows, count, dtype.size))
    return b.bitcast(apart, dtype)


WIDER = [(a, c) for a in ALL for c in ALL if a.size < c.size]


@pytest.mark.parametrize(("source", "target"), WIDER, ids=str)
def test_bitcast_to_wider_and_narrower(source: DType, target: DType) -> None:
    b = Spell()
    ratio = target.size // source.size
    whole = b.bitcast(pieces(b, "x", source, 40, ratio), target)
    back = b.bitcast(whole, U8)
    value = b.cast(whole, F64 if target.is_float else I64)
    arrays = {"x": raw_bytes(source, 40, ratio, boolean=source is BOOL)}
    agree(b, arrays, b.slice(back, 1, 0, 1), b.flip(back, 1), value)


def test_bits_of_every_half() -> None:
    b = Spell()
    x = np.arange(2**16, dtype=np.uint16).view(np.uint8).reshape(-1, 2)
    given = b.input("x", U8, (2**16, 2))
    made = [b.cast(b.bitcast(given, t), F32) for t in (F16, BF16)]
    agree(b, {"x": x}, *made)
    finite = Spell()
    values = np.arange(2**16, dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)]
    h = finite.input("h", F16, (len(values),))
    agree(finite, {"h": values}, finite.bitcast(h, U8))


@pytest.mark.parametrize("dtype", [F8E4M3, F8E5M2], ids=str)
def test_bits_of_every_float_of_a_byte(dtype: DType) -> None:
    b = Spell()
    x = np.arange(2**8, dtype=np.uint8)
    value = b.bitcast(b.input("x", U8, (2**8,)), dtype)
    agree(b, {"x": x}, b.cast(value, F32), b.bitcast(b.mul(value, 1), U8))


def test_integers_beyond_a_float_stay_exact() -> None:
    b = Spell()
    x = b.input("x", I64, (3,))
    made = []
    for value in (2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**62 + 3):
        c = b.const(value, I64)
        made += [b.add(x, c), b.mul(x, c), b.less(x, c), b.expand(c, (3,)), c, b.mod(c, 10)]
    agree(b, {"x": np.array([1, -1, 2**62], np.int64)}, *made)


def test_constants_keep_every_bit() -> None:
    b = Spell()
    x = b.input("x", F32, (2,))
    values = [0.1, 1 / 3, 1e-30, 3.4e38, -0.0, math.inf, -math.inf, math.nan, 5e-324]
    made = (
        [b.mul(x, v) for v in values]
        + [b.const(v, F64) for v in values]
        + [b.const(v, F16) for v in values[:4]]
    )
    agree(b, {"x": np.array([1.0, -2.0])}, *made)
