"""Which variants a plan gets: each is a box of dim values, special ones before the general one."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lumi import dim
from lumi.dim import Dim, DimRange, Extent

USUAL = 64
"""Where an unhinted dim is searched, if its range allows."""


FAR = 8
"""How many times as large a hint is, at least, that gets a box of its own."""


@dataclass(frozen=True, slots=True)
class Box:
    """`bind` fixes dims to one value; `free` are the others, with the hints to search at."""

    bind: Mapping[str, int]
    free: Mapping[str, DimRange]

    def __str__(self) -> str:
        fixed = [DimRange(name, value, value, ()) for name, value in self.bind.items()]
        return spelled([*fixed, *self.free.values()])

    def hints(self, gaps: Collection[Extent] = ()) -> tuple[dict[str, int], ...]:
        """Values for all free dims: the k-th hint of each, the last one where a dim has fewer.

        Gaps are room that a call must find: where one would be negative, dims are lowered, the largest first.
        """
        hints = {name: r.hints or (min(max(USUAL, r.low), r.high),) for name, r in self.free.items()}
        count = max(map(len, hints.values()), default=1)
        every = [{n: h[min(k, len(h) - 1)] for n, h in hints.items()} for k in range(count)]
        for gap, values in itertools.product(gaps, every):
            self._lower(values, gap)
        return tuple(dict(pairs) for pairs in dict.fromkeys(tuple(values.items()) for values in every))

    def _lower(self, values: dict[str, int], gap: Extent) -> None:
        """Lower values as little as it takes for a gap not to be negative, if it grows as they fall."""
        names = values.keys() & gap.names() if isinstance(gap, Dim) else set[str]()
        for name in sorted(names, key=lambda n: (-values[n], n)):
            tried = range(self.free[name].low, values[name] + 1)

            def left(value: int, name: str = name) -> int:
                return dim.value(gap, {**values, name: value})

            if left(tried[-1]) < 0 and left(tried[0]) > left(tried[-1]):
                fitting = bisect.bisect(tried, 0, key=lambda v: -left(v))
                values[name] = tried[max(fitting - 1, 0)]

    def holds(self, other: Box) -> bool:
        """Whether all calls of another box lie in this one."""
        free = {n: (r.low, r.high) for n, r in other.free.items()} | {
            n: (v, v) for n, v in other.bind.items()
        }
        mine = {n: (r.low, r.high) for n, r in self.free.items()} | {n: (v, v) for n, v in self.bind.items()}
        return all(low <= free[n][0] and free[n][1] <= high for n, (low, high) in mine.items())

    def at(self, dims: Iterable[str]) -> Box:
        """The box as it is for something that depends on these free dims only."""
        return Box({}, {name: self.free[name] for name in dims})

    def ranges(self, whole: Mapping[str, DimRange]) -> dict[str, DimRange]:
        """The values of every dim in `whole` that lie in the box."""
        found = dict(whole)
        found |= {n: DimRange(n, value, value, ()) for n, value in self.bind.items() if n in whole}
        return found | {n: r for n, r in self.free.items() if n in whole}


def spelled(ranges: Collection[DimRange]) -> str:
    """Which calls a box is for, what is fixed before what is not: `seq = 1, past 0…2047`."""
    fixed = [f"{r.name} = {r.low}" for r in ranges if r.low == r.high]
    return ", ".join([*fixed, *(f"{r.name} {r.low}…{r.high}" for r in ranges if r.low < r.high)])


def boxes(dims: Mapping[str, DimRange], bind: Mapping[str, int], special: bool = True) -> tuple[Box, ...]:
    """The boxes for dims of which `bind` are fixed.

    A dim hinted at 1 and at more gets a box of its own where it is 1, because an axis of size 1 is no
    axis at all (the decode step of a language model).  The other hints of such a dim share a box, unless they
    are `FAR` from each other: what is fastest for a few rows is not for thousands.  The last box is general.
    """
    free = {n: r for n, r in dims.items() if n not in bind}
    ones = {n: 1 for n, r in free.items() if special and 1 in r.hints and {*r.hints} != {1}}
    if not ones:
        return (Box(bind, free),)
    parts = [_parts(r) if n in ones else (r,) for n, r in free.items()]
    rest = [Box(bind, {r.name: r for r in ranges}) for ranges in itertools.product(*parts)]
    return (Box({**bind, **ones}, {n: r for n, r in free.items() if n not in ones}), *rest)


def _parts(whole: DimRange) -> tuple[DimRange, ...]:
    """Ranges for all hints of a dim but 1, each from its lowest value on; the last is the whole."""
    groups: list[list[int]] = []
    for hint in sorted({*whole.hints} - {1}):
        if not groups or hint >= FAR * groups[-1][-1]:
            groups.append([])
        groups[-1].append(hint)
    ends = [math.isqrt(first[-1] * then[0]) for first, then in itertools.pairwise(groups)]
    return tuple(
        DimRange(whole.name, whole.low, end, tuple(hints))
        for hints, end in zip(groups, [*ends, whole.high], strict=True)
    )
