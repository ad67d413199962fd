"""When a buffer holds something, and how much room it needs then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def peak(spans: Iterable[Span]) -> int:
    """The most bytes alive at one time."""
    changes: dict[int, int] = {}
    for span in spans:
        changes[span.first] = changes.get(span.first, 0) + span.size
        changes[span.last + 1] = changes.get(span.last + 1, 0) - span.size
    most = alive = 0
    for time in sorted(changes):
        alive += changes[time]
        most = max(most, alive)
    return most


def meetings(spans: Mapping[str, Span]) -> dict[str, list[str]]:
    """For each span those that are alive with it at some time."""
    found: dict[str, list[str]] = {name: [] for name in spans}
    alive: list[str] = []
    for name in sorted(spans, key=lambda n: spans[n].first):
        alive = [other for other in alive if spans[other].last >= spans[name].first]
        for other in alive:
            found[other].append(name)
            found[name].append(other)
        alive.append(name)
    return found
