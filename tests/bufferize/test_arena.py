"""The arena: nothing alive overlaps, and little is wasted."""

from __future__ import annotations

import random

import pytest

from lumi.bufferize.arena import Span, pack, peak


def spans(seed: int, count: int = 60) -> dict[str, Span]:
    """Random spans as a chain of kernels makes them: mostly short, a few long, sizes far apart."""
    chance = random.Random(seed)
    found = {}
    for k in range(count):
        first = chance.randrange(40)
        length = chance.choice([0, 1, 1, 2, 3, 30])
        found[f"s{k}"] = Span(256 * chance.choice([1, 2, 3, 8, 16, 100]), first, min(40, first + length))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_live_spans_never_overlap(seed: int) -> None:
    all_spans = spans(seed)
    arena = pack(all_spans)
    names = list(all_spans)
    for k, a in enumerate(names):
        for b in names[:k]:
            if all_spans[a].meets(all_spans[b]):
                (x, y), (u, v) = ((arena.offsets[n], arena.offsets[n] + all_spans[n].size) for n in (a, b))
                assert y <= u or v <= x
    assert arena.size == max(arena.offsets[n] + all_spans[n].size for n in names)
    assert arena.peak <= arena.size <= 1.25 * arena.peak


def test_a_chain_of_two_live_buffers_needs_only_two() -> None:
    chain = {f"s{k}": Span(1024, k, k + 1) for k in range(50)}
    arena = pack(chain)
    assert (arena.size, arena.peak) == (2048, 2048)


def test_a_freed_gap_is_used_by_the_tightest_fit() -> None:
    held = {
        "wide": Span(1024, 0, 1),
        "wall": Span(256, 0, 9),
        "tight": Span(512, 0, 1),
        "roof": Span(256, 0, 9),
        "new": Span(512, 2, 3),
        "big": Span(1024, 2, 3),
    }
    assert pack(held).size == peak(held) == 2048


def test_nothing_needs_nothing() -> None:
    arena = pack({})
    assert (arena.size, arena.peak, arena.offsets) == (0, 0, {})
