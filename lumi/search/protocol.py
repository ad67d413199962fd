"""What the search asks of a backend, and what it is told.

The search never imports a backend: the compiler hands it one that keeps this protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from lumi.field.region import Region
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Step
from lumi.search.effort import Effort


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a kernel should take, by an analytic model.

    `seconds` is the estimate that orders candidates.  `floor` is the time no schedule can beat: the larger
    of `traffic` (bytes that must cross memory once) over bandwidth and `flops` over peak.  `live` are the
    bytes of tiles alive at once in a grid cell, `fits` says whether it can hold them.
    """

    seconds: float
    floor: float
    traffic: float
    flops: float
    live: float
    fits: bool = True


@dataclass(frozen=True, slots=True)
class Timing:
    """Measured seconds of a kernel graph whose results were right.

    `seconds` is the median of whole runs; `steps` are the kernels' own medians, in the graph's order.
    `schedules` are the kernels' own with what they left to the device; none where they left nothing.
    `effort` is what it took.
    """

    seconds: float
    steps: tuple[float, ...]
    schedules: tuple[Schedule, ...] = ()
    effort: Effort = field(default=Effort(), compare=False)


class Reason(Enum):
    """Why a candidate was refused."""

    WRONG = "wrong result"
    COMPILE = "does not compile"
    CRASH = "crash"
    TIMEOUT = "timeout"
    MEMORY = "out of memory"
    ILLEGAL = "illegal plan"
    UNCHECKED = "nothing to compare with"


@dataclass(frozen=True, slots=True)
class Failure:
    """A candidate that may not rank; `step` is the kernel at fault when that is known."""

    reason: Reason
    detail: str
    step: int | None = None
    effort: Effort = field(default=Effort(), compare=False)


class Backend(Protocol):
    """A device's share of the search."""

    @property
    def name(self) -> str:
        """The device, driver and compiler that timings hold for, as one line."""
        ...

    @property
    def cells(self) -> int:
        """Grid cells that a kernel needs to keep the device busy; 1 where wide tiles matter more."""
        ...

    @property
    def joins(self) -> bool:
        """Whether a launch may run several kernels here."""
        ...

    @property
    def free(self) -> Collection[str]:
        """Templates that choose all tiles by themselves: the numbers of a schedule decide what it takes."""
        ...

    def schedules(self, kernel: Kernel) -> Sequence[Schedule]:
        """Every schedule that can turn this kernel into code, the one that always works first."""
        ...

    def together(self, kernels: Sequence[Kernel]) -> Sequence[Schedule]:
        """Every schedule under which one launch can run kernels that do not depend on each other."""
        ...

    def cost_together(self, kernels: Sequence[Kernel], schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """The analytic estimate of one launch of them."""
        ...

    def in_turn(self, steps: Sequence[Step]) -> Step | None:
        """One launch in which steps take turns, each waiting for those before it; None where they cannot.

        Its turns may have other schedules than the steps.
        """
        ...

    def cost_in_turn(self, steps: Sequence[Step], dims: Mapping[str, int]) -> Cost:
        """The analytic estimate of one launch in which steps take turns."""
        ...

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """The analytic estimate at these dims; it orders candidates and never decides between them."""
        ...

    def prepare(self, steps: Sequence[Step]) -> None:
        """Begin to compile what may be measured soon, the first first, where that disturbs no measurement."""
        ...

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        """Compile and run the graph on seeded random data; time it only if it equals the reference.

        The reference is what `field.evaluate` makes of the region, or a plan of it in f64 that shares nothing
        with the search.  Buffers are named as in the region (`B0` …); the
        graph's temporaries are its own.  Never raises for a bad candidate: that is a `Failure`.
        """
        ...
