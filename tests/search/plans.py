"""Plans of hand-written workloads: searched on a made-up machine, run by the numpy executor, compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.egraph.graph import EGraph
from lumi.egraph.saturate import saturate
from lumi.field.evaluate import evaluate
from lumi.field.region import Region
from lumi.llir.kernel import Kernel, KernelGraph, Loop, Schedule, Step, walk
from lumi.search.model import Machine, estimate
from lumi.search.planner import Planner
from lumi.search.protocol import Cost, Failure, Timing
from lumi.search.search import Found, search
from lumi.search.settings import Mode, Settings
from lumi.search.space import Space
from tests.workloads import Arrays, Workload

MACHINE = Machine(
    units=128,
    bandwidth=3e12,
    cache_bandwidth=6e12,
    dot_rate=600e12,
    element_rate=30e12,
    launch=2.5e-6,
    tile_memory=384 << 10,
    cache=30 << 20,
)
"""A device with many units and little memory beside each: where fusion matters most."""

DEFAULT = Schedule("plain")


@dataclass
class Modelled:
    """A backend with one schedule that estimates and cannot measure."""

    machine: Machine = MACHINE
    name: str = "a made-up machine"
    cells: int = 1
    joins: bool = False
    free: tuple[str, ...] = ()

    def schedules(self, kernel: Kernel) -> Sequence[Schedule]:
        return (DEFAULT,)

    def together(self, kernels: Sequence[Kernel]) -> Sequence[Schedule]:
        return ()

    def cost_together(self, kernels: Sequence[Kernel], schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        raise AssertionError("kernels run together that cannot")

    def in_turn(self, steps: Sequence[Step]) -> Step | None:
        return None

    def cost_in_turn(self, steps: Sequence[Step], dims: Mapping[str, int]) -> Cost:
        each = [estimate(k, dims, self.machine) for s in steps for k in s.kernels]
        return replace(each[0], seconds=sum(c.seconds for c in each))

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        return estimate(kernel, dims, self.machine)

    def prepare(self, steps: Sequence[Step]) -> None:
        pass

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        raise AssertionError("this search was not to measure")


@dataclass
class Interpreted(Modelled):
    """Measures with the numpy executor; `seconds` makes the time of a kernel up, so that tests repeat."""

    trials: list[KernelGraph] = field(default_factory=list)

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        self.trials.append(graph)
        steps = tuple(self.seconds(s.kernel, s.schedule, dims) for s in graph.steps)
        return Timing(sum(steps), steps)

    def seconds(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> float:
        return self.cost(kernel, schedule, dims).seconds


@cache
def graph_of(work: Workload) -> tuple[Region, EGraph]:
    """The region of a workload and its saturated e-graph."""
    region = work.region()
    return region, saturate(region, splits=work.splits, families=work.families)


def settings_of(work: Workload, **options: object) -> Settings:
    made: dict[str, object] = {
        "mode": Mode.MODEL,
        "hints": (work.sizes(work.large),),
        "splits": work.splits,
        "evaluations": 800,
    }
    return Settings(**{**made, **options})  # type: ignore[arg-type]


def found(work: Workload, **options: object) -> Found:
    """The plan of a workload on the made-up machine."""
    region, egraph = graph_of(work)
    return search(region, egraph, settings_of(work, **options), Modelled())


def planner_of(work: Workload, sizes: Mapping[str, int] | None = None) -> Planner:
    """A planner for a workload at the given sizes of its symbolic axes."""
    region, egraph = graph_of(work)
    hint = work.sizes(sizes or work.large)
    settings = settings_of(work, hints=(hint,))
    return Planner(Space(region, egraph), settings, lambda k: (estimate(k, hint, MACHINE).seconds, DEFAULT))


def run(graph: KernelGraph, region: Region, buffers: Arrays, dims: Mapping[str, int]) -> Arrays:
    """The buffers after the graph has run; whatever it does not write is NaN, -1 or true."""
    held = {name: array.copy() for name, array in buffers.items()}
    for store in region.stores:
        access = store.access
        if access.buffer not in held:
            held[access.buffer] = _poison(access.shape, access.dtype.storage, dims)
    for name, temporary in graph.temporaries.items():
        held[name] = _poison(temporary.shape, temporary.dtype.storage, dims)
    for step in graph.steps:
        interpret.run(step.kernel, held, dims)
    return held


def _poison(shape: tuple[dim.Extent, ...], storage: np.dtype, dims: Mapping[str, int]) -> np.ndarray:
    sizes = [dim.value(e, dims) for e in shape]
    value = np.nan if storage.kind == "f" else -1 if storage.kind == "i" else 1
    return np.full(sizes, value, storage)


def reference(region: Region, buffers: Arrays, dims: Mapping[str, int]) -> Arrays:
    held = {name: array.copy() for name, array in buffers.items()}
    evaluate(region, held, dims)
    return held


def assert_equal(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    """Equal where the reference is a number, relative to its largest; a plan may mend NaN, not make it."""
    assert got.shape == want.shape
    got, known = got.astype(np.float64), ~np.isnan(want)
    assert not np.isnan(got[known]).any()
    scale = np.abs(want[known & np.isfinite(want)]).max(initial=1e-30)
    same = (got[known] == want[known]) | (np.abs(got[known] - want[known]) <= tolerance * scale)
    assert same.all(), float(np.nanmax(np.abs(got[known] - want[known])) / scale)


def loops(kernel: Kernel) -> list[Loop]:
    return [s for s in walk(kernel.body) if isinstance(s, Loop)]
