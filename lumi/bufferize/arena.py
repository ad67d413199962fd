"""Places buffers in one arena: live buffers never overlap, and the arena is as small as can be found.

Finding the smallest arena is NP-hard (dynamic storage allocation).  The peak of live bytes, which no arena
can undercut, is reported beside it, and where greedy orders do not reach it, a sweep through time tries to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lumi.bufferize.span import Span, meetings, peak
from lumi.bufferize.sweep import sweep

WIDTHS = (16, 64, 256)
"""Layouts that a sweep keeps at a time: more where fewer do not reach the peak."""

EFFORT = 1 << 23
"""Gaps that a sweep may look at, a few seconds: where very many buffers are alive at once, it keeps less."""

HALVINGS = 5
"""How often the room between peak and smallest arena so far is halved, where no sweep reaches the peak."""


@dataclass(frozen=True, slots=True)
class Arena:
    """Offsets by name; `size` and `peak` are bytes."""

    offsets: Mapping[str, int]
    size: int
    peak: int


def pack(spans: Mapping[str, Span]) -> Arena:
    """Place every span.  Offsets are multiples of whatever all sizes are multiples of."""
    near, least = meetings(spans), peak(spans.values())
    best = _greedy(spans, near)
    gaps = sum((len(others) + 1) ** 2 for others in near.values())
    widths = [width for width in WIDTHS if width * gaps <= EFFORT]
    for width in widths:
        if _size(spans, best) == least:
            break
        best = sweep(spans, least, width) or best
    if widths:
        best = _closer(spans, best, least, widths[-1])
    return Arena(best, _size(spans, best), least)


def _greedy(spans: Mapping[str, Span], near: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The best of some orders in which each span takes the tightest gap."""
    orders: tuple[Callable[[str], tuple[int, ...]], ...] = (
        lambda n: (spans[n].first, -spans[n].size),
        lambda n: (-spans[n].size, spans[n].first),
        lambda n: (-spans[n].size * (spans[n].last - spans[n].first + 1), spans[n].first),
    )
    placed = (_place(spans, near, sorted(spans, key=order)) for order in orders)
    return min(placed, key=lambda offsets: _size(spans, offsets))


def _closer(spans: Mapping[str, Span], best: dict[str, int], least: int, width: int) -> dict[str, int]:
    """Offsets in an arena between the peak and what was found, where sweeps did not reach the peak."""
    grain = math.gcd(*(s.size for s in spans.values())) or 1
    low, high = least, _size(spans, best)
    for _ in range(HALVINGS):
        middle = low + (high - low) // 2 // grain * grain
        if middle <= low:
            break
        found = sweep(spans, middle, width)
        if found is None:
            low = middle
        else:
            best, high = found, _size(spans, found)
    return best


def _size(spans: Mapping[str, Span], offsets: Mapping[str, int]) -> int:
    return max((offset + spans[name].size for name, offset in offsets.items()), default=0)


def _place(
    spans: Mapping[str, Span], near: Mapping[str, Sequence[str]], order: Sequence[str]
) -> dict[str, int]:
    """Best fit: each span goes into the tightest gap between those placed that are alive with it."""
    offsets: dict[str, int] = {}
    for name in order:
        taken = sorted((offsets[n], offsets[n] + spans[n].size) for n in near[name] if n in offsets)
        offsets[name] = _best_gap(taken, spans[name].size)
    return offsets


def _best_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    best, tightest, end = -1, 0, 0
    for start, stop in taken:
        room = start - end
        if room >= size and (best < 0 or room < tightest):
            best, tightest = end, room
        end = max(end, stop)
    return best if best >= 0 else end
