"""The arena: nothing alive overlaps, and little is wasted."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from lumi.bufferize.arena import pack
from lumi.bufferize.span import Span, meetings, peak
from lumi.bufferize.sweep import sweep

WASTE = 1.05


def spans(seed: int, count: int = 60) -> dict[str, Span]:
    """Random spans as a chain of kernels makes them: mostly short, a few long, sizes far apart."""
    chance = random.Random(seed)
    found = {}
    for k in range(count):
        first = chance.randrange(40)
        length = chance.choice([0, 1, 1, 2, 3, 30])
        found[f"s{k}"] = Span(256 * chance.choice([1, 2, 3, 8, 16, 100]), first, min(40, first + length))
    return found


def layers(*block: tuple[int, int, int], count: int = 6) -> dict[str, Span]:
    """Layers one behind another: a block of (size, first, last) where last may reach into the next."""
    length = max(first for _, first, _ in block) + 1
    return {
        f"{layer}.{k}": Span(256 * size, layer * length + first, layer * length + last)
        for layer in range(count)
        for k, (size, first, last) in enumerate(block)
    }


def check(all_spans: Mapping[str, Span], offsets: Mapping[str, int], size: int) -> None:
    """Nothing lies outside, nothing alive lies on top of another, all is aligned as sizes are."""
    grain = math.gcd(*(s.size for s in all_spans.values()))
    assert offsets.keys() == all_spans.keys()
    assert all(o >= 0 and o + all_spans[n].size <= size and o % grain == 0 for n, o in offsets.items())
    for name, others in meetings(all_spans).items():
        for other in others:
            below, above = sorted((name, other), key=lambda n: offsets[n])
            assert offsets[below] + all_spans[below].size <= offsets[above]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("count", [2, 60, 200])
def test_live_spans_never_overlap_and_little_is_wasted(seed: int, count: int) -> None:
    all_spans = spans(seed, count)
    arena = pack(all_spans)
    check(all_spans, arena.offsets, arena.size)
    assert arena.size == max(arena.offsets[n] + s.size for n, s in all_spans.items())
    assert arena.peak == peak(all_spans.values()) <= arena.size <= WASTE * arena.peak


@pytest.mark.parametrize("seed", range(100))
def test_meetings_and_peak_are_what_they_say(seed: int) -> None:
    all_spans = spans(seed, 25)
    for name, others in meetings(all_spans).items():
        want = {n for n, s in all_spans.items() if n != name and s.meets(all_spans[name])}
        assert set(others) == want and len(others) == len(want)
    alive = [sum(s.size for s in all_spans.values() if s.first <= t <= s.last) for t in range(42)]
    assert peak(all_spans.values()) == max(alive)


@pytest.mark.parametrize(
    "block",
    [
        [(4, 0, 5), (4, 1, 3), (4, 2, 3), (2, 3, 4), (8, 4, 6), (8, 4, 6)],
        [(16, 0, 6), (24, 1, 2), (4, 1, 3), (12, 2, 3), (28, 4, 5), (28, 5, 6)],
    ],
)
def test_layers_reach_the_peak_however_many(block: list[tuple[int, int, int]]) -> None:
    for count in (1, 2, 7, 32):
        arena = pack(layers(*block, count=count))
        assert arena.size == arena.peak


def test_a_sweep_undoes_what_no_order_of_placing_can() -> None:
    """Placed greedily, the short span in the middle keeps the next large one from the room of both others."""
    held = {
        "a": Span(256 * 3, 0, 1),
        "b": Span(256 * 2, 0, 2),
        "c": Span(256 * 1, 1, 4),
        "d": Span(256 * 4, 2, 3),
        "e": Span(256 * 3, 3, 4),
        "f": Span(256 * 5, 4, 5),
    }
    least = peak(held.values())
    found = sweep(held, least, 64)
    assert found is not None
    check(held, found, least)


@pytest.mark.parametrize("seed", range(40))
def test_a_sweep_keeps_to_its_room_or_finds_nothing(seed: int) -> None:
    all_spans = spans(seed, 40)
    least = peak(all_spans.values())
    assert sweep(all_spans, least - 256, 32) is None
    for room in (least, least + 256 * 20):
        found = sweep(all_spans, room, 32)
        if found is not None:
            check(all_spans, found, room)


def test_the_same_spans_are_placed_the_same_whatever_their_order() -> None:
    all_spans = spans(7, 120)
    names = list(all_spans)
    random.Random(1).shuffle(names)
    assert pack({n: all_spans[n] for n in names}).size == pack(all_spans).size


def test_very_many_that_live_at_once_are_placed_without_a_search() -> None:
    crowd = {f"s{k}": Span(256 * (1 + k % 7), k % 3, 900 + k % 5) for k in range(900)}
    arena = pack(crowd)
    check(crowd, arena.offsets, arena.size)
    assert arena.size == arena.peak


def test_a_chain_of_two_live_buffers_needs_only_two() -> None:
    chain = {f"s{k}": Span(1024, k, k + 1) for k in range(50)}
    arena = pack(chain)
    assert (arena.size, arena.peak) == (2048, 2048)
    for a, b in pairwise(chain):
        assert {arena.offsets[a], arena.offsets[b]} == {0, 1024}


def test_a_freed_gap_is_used_by_the_tightest_fit() -> None:
    held = {
        "wide": Span(1024, 0, 1),
        "wall": Span(256, 0, 9),
        "tight": Span(512, 0, 1),
        "roof": Span(256, 0, 9),
        "new": Span(512, 2, 3),
        "big": Span(1024, 2, 3),
    }
    assert pack(held).size == peak(held.values()) == 2048


def test_an_arena_above_its_peak_is_no_larger_than_it_must_be() -> None:
    """Five spans that no arena of their peak holds, whatever lies where."""
    tight = {
        "a": Span(256 * 2, 0, 2),
        "b": Span(256 * 1, 0, 1),
        "c": Span(256 * 1, 0, 0),
        "d": Span(256 * 2, 1, 2),
        "e": Span(256 * 1, 2, 4),
    }
    arena = pack(tight)
    check(tight, arena.offsets, arena.size)
    larger = {n: replace(s, size=3 * s.size) for n, s in tight.items()}
    assert pack(larger).size == 3 * arena.size


def test_nothing_needs_nothing() -> None:
    arena = pack({})
    assert (arena.size, arena.peak, arena.offsets) == (0, 0, {})
