"""Which variants a plan gets: each is a box of dim values, special ones before the general one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from lumi.dim import DimRange

USUAL = 64
"""Where an unhinted dim is searched, if its range allows."""


@dataclass(frozen=True, slots=True)
class Box:
    """`bind` fixes dims to one value; `free` are the others, with the hints to search at."""

    bind: Mapping[str, int]
    free: Mapping[str, DimRange]

    def __str__(self) -> str:
        fixed = [DimRange(name, value, value, ()) for name, value in self.bind.items()]
        return spelled([*fixed, *self.free.values()])

    def hints(self) -> tuple[dict[str, int], ...]:
        """Values for all free dims: the k-th hint of each, the last one where a dim has fewer."""
        hints = {name: r.hints or (min(max(USUAL, r.low), r.high),) for name, r in self.free.items()}
        count = max(map(len, hints.values()), default=1)
        return tuple({n: h[min(k, len(h) - 1)] for n, h in hints.items()} for k in range(count))

    def at(self, dims: Iterable[str]) -> Box:
        """The box as it is for something that depends on these free dims only."""
        return Box({}, {name: self.free[name] for name in dims})

    def ranges(self, whole: Mapping[str, DimRange]) -> dict[str, DimRange]:
        """The values of every dim in `whole` that lie in the box."""
        return {
            n: DimRange(n, self.bind[n], self.bind[n], ()) if n in self.bind else r for n, r in whole.items()
        }


def spelled(ranges: Collection[DimRange]) -> str:
    """Which calls a box is for, what is fixed before what is not: `seq = 1, past 0…2047`."""
    fixed = [f"{r.name} = {r.low}" for r in ranges if r.low == r.high]
    return ", ".join([*fixed, *(f"{r.name} {r.low}…{r.high}" for r in ranges if r.low < r.high)])


def boxes(dims: Mapping[str, DimRange], bind: Mapping[str, int], special: bool = True) -> tuple[Box, ...]:
    """The boxes for dims of which `bind` are fixed.

    A dim hinted at 1 and at more gets a box of its own where it is 1, because an axis of size 1 is no
    axis at all (the decode step of a language model); the general box is then searched at the other hints.
    """
    free = {n: r for n, r in dims.items() if n not in bind}
    ones = {n: 1 for n, r in free.items() if special and len(r.hints) > 1 and r.hints[0] == 1}
    if not ones:
        return (Box(bind, free),)
    rest = {n: DimRange(n, r.low, r.high, r.hints[1:]) if n in ones else r for n, r in free.items()}
    return (Box({**bind, **ones}, {n: r for n, r in free.items() if n not in ones}), Box(bind, rest))
