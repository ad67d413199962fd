"""Updates that begin where data says, or go round the end of a ring: in place, and as values."""

from __future__ import annotations

import numpy as np
import pytest

from lumi import dim
from lumi.dtype import F32, I32, I64
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.hlir.graph import Graph, Node
from lumi.hlir.reference import evaluate
from lumi.lower.order import order
from tests.lower.check import check
from tests.lower.spell import Spell
from tests.lower.test_states import writers

RNG = np.random.default_rng(5)
BATCH, ROOM = 3, 8


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def cached(b: Spell, start: Node, added: int, wrap: bool = False) -> Node:
    """A state of three sequences with new rows at their starts, and what is read of it."""
    x = b.mul(b.input("x", F32, (BATCH, 2, added, 4)), 2.0)
    state = b.state("kc", F32, (BATCH, 2, ROOM, 4))
    new = b.set_state("kc", b.update(state, x, 2, start, wrap))
    return b.sum(b.mul(new, 3.0), -1)


def checked(graph: Graph, at: list[int], added: int) -> list[Region]:
    arrays = {"x": rand(BATCH, 2, added, 4), "kc": rand(BATCH, 2, ROOM, 4), "at": np.array(at, np.int32)}
    return check(graph, arrays)


@pytest.mark.parametrize("at", [[0, 0, 0], [0, 3, 5], [5, 5, 1]])
def test_each_sequence_is_written_in_place_at_its_own_start(at: list[int]) -> None:
    b = Spell()
    graph = b.result(cached(b, b.input("at", I32, (BATCH,)), 3))
    regions = checked(graph, at, 3)
    assert writers(regions, "kc") == [0]
    assert len(order(graph).written) == 1


@pytest.mark.parametrize("added", [1, 3, ROOM])
@pytest.mark.parametrize("at", [[0, 7, 8], [5, 15, 1000], [2**20, 6, 7]])
def test_a_ring_is_written_round_its_end(at: list[int], added: int) -> None:
    b = Spell()
    graph = b.result(cached(b, b.input("at", I32, (BATCH,)), added, wrap=True))
    assert writers(checked(graph, at, added), "kc") == [0]


@pytest.mark.parametrize("past", [0, 5, 6, 7, 8, 21])
def test_a_ring_begins_at_a_dim(past: int) -> None:
    b = Spell(past=(0, 100))
    state = b.state("kc", F32, (ROOM, 4))
    new = b.set_state("kc", b.update(state, b.input("x", F32, (3, 4)), 0, dim.var("past"), wrap=True))
    regions = check(b.result(b.sum(new, -1)), {"x": rand(3, 4), "kc": rand(ROOM, 4)}, {"past": past})
    assert writers(regions, "kc") == [0]


@pytest.mark.parametrize("wrap", [False, True])
def test_computed_starts_make_a_new_value(wrap: bool) -> None:
    """No kernel may write where another one's result says: the state is copied afterwards."""
    b = Spell()
    start = b.add(b.input("at", I32, (BATCH,)), 2)
    graph = b.result(cached(b, start, 3, wrap))
    assert not order(graph).written
    checked(graph, [0, 1, 3], 3)


@pytest.mark.parametrize("wrap", [False, True])
def test_what_is_no_state_keeps_its_value(wrap: bool) -> None:
    b = Spell()
    x = b.input("x", F32, (BATCH, 2, ROOM, 4))
    y = b.exp2(b.input("y", F32, (BATCH, 2, 3, 4)))
    new = b.update(x, y, 2, b.input("at", I32, (BATCH,)), wrap)
    arrays = {"x": rand(BATCH, 2, ROOM, 4), "y": rand(BATCH, 2, 3, 4), "at": np.array([0, 5, 2], np.int32)}
    check(b.result(b.max(new, 2), x), arrays)


def test_starts_are_seen_through_views() -> None:
    b = Spell()
    at = b.reshape(b.slice(b.input("at", I32, (2, BATCH)), 0, 1, 2), (BATCH,))
    state = b.state("kc", F32, (BATCH, ROOM))
    b.set_state("kc", b.update(state, b.input("x", F32, (BATCH, 2)), 1, at))
    arrays = {"at": np.array([[9, 9, 9], [6, 0, 3]], np.int32), "x": rand(BATCH, 2), "kc": rand(BATCH, ROOM)}
    assert writers(check(b.result(b.input("y", F32, (1,))), arrays | {"y": rand(1)}), "kc") == [0]


def test_one_start_for_all() -> None:
    b = Spell()
    state = b.state("kc", F32, (ROOM, 2))
    b.set_state("kc", b.update(state, b.input("x", F32, (3, 2)), 0, b.input("at", I32, ())))
    graph = b.result(b.input("y", F32, (1,)))
    check(graph, {"at": np.array(5, np.int32), "x": rand(3, 2), "kc": rand(ROOM, 2), "y": rand(1)})


@pytest.mark.parametrize(("at", "wrap"), [([0, 6, 0], False), ([-1, 0, 0], False), ([0, -1, 0], True)])
def test_the_reference_refuses_starts_outside(at: list[int], wrap: bool) -> None:
    b = Spell()
    graph = b.result(cached(b, b.input("at", I32, (BATCH,)), 3, wrap))
    arrays = {"x": rand(BATCH, 2, 3, 4), "at": np.array(at, np.int32)}
    with pytest.raises(LumiError, match="update writes"):
        evaluate(graph, arrays, {})


def test_mistakes_are_found_when_the_update_is_made() -> None:
    b = Spell(seq=(1, 20))
    x, y = b.state("kc", F32, (BATCH, 2, ROOM, 4)), b.input("x", F32, (BATCH, 2, 3, 4))
    for start in (b.input("a", I64, (BATCH,)), b.input("b", I32, (2,)), b.input("c", I32, (BATCH, 2, 3))):
        with pytest.raises(LumiError, match="begins at"):
            b.update(x, y, 2, start)
    with pytest.raises(LumiError, match="a ring of 8 takes seq"):
        b.update(x, b.input("z", F32, (BATCH, 2, dim.var("seq"), 4)), 2, 0, wrap=True)
    with pytest.raises(LumiError, match="no fixed size"):
        long = b.input("w", F32, (dim.var("seq"),))
        b.update(long, b.input("v", F32, (1,)), 0, 0, wrap=True)
    with pytest.raises(LumiError, match="has a :max"):
        b.input("u", F32, (2,), most=3)
