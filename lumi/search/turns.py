"""Launches that follow each other as one, whose kernels take turns: where that can be, and where it pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lumi.search.protocol import Backend
from lumi.search.trial import Way, cost


def in_turn(backend: Backend, ways: Sequence[Way]) -> Way | None:
    """One launch that does what several do; None where it cannot, or where there is but one."""
    step = backend.in_turn([w.step for w in ways]) if len(ways) > 1 else None
    if step is None:
        return None
    schedules = (f"{s.schedule.template} {dict(s.schedule.options)}" for s in step.turns)
    dims = tuple(sorted({n for w in ways for n in w.dims}))
    return Way(step, f"{' then '.join(w.key for w in ways)} as {', '.join(schedules)}", dims)


def runs(backend: Backend, ways: Sequence[Way]) -> list[tuple[int, int]]:
    """The longest stretches of launches that can be one each: the first, and behind the last."""
    found, start = list[tuple[int, int]](), 0
    while start < len(ways):
        stop = start + 1
        while stop < len(ways) and in_turn(backend, ways[start : stop + 1]) is not None:
            stop += 1
        if stop > start + 1:
            found.append((start, stop))
        start = stop
    return found


def favoured(backend: Backend, ways: Sequence[Way], hints: Sequence[Mapping[str, int]]) -> list[Way]:
    """The launches of a plan, those made one that the model expects to be faster so."""

    def seconds(way: Way) -> float:
        return sum(cost(backend, way.step, h).seconds for h in hints)

    def gains(way: Way) -> bool:
        steps = [w.step for w in (*group, way)]
        together = sum(backend.cost_in_turn(steps, h).seconds for h in hints)
        return together < seconds(found[-1]) + seconds(way)

    if not backend.joins:
        return list(ways)
    found: list[Way] = []
    group: list[Way] = []
    for way in ways:
        joined = in_turn(backend, [*group, way]) if group and gains(way) else None
        if joined is not None:
            group, found[-1] = [*group, way], joined
        else:
            group = [way]
            found.append(way)
    return found
