"""What a graph returns is in memory, whatever kind of node it is."""

from __future__ import annotations

import numpy as np

from lumi import dim
from lumi.dtype import BOOL, F32, I32
from lumi.lower.order import results
from tests.lower.check import check
from tests.lower.spell import Spell

RNG = np.random.default_rng(4)


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def test_leaves_are_returned_from_their_own_buffers() -> None:
    b = Spell()
    x, w, s = b.input("x", F32, (3,)), b.param("w", F32, (3,)), b.state("s", F32, (3,))
    graph = b.result(x, w, s)
    assert list(results(graph).outputs.values()) == ["x", "w", "s"]
    assert check(graph, {"x": rand(3), "w": rand(3), "s": rand(3)}) == []


def test_constants_positions_and_dims_are_stored() -> None:
    b = Spell(seq=(1, 9))
    seq = dim.var("seq")
    made = [b.const(2.5, F32), b.const(True, BOOL), b.const(7, I32), b.iota(5), b.iota(seq), b.symbol(seq)]
    check(b.result(*made, b.expand(b.const(2.5, F32), (2, 3))), {}, {"seq": 4})


def test_views_of_leaves_are_copied() -> None:
    b = Spell()
    x = b.input("x", F32, (3, 4))
    check(b.result(b.permute(x, (1, 0)), b.reshape(x, (12,)), b.slice(x, 1, 1, 3)), {"x": rand(3, 4)})


def test_one_node_may_be_two_outputs() -> None:
    b = Spell()
    y = b.exp2(b.input("x", F32, (3,)))
    graph = b.result(first=y, second=y)
    (region,) = check(graph, {"x": rand(3)})
    assert len(region.stores) == 1


def test_output_that_is_read_is_stored_once_and_read_back() -> None:
    b = Spell()
    y = b.linear(b.input("x", F32, (3, 4)), "w", 5)
    (region,) = check(b.result(y, b.exp2(y)), {"x": rand(3, 4), "w": rand(5, 4)})
    assert len(region.stores) == 2
    assert region.produced["B2"] == 0
    assert any(a.buffer == "B2" for a in region.accesses.values())


def test_free_value_may_be_an_output_and_used() -> None:
    b = Spell()
    w = b.add(b.param("w", F32, (4,)), 1.0)
    check(b.result(w, b.mul(b.input("x", F32, (3, 4)), w)), {"w": rand(4), "x": rand(3, 4)})


def test_output_and_view_of_it() -> None:
    b = Spell()
    y = b.linear(b.input("x", F32, (3, 4)), "w", 6)
    heads = b.permute(b.reshape(y, (3, 2, 3)), (1, 0, 2))
    check(b.result(y, heads, b.sum(heads, 0)), {"x": rand(3, 4), "w": rand(6, 4)})


def test_params_are_filled_by_their_init() -> None:
    b = Spell()
    g = b.param("g", F32, (4,), init=1.0)
    check(b.result(b.mul(b.input("x", F32, (3, 4)), g)), {"x": rand(3, 4)})


def test_scalars() -> None:
    b = Spell()
    x = b.input("x", F32, ())
    check(b.result(b.exp2(x), b.add(b.sum(b.expand(x, (4,)), 0), 1.0)), {"x": np.float32(0.5)})
