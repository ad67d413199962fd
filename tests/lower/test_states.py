"""States: written in place where that is safe, read in the right version everywhere."""

from __future__ import annotations

import numpy as np
import pytest

from lumi import dim
from lumi.dtype import F32, I32
from lumi.field.region import Region
from lumi.lower.order import order, results
from tests.lower.check import check
from tests.lower.spell import Spell

RNG = np.random.default_rng(3)


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def writers(regions: list[Region], key: str) -> list[int]:
    """The regions that store to a state."""
    found = []
    for number, region in enumerate(regions):
        stored = {region.buffers[int(s.access.buffer[1:])] for s in region.stores}
        if key in stored:
            found.append(number)
    return found


def test_cache_is_written_in_place_and_read_afterwards() -> None:
    b = Spell(past=(0, 20), seq=(1, 20))
    past, seq = dim.var("past"), dim.var("seq")
    k = b.linear(b.input("x", F32, (seq, 8)), "w", 4)
    cache = b.set_state("kc", b.update(b.state("kc", F32, (20, 4)), k, 0, past))
    y = b.einsum(b.param("q", F32, (4,)), "d", b.slice(cache, 0, 0, past + seq), "jd", "j")
    arrays = {"x": rand(3, 8), "w": rand(4, 8), "kc": rand(20, 4), "q": rand(4)}
    regions = check(b.result(y), arrays, {"past": 5, "seq": 3})
    assert len(regions) == 1
    assert writers(regions, "kc") == [0]
    assert not any(a.clamp for a in regions[0].accesses.values())
    assert regions[0].produced["B2"] == 0


def test_old_and_new_version_are_read_in_two_regions() -> None:
    b = Spell()
    old = b.state("s", F32, (6,))
    new = b.set_state("s", b.update(old, b.mul(b.input("x", F32, (2,)), 2.0), 0, 1))
    regions = check(b.result(b.sum(old, 0), b.sum(new, 0)), {"s": rand(6), "x": rand(2)})
    assert writers(regions, "s") == [len(regions) - 1]
    assert len(regions) == 2


def test_reader_made_after_the_update_still_sees_the_old_version() -> None:
    b = Spell()
    old = b.state("s", F32, (6,))
    b.set_state("s", b.update(old, b.input("x", F32, (2,)), 0, 1))
    late = b.sum(b.mul(old, 3.0), 0)
    check(b.result(late), {"s": rand(6), "x": rand(2)})


def test_part_made_from_the_old_state_is_computed_first() -> None:
    b = Spell()
    old = b.state("s", F32, (6,))
    part = b.mul(b.slice(old, 0, 2, 5), 0.5)
    b.set_state("s", b.update(old, part, 0, 1))
    regions = check(b.result(b.input("x", F32, (1,))), {"s": rand(6), "x": rand(1)})
    assert writers(regions, "s") == [1]


def test_shift_within_a_state_is_not_done_in_place() -> None:
    b = Spell()
    old = b.state("s", F32, (6, 2))
    graph = b.result()
    b.set_state("s", b.update(old, b.slice(old, 0, 1, 6), 0, 0))
    graph = b.result()
    assert order(graph).written == frozenset()
    assert results(graph).updates["s"].startswith("%")
    check(graph, {"s": rand(6, 2)})


def test_reader_of_the_old_version_that_needs_the_new_one_forbids_writing_in_place() -> None:
    b = Spell()
    old = b.state("s", F32, (4,))
    new = b.set_state("s", b.update(old, b.input("x", F32, (2,)), 0, 1))
    other = b.state("t", F32, (4,))
    written = b.set_state("t", b.update(other, b.input("z", F32, (1,)), 0, 0))
    mixed = b.add(b.add(old, b.sum(new, 0)), written)
    graph = b.result(mixed)
    assert results(graph).updates == {"s": f"%{new.id}", "t": "t"}
    check(graph, {"s": rand(4), "x": rand(2), "t": rand(4), "z": rand(1)})


def test_chain_of_updates_is_written_step_by_step() -> None:
    b = Spell(past=(0, 4))
    past = dim.var("past")
    first = b.update(b.state("s", F32, (8,)), b.input("x", F32, (2,)), 0, past)
    second = b.update(first, b.mul(b.sum(first, 0, keep=True), 1.0), 0, past + 2)
    b.set_state("s", second)
    graph = b.result(b.sum(first, 0), b.mul(second, 2.0))
    regions = check(graph, {"s": rand(8), "x": rand(2)}, {"past": 3})
    assert len(writers(regions, "s")) == 2


def test_outputs_may_be_any_version_of_a_state() -> None:
    b = Spell()
    old = b.state("s", F32, (5,))
    first = b.update(old, b.input("x", F32, (2,)), 0, 0)
    last = b.set_state("s", b.update(first, b.input("z", F32, (2,)), 0, 3))
    graph = b.result(first=first, last=last)
    assert results(graph).outputs == {"first": f"%{first.id}", "last": "s"}
    check(graph, {"s": rand(5), "x": rand(2), "z": rand(2)})


def test_update_of_a_value_that_is_no_state_selects() -> None:
    b = Spell(past=(0, 4))
    x, y = b.input("x", F32, (6, 3)), b.input("y", F32, (2, 3))
    z = b.update(b.mul(x, 2.0), b.mul(y, 3.0), 0, dim.var("past"))
    (region,) = check(b.result(z), {"x": rand(6, 3), "y": rand(2, 3)}, {"past": 4})
    assert "(select " in region.key


def test_update_that_is_not_kept_leaves_the_state_alone() -> None:
    b = Spell()
    tried = b.update(b.state("s", F32, (5,)), b.input("x", F32, (2,)), 0, 1)
    graph = b.result(b.sum(tried, 0))
    regions = check(graph, {"s": rand(5), "x": rand(2)})
    assert writers(regions, "s") == []


def test_whole_new_value_is_left_beside_the_state() -> None:
    b = Spell()
    count = b.state("n", I32, ())
    b.set_state("n", b.add(count, 1))
    graph = b.result(b.mul(count, 2))
    assert results(graph).updates["n"].startswith("%")
    check(graph, {"n": np.int32(7)})


def test_states_may_be_swapped_and_copied() -> None:
    b = Spell()
    s, t = b.state("s", F32, (3,)), b.state("t", F32, (3,))
    b.set_state("s", t)
    b.set_state("t", s)
    graph = b.result(b.add(s, t))
    assert results(graph).updates == {"s": "t", "t": "s"}
    check(graph, {"s": rand(3), "t": rand(3)})


def test_update_of_another_state_is_a_value() -> None:
    b = Spell()
    s, t = b.state("s", F32, (4,)), b.state("t", F32, (4,))
    new = b.update(s, b.input("x", F32, (2,)), 0, 1)
    b.set_state("s", new)
    b.set_state("t", new)
    graph = b.result(b.sum(t, 0))
    assert results(graph).updates == {"s": "s", "t": f"%{new.id}"}
    check(graph, {"s": rand(4), "t": rand(4), "x": rand(2)})


def test_view_of_a_state_as_its_new_value() -> None:
    b = Spell()
    s = b.state("s", F32, (4, 4))
    b.set_state("s", b.permute(s, (1, 0)))
    check(b.result(b.sum(s, 0)), {"s": rand(4, 4)})


@pytest.mark.parametrize("size", [1, 3])
def test_update_of_a_whole_state(size: int) -> None:
    b = Spell()
    s = b.state("s", F32, (size, 2))
    new = b.set_state("s", b.update(s, b.mul(b.input("x", F32, (size, 2)), 2.0), 0, 0))
    check(b.result(b.sum(new, 0, 1)), {"s": rand(size, 2), "x": rand(size, 2)})


def test_scopes_order_old_readers_before_the_write() -> None:
    b = Spell()
    s = b.state("s", F32, (4,))
    with b.scope("a"):
        first = b.exp2(b.mul(s, 2.0))
    with b.scope("b"):
        b.set_state("s", b.update(s, b.slice(first, 0, 0, 2), 0, 1))
    with b.scope("a"):
        last = b.exp2(b.mul(s, 3.0))
    check(b.result(last), {"s": rand(4)})
