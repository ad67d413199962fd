"""Symbolic sizes: merged, split, empty, one, and read from memory where a stride would be symbolic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lumi import dim
from lumi.dtype import F32, I32
from lumi.field.region import Region
from tests.lower.check import check
from tests.lower.spell import Spell

RNG = np.random.default_rng(5)


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def cuts(regions: list[Region]) -> list[str]:
    return [n.why for r in regions for n in r.notes if n.what == "cut"]


SEQ, PAST, BATCH = dim.var("seq"), dim.var("past"), dim.var("batch")


@pytest.mark.parametrize("seq", [1, 2, 5])
def test_split_of_channels_under_a_symbolic_length(seq: int) -> None:
    b = Spell(seq=(1, 9))
    y = b.linear(b.input("x", F32, (SEQ, 6)), "w", 8)
    heads = b.permute(b.reshape(y, (SEQ, 2, 4)), (1, 0, 2))
    regions = check(b.result(b.mul(heads, 2.0)), {"x": rand(seq, 6), "w": rand(8, 6)}, {"seq": seq})
    assert cuts(regions) == []


def test_merge_with_a_symbolic_major_factor_is_an_index_map() -> None:
    b = Spell(seq=(1, 9))
    y = b.reshape(b.mul(b.input("x", F32, (SEQ, 4)), 2.0), (SEQ * 4,))
    regions = check(b.result(b.exp2(y)), {"x": rand(3, 4)}, {"seq": 3})
    assert cuts(regions) == []


def test_merge_with_a_symbolic_stride_reads_memory() -> None:
    b = Spell(seq=(1, 9))
    x = b.linear(b.input("x", F32, (2, SEQ, 6)), "w", 4)
    y = b.linear(b.reshape(x, (2 * SEQ, 4)), "u", 3)
    arrays = {"x": rand(2, 5, 6), "w": rand(4, 6), "u": rand(3, 4)}
    regions = check(b.result(b.reshape(y, (2, SEQ, 3))), arrays, {"seq": 5})
    assert len(cuts(regions)) == 2


def test_merge_of_an_input_needs_no_copy() -> None:
    b = Spell(seq=(1, 9))
    y = b.linear(b.reshape(b.input("x", F32, (2, SEQ, 6)), (2 * SEQ, 6)), "w", 4)
    regions = check(b.result(y), {"x": rand(2, 5, 6), "w": rand(4, 6)}, {"seq": 5})
    assert cuts(regions) == []
    assert len(regions[0].stores) == 1


def test_merge_of_a_permuted_value_copies_it() -> None:
    b = Spell(seq=(1, 9))
    x = b.permute(b.input("x", F32, (SEQ, 2, 3)), (1, 0, 2))
    y = b.mul(b.reshape(x, (2 * SEQ, 3)), 2.0)
    regions = check(b.result(y), {"x": rand(4, 2, 3)}, {"seq": 4})
    assert len(cuts(regions)) == 1


def test_merge_of_a_broadcast_needs_no_memory() -> None:
    b = Spell(seq=(1, 9))
    one = b.expand(b.param("g", F32, (3,)), (2, SEQ, 3))
    y = b.add(b.reshape(one, (2 * SEQ, 3)), b.input("x", F32, (2 * SEQ, 3)))
    regions = check(b.result(y), {"g": rand(3), "x": rand(8, 3)}, {"seq": 4})
    assert cuts(regions) == []


def test_merged_positions_are_stored_for_their_reader() -> None:
    b = Spell(seq=(1, 9))
    at = b.expand(b.reshape(b.iota(SEQ), (1, SEQ)), (2, SEQ))
    y = b.add(b.reshape(at, (2 * SEQ,)), b.input("x", I32, (2 * SEQ,)))
    check(b.result(y), {"x": np.arange(8, dtype=np.int32)}, {"seq": 4})


def test_free_value_read_from_memory_in_two_scopes() -> None:
    b = Spell(seq=(1, 9))
    at = b.expand(b.reshape(b.iota(SEQ), (1, SEQ)), (2, SEQ))
    flat = b.cast(b.reshape(at, (2 * SEQ,)), F32)
    x = b.input("x", F32, (2 * SEQ,))
    for scope in ("a", "b"):
        with b.scope(scope):
            x = b.exp2(b.mul(b.add(x, flat), -0.5))
    check(b.result(x), {"x": rand(6)}, {"seq": 3})


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("seq", [1, 4])
def test_everything_symbolic(batch: int, seq: int) -> None:
    b = Spell(batch=(1, 8), seq=(1, 9))
    x = b.linear(b.input("x", F32, (BATCH, SEQ, 6)), "w", 8)
    q = b.permute(b.reshape(x, (BATCH, SEQ, 2, 4)), (0, 2, 1, 3))
    s = b.einsum(q, "bhid", q, "bhjd", "bhij")
    s = b.where(b.causal(SEQ, SEQ), s, -math.inf)
    o = b.permute(b.einsum(b.softmax(s, -1), "bhij", q, "bhjd", "bhid"), (0, 2, 1, 3))
    y = b.linear(b.reshape(o, (BATCH, SEQ, 8)), "o", 6)
    arrays = {"x": rand(batch, seq, 6), "w": rand(8, 6), "o": rand(6, 8)}
    check(b.result(y), arrays, {"batch": batch, "seq": seq})


@pytest.mark.parametrize("past", [0, 3])
def test_growing_length_is_one_axis(past: int) -> None:
    b = Spell(past=(0, 8), seq=(1, 9))
    total = PAST + SEQ
    old, new = b.input("old", F32, (PAST, 4)), b.input("new", F32, (SEQ, 4))
    y = b.sum(b.mul(b.concat([old, new], 0), b.param("g", F32, (4,))), 1)
    regions = check(
        b.result(y), {"old": rand(past, 4), "new": rand(2, 4), "g": rand(4)}, {"past": past, "seq": 2}
    )
    assert total in {a.extent for a in regions[0].axes}


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_tensors(shape: tuple[int, ...]) -> None:
    b = Spell()
    x = b.mul(b.input("x", F32, shape), 2.0)
    outputs = [x, b.sum(x, 0), b.max(x, *range(len(shape))), b.reshape(x, (0, 7)), b.pad(x, 0, 1, 1, 5.0)]
    check(b.result(*outputs), {"x": rand(*shape)})


def test_concatenation_with_nothing() -> None:
    b = Spell()
    y = b.concat([b.input("x", F32, (0, 2)), b.input("y", F32, (3, 2)), b.input("z", F32, (0, 2))], 0)
    check(b.result(y), {"x": rand(0, 2), "y": rand(3, 2), "z": rand(0, 2)})


def test_reduction_over_a_length_that_may_be_zero() -> None:
    b = Spell(past=(0, 8))
    x = b.input("x", F32, (PAST, 3))
    check(b.result(b.max(x, 0), b.sum(x, 0)), {"x": rand(0, 3)}, {"past": 0})


def test_dimensions_of_one_have_no_axis() -> None:
    b = Spell()
    x = b.input("x", F32, (1, 4, 1, 3, 1))
    y = b.sum(b.mul(b.reshape(x, (4, 1, 3)), 2.0), 1)
    z = b.softmax(b.permute(x, (4, 3, 2, 1, 0)), 0)
    (region,) = check(b.result(y, z), {"x": rand(1, 4, 1, 3, 1)})
    assert sorted(a.extent for a in region.axes) == [3, 4]


def test_dim_expressions_are_values() -> None:
    b = Spell(past=(0, 9), seq=(1, 9))
    exprs = [
        PAST,
        PAST + SEQ,
        PAST * SEQ - 3,
        (PAST + 1) // 2,
        (PAST * 3) % 4,
        (PAST - SEQ) // 3,
        (PAST - SEQ) % 3,
    ]
    graph = b.result(*(b.mul(b.symbol(e), 2) for e in exprs))
    check(graph, {}, {"past": 4, "seq": 7})


def test_windows_over_a_symbolic_length() -> None:
    b = Spell(seq=(3, 9))
    p = b.windows(b.pad(b.input("x", F32, (SEQ, 2)), 0, 2, 0), 0, 3)
    y = b.einsum(p, "ikc", b.param("w", F32, (3, 2)), "kc", "ic")
    check(b.result(y), {"x": rand(5, 2), "w": rand(3, 2)}, {"seq": 5})


def test_last_position_is_read_at_a_symbolic_index() -> None:
    b = Spell(seq=(1, 9))
    x = b.rms(b.input("x", F32, (2, SEQ, 4)))
    y = b.linear(b.slice(x, 1, SEQ - 1, SEQ), "w", 3)
    (region,) = check(b.result(y), {"x": rand(2, 5, 4), "w": rand(3, 4)}, {"seq": 5})
    assert SEQ not in {a.extent for a in region.axes}
