"""What a search did and why its plan won: plain data, stored beside the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lumi.llir.kernel import Schedule
from lumi.search.effort import Effort


@dataclass(frozen=True, slots=True)
class Rival:
    """Another way to run a kernel, and its seconds; None when it failed or was not measured."""

    schedule: Schedule
    tiles: Mapping[str, int]
    seconds: float | None


@dataclass(frozen=True, slots=True)
class KernelStory:
    """A kernel of the plan: seconds by the model and as measured (None: not measured), and its rivals.

    `floor` are the seconds that no schedule can beat, `traffic` the bytes and `flops` the operations it
    comes from.
    """

    modelled: float
    measured: float | None
    floor: float
    traffic: float
    flops: float
    rivals: tuple[Rival, ...] = ()

    @property
    def ratio(self) -> float:
        """How many times its floor it takes."""
        seconds = self.modelled if self.measured is None else self.measured
        return seconds / self.floor if self.floor else float("inf")


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one region's plan was found.

    `curve` holds (trials or evaluations so far, best seconds) at every gain.  `refusals` counts what was
    not considered, by reason; `failures` describes candidates that were measured and failed.
    `correlation` is the rank correlation of model and measurement over the plans that were timed, `effort`
    what all trials took and what results were compared with.
    """

    region: str
    mode: str
    seed: str
    kernels: tuple[KernelStory, ...]
    modelled: float
    measured: float | None
    evaluations: int
    trials: int
    effort: Effort
    refusals: Mapping[str, int]
    failures: tuple[str, ...]
    curve: tuple[tuple[int, float], ...]
    correlation: float | None
    interrupted: bool
    saturated: bool
    enodes: int


@dataclass(frozen=True, slots=True)
class Crossing:
    """Seconds of calls at `dims`: in their variant, and `beyond` in the next one.

    `is_hint` where kernels were searched for them; other dims are where a box ends.  Seconds come from the
    model unless they are `measured`.
    """

    dims: Mapping[str, int]
    seconds: float
    beyond: float
    is_hint: bool
    measured: bool


@dataclass(frozen=True, slots=True)
class Bucket:
    """A variant by its box, and the box of the next one that has all its calls; "" for the most general one.

    `merged` when the plan has no such variant, because the next is as fast.
    """

    box: str
    beyond: str
    crossings: tuple[Crossing, ...]
    merged: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a search under way.  `best` are seconds, modelled or, while measuring, measured.

    `spent` are the seconds that trials took so far.
    """

    region: str
    phase: str
    best: float
    kernels: int
    evaluations: int
    trials: int
    hits: int
    refusals: Mapping[str, int]
    spent: float = 0.0


Report = Callable[[Progress], None]
"""Told of every gain and every trial."""


def silent(progress: Progress) -> None:
    """The report that is not made."""


def rank_correlation(pairs: list[tuple[float, float]]) -> float | None:
    """Spearman's coefficient of two rankings; None for fewer than three pairs."""
    if len(pairs) < 3:
        return None
    ranks = [_ranks([p[k] for p in pairs]) for k in (0, 1)]
    mean = (len(pairs) - 1) / 2
    over = [[r - mean for r in rank] for rank in ranks]
    spread = [sum(x * x for x in o) for o in over]
    if 0 in spread:
        return None
    return float(sum(x * y for x, y in zip(*over, strict=True)) / (spread[0] * spread[1]) ** 0.5)


def _ranks(values: list[float]) -> list[float]:
    """The place of each value in order; equal values share the mean of their places."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        stop = start
        while stop < len(order) and values[order[stop]] == values[order[start]]:
            stop += 1
        for place in order[start:stop]:
            ranks[place] = (start + stop - 1) / 2
        start = stop
    return ranks
