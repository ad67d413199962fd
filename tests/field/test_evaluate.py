"""The numpy meaning of terms: operators, types, accesses, reductions, stores."""

from __future__ import annotations

import numpy as np
import pytest

from lumi import dim
from lumi.dtype import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, DType, round_to_bf16
from lumi.field import evaluate as module
from lumi.field.access import Access
from lumi.field.axis import AxisTable
from lumi.field.evaluate import evaluate, evaluate_regions, evaluate_term
from lumi.field.index import Data, Index, Quot, Rem, index, of_axis, of_extent
from lumi.field.region import Region, Store
from lumi.field.term import Bin, Const, Gat, In, Pos, Red, Sel, Term, Un

INF = float("inf")


def region(axes: dict[str, dim.Extent], accesses: dict[str, Access], *stores: Store) -> Region:
    table = AxisTable()
    for name, extent in axes.items():
        table.add(name, extent)
    produced = {s.access.buffer: k for k, s in enumerate(stores)}
    return Region("r", table, accesses, stores, (), produced, (), "")


def elementwise(op: str, a: np.ndarray, b: np.ndarray, dtype: DType, wide: bool = False) -> np.ndarray:
    term = Bin(op, In("a", ("i",), dtype), In("b", ("i",), dtype))
    return evaluate_term(term, {"i": len(a)}, {"a": a, "b": b}, wide=wide)[0]


@pytest.mark.parametrize(
    ("op", "want"),
    [
        ("div", [-2, -2, 2, 2, 0]),
        ("rem", [-1, 1, -1, 1, 7]),
        ("mod", [-1, 1, 1, 1 - 2, 7]),
    ],
)
def test_integer_division_names_its_rounding(op: str, want: list[int]) -> None:
    a, b = np.array([-7, 7, -7, 7, 7], np.int32), np.array([3, -3, -3, 3, 0], np.int32)
    if op == "mod":
        want = [2, -2, -1, 1, 7]
    assert elementwise(op, a, b, I32).tolist() == want


def test_integer_arithmetic_wraps_at_its_width() -> None:
    a = np.array([2**31 - 1, -(2**31)], np.int32)
    assert elementwise("add", a, np.array([1, -1], np.int32), I32).tolist() == [-(2**31), 2**31 - 1]


def test_special_operators_are_finite_where_they_promise() -> None:
    a, b = np.array([-INF, 1.0, 0.0]), np.array([-INF, 2.0, INF])
    assert elementwise("subni", a, b, F64).tolist() == [-INF, -1.0, -INF]
    assert elementwise("mulz", np.array([0.0, 2.0]), np.array([INF, 3.0]), F64).tolist() == [0.0, 6.0]
    recipz = Un("recipz", In("a", ("i",), F64))
    assert evaluate_term(recipz, {"i": 2}, {"a": np.array([0.0, 4.0])})[0].tolist() == [0.0, 0.25]
    assert np.isnan(elementwise("max", np.array([np.nan]), np.array([1.0]), F64))[0]


def test_shift_and_mask_unpack_bits() -> None:
    x = np.array([0xAB, -1], np.int32)
    high = Bin("bitand", Bin("shr", In("x", ("i",), I32), Const(4)), Const(15))
    assert evaluate_term(high, {"i": 2}, {"x": x})[0].tolist() == [0xA, 15]


@pytest.mark.parametrize("wide", [False, True])
def test_cast_to_half_rounds_even_when_wide(wide: bool) -> None:
    x = np.array([1 + 2**-12, 1 + 2**-9])
    halves = [
        evaluate_term(Un(f"cast.{t}", In("x", ("i",), F32)), {"i": 2}, {"x": x}, wide=wide)[0]
        for t in ("f16", "bf16")
    ]
    assert halves[0].tolist() == [1.0, 1 + 2**-9]
    assert halves[1].tolist() == [1.0, 1.0]


def test_cast_of_float_to_integer_saturates() -> None:
    x = np.array([np.nan, INF, -INF, -1.9, 300.0])
    assert evaluate_term(Un("cast.i8", In("x", ("i",), F32)), {"i": 5}, {"x": x})[0].tolist() == [
        0,
        127,
        -128,
        -1,
        127,
    ]


def test_bitcast_reads_the_same_bytes() -> None:
    x = np.array([1.0, -0.0], np.float32)
    bits = evaluate_term(Un("bits.i32", In("x", ("i",), F32)), {"i": 2}, {"x": x})[0]
    assert bits.tolist() == [0x3F800000, -(2**31)]
    half = Un("bits.bf16", Un("cast.f16", In("x", ("i",), F32)))
    assert evaluate_term(half, {"i": 2}, {"x": x})[0][0] == np.float32(0.0078125)


def test_number_takes_the_type_of_what_it_meets() -> None:
    term = Bin("add", In("x", ("i",), F32), Const(0.1))
    x = np.zeros(1)
    assert evaluate_term(term, {"i": 1}, {"x": x}, wide=False)[0][0] == np.float32(0.1)
    assert evaluate_term(term, {"i": 1}, {"x": x}, wide=True)[0][0] == 0.1
    with pytest.raises(TypeError, match=r"0\.5 meets i32"):
        evaluate_term(Bin("add", Pos("i"), Const(0.5)), {"i": 1}, {})


def test_operands_of_two_types_are_refused() -> None:
    with pytest.raises(TypeError, match="add of f32 and i32"):
        evaluate_term(Bin("add", In("x", ("i",), F32), Pos("i")), {"i": 1}, {"x": np.zeros(1)})


def test_wide_keeps_declared_integers_and_widens_floats() -> None:
    term = Bin("mul", In("x", (), F32), In("y", (), F32))
    tiny = evaluate_term(term, {}, {"x": np.float32(1e-30), "y": np.float32(1e-30)})[0]
    assert tiny.dtype == np.float64
    assert tiny > 0


@pytest.mark.parametrize(("op", "empty", "whole"), [("sum", 0.0, 6.0), ("max", -INF, 3.0), ("mul", 1.0, 6.0)])
def test_reductions_and_their_identities(op: str, empty: float, whole: float) -> None:
    term = Red(op, ("i",), In("x", ("i",), F32))
    assert evaluate_term(term, {"i": 3}, {"x": np.array([1.0, 2.0, 3.0])})[0] == whole
    assert evaluate_term(term, {"i": 0}, {"x": np.zeros(0)})[0] == empty
    constant = Red(op, ("i",), In("y", (), F32))
    assert evaluate_term(constant, {"i": 0}, {"y": np.float64(7)})[0] == empty
    assert evaluate_term(constant, {"i": 2}, {"y": np.float64(3)})[0] == {"sum": 6, "max": 3, "mul": 9}[op]


def test_max_of_integers_and_of_nan() -> None:
    low = Red("max", ("i",), In("x", ("i",), I32))
    assert evaluate_term(low, {"i": 0}, {"x": np.zeros(0, np.int32)})[0] == -(2**31)
    nan = Red("max", ("i",), In("x", ("i",), F32))
    assert np.isnan(evaluate_term(nan, {"i": 2}, {"x": np.array([np.nan, 1.0])})[0])


@pytest.mark.parametrize("bad", [1.0, INF])
def test_contraction_equals_the_sum_of_the_product(bad: float) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 5)), rng.standard_normal((5, 3))
    a[1, 2] = bad
    b[2, 0] = 0.0
    product = Bin("mul", In("a", ("i", "k"), F64), In("b", ("k", "j"), F64))
    got, axes = evaluate_term(Red("sum", ("k",), product), {"j": 3, "k": 5, "i": 4}, {"a": a, "b": b})
    assert axes == ("j", "i")
    with np.errstate(all="ignore"):
        want = (a[:, :, None] * b[None]).sum(1).T
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_bound_and_free_axes_may_share_a_name() -> None:
    x = np.array([1.0, 2.0, 4.0])
    read = In("x", ("i",), F64)
    got, axes = evaluate_term(Bin("mul", read, Red("sum", ("i",), read)), {"i": 3}, {"x": x})
    assert axes == ("i",)
    assert got.tolist() == [7.0, 14.0, 28.0]


def test_index_maps_reach_windows_digits_and_data() -> None:
    x = np.arange(12.0)
    window = Access("B0", (of_axis("i") + of_axis("j").scale(2) + 1,), (12,), F64)
    digits = Access(
        "B1", (index([(Quot(of_axis("k"), 4), 1)]), index([(Rem(of_axis("k"), 4), 1)])), (3, 4), F64
    )
    data = Access("B0", (index([(Data(0), 3)], 1),), (12,), F64, clamp=True)
    accesses = {"w": window, "d": digits, "g": data}
    buffers = {"B0": x, "B1": x.reshape(3, 4), "at": np.array([0, 3, 9, -4], np.int32)}
    extents = {"i": 2, "j": 3, "k": 12, "m": 4}
    got = evaluate_term(In("w", ("i", "j"), F64), extents, buffers, accesses)[0]
    assert got.tolist() == [[1, 3, 5], [2, 4, 6]]
    assert evaluate_term(In("d", ("k",), F64), extents, buffers, accesses)[0].tolist() == x.tolist()
    gather = Gat("g", ("m",), F64, In("at", ("m",), I32))
    assert evaluate_term(gather, extents, buffers, accesses)[0].tolist() == [1, 10, 11, 0]


def test_access_outside_its_buffer_is_an_error_unless_clamped() -> None:
    for offset in (-1, 1):
        at = of_axis("i") + offset
        loose = Access("B0", (at,), (3,), F64)
        with pytest.raises(ValueError, match="leaves its buffer"):
            evaluate_term(In("a", ("i",), F64), {"i": 3}, {"B0": np.zeros(3)}, {"a": loose})
        clamped = Access("B0", (at,), (3,), F64, clamp=True)
        evaluate_term(In("a", ("i",), F64), {"i": 3}, {"B0": np.zeros(3)}, {"a": clamped})


def test_clamped_read_of_an_empty_buffer_gives_nothing_to_select() -> None:
    access = Access("B0", (of_axis("i"),), (0,), F64, clamp=True)
    term = Sel(Bin("lt", Pos("i"), Const(0)), In("a", ("i",), F64), Const(5.0))
    assert evaluate_term(term, {"i": 2}, {"B0": np.zeros(0)}, {"a": access})[0].tolist() == [5, 5]


def test_symbols_are_runtime_values() -> None:
    past = dim.var("past")
    access = Access("B0", (of_axis("i") + of_extent(past),), (8,), F64)
    term: Term = Bin("mul", In("a", ("i",), F64), Un("cast.f64", In("$past", (), I32)))
    got = evaluate_term(term, {"i": 2}, {"B0": np.arange(8.0)}, {"a": access}, {"past": 3})[0]
    assert got.tolist() == [9, 12]


def test_region_stores_through_offsets_and_reads_afterwards() -> None:
    past, seq = dim.var("past"), dim.var("seq")
    write = Access("B1", (of_axis("s") + of_extent(past),), (8,), F32)
    reads = {
        "x": Access("B0", (of_axis("s"),), (seq,), F32),
        "c": Access("B1", (of_axis("j"),), (8,), F32),
    }
    total = Red("sum", ("j",), In("c", ("j",), F32))
    r = region(
        {"s": seq, "j": past + seq},
        reads,
        Store(In("x", ("s",), F32), write),
        Store(total, Access("B2", (), (), F32)),
    )
    cache = np.arange(8.0)
    buffers = {"B0": np.array([10.0, 20.0]), "B1": cache}
    evaluate(r, buffers, {"past": 3, "seq": 2})
    assert cache.tolist() == [0, 1, 2, 10, 20, 5, 6, 7]
    assert buffers["B2"] == 33.0


def test_reading_a_produced_buffer_before_its_store_is_refused() -> None:
    reads = {"c": Access("B0", (of_axis("i"),), (2,), F32)}
    r = region({"i": 2}, reads, Store(In("c", ("i",), F32), Access("B0", (of_axis("i"),), (2,), F32)))
    with pytest.raises(ValueError, match="before B0 is stored"):
        evaluate(r, {"B0": np.zeros(2)}, {})


@pytest.mark.parametrize("dtype", [F32, F64, F16, BF16, I8, U8, I32, I64, BOOL])
def test_stores_make_buffers_of_the_declared_type(dtype: DType) -> None:
    r = region({"i": 2}, {}, Store(Const(1), Access("B0", (of_axis("i"),), (2,), dtype)))
    for wide in (False, True):
        buffers: dict[str, np.ndarray] = {}
        evaluate(r, buffers, {}, wide=wide)
        assert buffers["B0"].dtype == (np.float64 if wide and dtype.is_float else dtype.storage)
        one = round_to_bf16(np.ones(1))[0] if dtype is BF16 and not wide else 1
        assert buffers["B0"].tolist() == [one, one]


def test_raw_bf16_buffers_are_widened_and_rounded() -> None:
    access = Access("B0", (of_axis("i"),), (2,), BF16)
    out = Access("B1", (of_axis("i"),), (2,), BF16)
    double = Un("cast.bf16", Bin("mul", Un("cast.f32", In("a", ("i",), BF16)), Const(2.0)))
    raw = round_to_bf16(np.array([1.5, -3.0]))
    buffers = {"B0": raw, "B1": np.zeros(2, np.uint16)}
    evaluate(region({"i": 2}, {"a": access}, Store(double, out)), buffers, {}, wide=False)
    assert buffers["B1"].tolist() == round_to_bf16(np.array([3.0, -6.0])).tolist()


def test_transposed_buffer_is_written_in_place() -> None:
    base = np.zeros((3, 2))
    store = Store(
        Bin("add", Bin("mul", Pos("i"), Const(10)), Pos("j")),
        Access("B0", (of_axis("i"), of_axis("j")), (2, 3), I32),
    )
    evaluate(region({"j": 3, "i": 2}, {}, store), {"B0": base.T}, {})
    assert base.tolist() == [[0, 10], [1, 11], [2, 12]]


def test_slabs_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((7, 5)), rng.standard_normal((6, 5))
    accesses = {
        "x": Access("B0", (of_axis("s"), of_axis("k")), (7, 5), F32),
        "w": Access("B1", (of_axis("n"), of_axis("k")), (6, 5), F32),
    }
    product = Bin("mul", In("x", ("s", "k"), F32), In("w", ("n", "k"), F32))
    total = Bin("add", Red("sum", ("k",), product), Un("cast.f32", Pos("s")))
    r = region(
        {"s": 7, "n": 6, "k": 5},
        accesses,
        Store(total, Access("B2", (of_axis("n"), of_axis("s")), (6, 7), F32)),
    )
    monkeypatch.setattr(module, "SLAB", 12)
    buffers = {"B0": x, "B1": w}
    evaluate(r, buffers, {})
    np.testing.assert_allclose(buffers["B2"], w @ x.T + np.arange(7), rtol=1e-12)


def test_product_that_is_never_held_needs_no_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    accesses = {
        "x": Access("B0", (of_axis("s"), of_axis("k")), (4, 4), F32),
        "w": Access("B1", (of_axis("n"), of_axis("k")), (4, 4), F32),
    }
    total = Red("sum", ("k",), Bin("mul", In("x", ("s", "k"), F32), In("w", ("n", "k"), F32)))
    store = Store(total, Access("B2", (of_axis("s"), of_axis("n")), (4, 4), F32))
    made = region({"s": 4, "n": 4, "k": 4}, accesses, store)
    frame = module.Frame({a: range(4) for a in "snk"}, {}, made.accesses, {}, True)
    for largest, slabs in ((16, 1), (15, 2)):
        monkeypatch.setattr(module, "SLAB", largest)
        assert len(list(frame.slabs(store))) == slabs


def test_infinite_factor_stays_inside_its_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    total = Red("sum", ("k",), Bin("mul", In("a", ("i",), F32), In("b", ("i", "k"), F32)))
    a, b = np.array([-INF, 2.0, INF]), np.array([[1.0, -3.0], [1.0, 1.0], [1.0, 2.0]])
    for slab in (module.SLAB, 2):
        monkeypatch.setattr(module, "SLAB", slab)
        got, _ = evaluate_term(total, {"i": 3, "k": 2}, {"a": a, "b": b})
        np.testing.assert_array_equal(got, [np.nan, 4.0, INF])


def test_product_of_zero_and_an_infinity_is_no_number() -> None:
    total = Red("sum", ("k",), Bin("mul", In("a", ("i", "k"), F32), In("b", ("k", "j"), F32)))
    a, b = np.array([[INF, 1.0], [0.0, 2.0]]), np.array([[0.0, 1.0], [3.0, 4.0]])
    got, _ = evaluate_term(total, {"i": 2, "j": 2, "k": 2}, {"a": a, "b": b})
    np.testing.assert_array_equal(got, [[np.nan, INF], [6.0, 8.0]])


def test_regions_pass_values_by_actual_name() -> None:
    at = (of_axis("i"),)
    read = {"a": Access("B0", at, (2,), F32)}
    twice = region(
        {"i": 2},
        read,
        Store(Bin("add", In("a", ("i",), F32), In("a", ("i",), F32)), Access("B1", at, (2,), F32)),
    )
    first = Region("a", twice.axes, read, twice.stores, ("x", "%3"), {"B1": 0}, (), "")
    second = Region("b", twice.axes, read, twice.stores, ("%3", "%4"), {"B1": 0}, (), "")
    arrays = {"x": np.array([1.0, 2.0])}
    evaluate_regions([first, second], arrays, {})
    assert arrays["%4"].tolist() == [4, 8]


def test_deep_terms_do_not_recurse() -> None:
    term: Term = In("x", (), F64)
    for _ in range(5000):
        term = Bin("add", term, Const(1.0))
    assert evaluate_term(term, {}, {"x": np.float64(0)})[0] == 5000


def test_shared_terms_are_computed_once() -> None:
    term: Term = In("x", (), F64)
    for _ in range(200):
        term = Bin("max", term, term)
    assert evaluate_term(term, {}, {"x": np.float64(3)})[0] == 3


def test_constant_index_reads_one_row() -> None:
    access = Access("B0", (Index((), 1), of_axis("i")), (2, 3), F64)
    got = evaluate_term(In("a", ("i",), F64), {"i": 3}, {"B0": np.arange(6.0)}, {"a": access})[0]
    assert got.tolist() == [3, 4, 5]
