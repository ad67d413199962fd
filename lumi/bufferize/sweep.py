"""Places spans in an arena of a given size by a sweep through time that keeps several layouts.

A layout is what is alive at a time, and where.  A span that begins goes to one end of a gap that is wide
enough; layouts that differ only in what has ended are one.  Few buffers of a model are alive at once, so
that few layouts go a long way: what one order of placing cannot undo, another layout has done otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lumi.bufferize.span import Span

_Layout: TypeAlias = tuple[tuple[int, int, int], ...]
"""Begin, end and last time of each span alive, sorted."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The offset that a span got, after those before it."""

    name: str
    offset: int
    before: _Chosen | None


def sweep(spans: Mapping[str, Span], size: int, width: int) -> dict[str, int] | None:
    """Offsets below which and whose spans' ends lie `size` bytes; None where none of `width` layouts goes on.

    Offsets are multiples of whatever `size` and all sizes are multiples of.
    """
    layouts: dict[_Layout, _Chosen | None] = {(): None}
    time = min((s.first for s in spans.values()), default=0)
    for name in sorted(spans, key=lambda n: (spans[n].first, -spans[n].last, -spans[n].size)):
        span = spans[name]
        if span.first > time:
            time = span.first
            layouts = _ended(layouts, time)
        found: dict[_Layout, _Chosen | None] = {}
        for layout, chosen in layouts.items():
            for offset in _offsets(layout, span.size, size):
                grown = tuple(sorted((*layout, (offset, offset + span.size, span.last))))
                found.setdefault(grown, _Chosen(name, offset, chosen))
        if not found:
            return None
        layouts = _best(found, size, width)
    chosen, offsets = next(iter(layouts.values())), dict[str, int]()
    while chosen is not None:
        offsets[chosen.name] = chosen.offset
        chosen = chosen.before
    return offsets


def _ended(layouts: Mapping[_Layout, _Chosen | None], time: int) -> dict[_Layout, _Chosen | None]:
    """The layouts without the spans that ended before `time`."""
    found: dict[_Layout, _Chosen | None] = {}
    for layout, chosen in layouts.items():
        found.setdefault(tuple(one for one in layout if one[2] >= time), chosen)
    return found


def _offsets(layout: _Layout, wanted: int, size: int) -> Iterator[int]:
    """Both ends of every gap that is wide enough."""
    for begin, room in _gaps(layout, size):
        if room >= wanted:
            yield begin
            if room > wanted:
                yield begin + room - wanted


def _gaps(layout: _Layout, size: int) -> Iterator[tuple[int, int]]:
    """Where each gap begins, and how wide it is; an empty one too."""
    end = 0
    for begin, stop, _ in layout:
        yield end, begin - end
        end = stop
    yield end, size - end


def _best(found: dict[_Layout, _Chosen | None], size: int, width: int) -> dict[_Layout, _Chosen | None]:
    """The layouts whose gaps are the widest; ties by the layouts themselves, so that plans are made again."""
    if len(found) <= width:
        return found
    ranked = sorted(found, key=lambda layout: (-sum(room * room for _, room in _gaps(layout, size)), layout))
    return {layout: found[layout] for layout in ranked[:width]}
