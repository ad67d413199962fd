"""The CPU's share of the search: schedules, estimates, measurements."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from lumi.backends.cpu import emit as code
from lumi.backends.cpu import schedule
from lumi.backends.cpu.compile import find_compiler
from lumi.backends.cpu.device import CpuDevice, cores
from lumi.backends.cpu.measure import Measurer
from lumi.field.region import Region
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Step
from lumi.search.model import Machine, Work, examine
from lumi.search.protocol import Cost, Failure, Timing

BANDWIDTH = 15e9
"""Bytes a second that one core reads from memory."""


def machine(units: int, template: str) -> Machine:
    """What the analytic model knows of `units` cores under a template.

    The rates are those of one core with AVX2 near 3 GHz, in round figures that do not depend on the
    moment, so that a plan made without measuring is the same every time.
    """
    dots = {"blas": 70e9, "matmul": 50e9}.get(template, 20e9)
    elements = {"c": 15e9}.get(template, 20e9)
    as_bytes = 80e9 if template == "dot8" else elements
    return Machine(
        units=units,
        bandwidth=BANDWIDTH * units,
        cache_bandwidth=60e9 * units,
        dot_rate=dots * units,
        element_rate=elements * units,
        byte_rate=as_bytes * units,
        launch=2e-6,
        tile_memory=1 << 26,
        cache=32 << 20,
    )


class CpuBackend:
    """What `lumi.search` asks of this machine's processor."""

    def __init__(self, barred: Collection[str] = ()) -> None:
        """Without the templates `barred`, but for the one that works for all."""
        self._cores, self._barred = cores(), frozenset(barred)
        self._measurer = Measurer()
        self._examined: Work | None = None  # the templates of one kernel are priced one after another

    @property
    def name(self) -> str:
        """The processor, its cores and the compiler."""
        compiler = find_compiler()
        return f"{CpuDevice().name}, {compiler.version if compiler else 'numpy'}"

    @property
    def machine(self) -> Machine:
        """This one, under the template that works for every kernel."""
        return machine(self._cores, schedule.DEFAULT.template)

    @property
    def memory(self) -> int:
        """Bytes of this machine's."""
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")

    @property
    def longest(self) -> int:
        """What 64 bits count."""
        return 1 << 62

    @property
    def cells(self) -> int:
        """One: threads are few, and take several cells each."""
        return 1

    @property
    def joins(self) -> bool:
        """No: a launch costs little here, and its threads go on to the next without a pause."""
        return False

    @property
    def free(self) -> Collection[str]:
        """None."""
        return ()

    def chunks(self, region: Region, hints: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
        """None: a few cores are kept busy by what is left of the axes."""
        return {}

    def emit(self, step: Step, name: str) -> str:
        """The C function of a step, for reading."""
        return code.emit(schedule.available(step), name)

    def default(self, kernel: Kernel) -> Step:
        """A kernel under the schedule that works for every kernel."""
        return Step(kernel, schedule.DEFAULT)

    def schedules(self, kernel: Kernel) -> Sequence[Schedule]:
        """Every schedule of a kernel, the one that always works first."""
        first, *others = schedule.schedules(kernel)
        return [first, *(s for s in others if s.template not in self._barred)]

    def together(self, kernels: Sequence[Kernel]) -> Sequence[Schedule]:
        """None."""
        return ()

    def cost_together(self, kernels: Sequence[Kernel], schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """Raises `ValueError`: this backend runs kernels one by one."""
        raise ValueError("kernels are not run together here")

    def in_turn(self, steps: Sequence[Step]) -> Step | None:
        """None: a launch costs nothing here."""
        return None

    def cost_in_turn(self, steps: Sequence[Step], dims: Mapping[str, int]) -> Cost:
        """Raises `ValueError`: no launch of this backend has turns."""
        raise ValueError("kernels do not take turns here")

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """The analytic estimate of one run."""
        if self._examined is None or self._examined.kernel is not kernel or self._examined.dims is not dims:
            self._examined = examine(kernel, dims)
        return self._examined.cost(machine(self._cores, schedule.template))

    def prepare(self, steps: Sequence[Step]) -> None:
        """Nothing: compilers would take the cores from what is timed."""

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        """Compile and run a graph on seeded random data; its times, if its results are right."""
        return self._measurer.measure(region, graph, dims)
