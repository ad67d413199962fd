"""Places buffers in one arena: live buffers never overlap, and the arena is as small as can be found.

Finding the smallest arena is NP-hard (dynamic storage allocation); of three greedy orders the best is
taken, and the peak of live bytes, which no arena can undercut, is reported beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """`size` bytes that hold something from time `first` to time `last`, both included."""

    size: int
    first: int
    last: int

    def meets(self, other: Span) -> bool:
        """Whether both are alive at some time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Arena:
    """Offsets by name; `size` and `peak` are bytes."""

    offsets: Mapping[str, int]
    size: int
    peak: int


def pack(spans: Mapping[str, Span]) -> Arena:
    """Place every span.  Offsets are multiples of whatever all sizes are multiples of."""
    orders: tuple[Callable[[str], tuple[int, ...]], ...] = (
        lambda n: (spans[n].first, -spans[n].size),
        lambda n: (-spans[n].size, spans[n].first),
        lambda n: (-spans[n].size * (spans[n].last - spans[n].first + 1), spans[n].first),
    )
    packed = [_place(spans, sorted(spans, key=order)) for order in orders]
    sizes = [max((o + spans[n].size for n, o in offsets.items()), default=0) for offsets in packed]
    best = sizes.index(min(sizes))
    return Arena(packed[best], sizes[best], peak(spans))


def peak(spans: Mapping[str, Span]) -> int:
    """The most bytes alive at one time."""
    times = {s.first for s in spans.values()}
    return max((sum(s.size for s in spans.values() if s.first <= t <= s.last) for t in times), default=0)


def _place(spans: Mapping[str, Span], order: list[str]) -> dict[str, int]:
    """Best fit: each span goes into the tightest gap between those placed that are alive with it."""
    offsets: dict[str, int] = {}
    for name in order:
        taken = sorted(
            (offsets[n], offsets[n] + spans[n].size) for n in offsets if spans[n].meets(spans[name])
        )
        offsets[name] = _best_gap(taken, spans[name].size)
    return offsets


def _best_gap(taken: list[tuple[int, int]], size: int) -> int:
    best, tightest, end = -1, 0, 0
    for start, stop in taken:
        room = start - end
        if room >= size and (best < 0 or room < tightest):
            best, tightest = end, room
        end = max(end, stop)
    return best if best >= 0 else end
