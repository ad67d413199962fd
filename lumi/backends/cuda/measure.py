"""Measure candidate kernel graphs: compile, run on random data in a child process, check, then time."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from lumi.backends.cuda import gemm
from lumi.backends.cuda.compile import compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.launch import NAME
from lumi.backends.cuda.mma import plan as tensor
from lumi.backends.cuda.tf32 import is_tf32
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.json import encode
from lumi.llir.kernel import KernelGraph, Schedule, Step
from lumi.search.child import Worker, WorkerError
from lumi.search.data import Bench, Layout
from lumi.search.protocol import Failure, Reason, Timing

SECONDS = 1.0
"""Seconds that timing may take before the child counts as hanging, beside those any job has."""

COLD = 2 << 20, 256 << 20
"""A region that touches more bytes than the first is timed on copies of its buffers that together exceed
the second, so that weights come from memory, as they do in a model with many layers."""

LARGEST = 32 << 30
"""Bytes that the buffers of one candidate may take."""


class Measurer:
    """Measures graphs; it keeps the data of the region at hand and one child process."""

    def __init__(self) -> None:
        self._bench: Bench | None = None
        self._worker: Worker | None = None

    def measure(
        self, region: Region, graph: KernelGraph, values: Mapping[str, int], arch: str
    ) -> Timing | Failure:
        """The graph's times, if it compiles, runs, and computes what the region says."""
        refused = _refused(graph.steps, arch)
        if refused is not None:
            return refused
        bench = self._bench
        if bench is None or not bench.fits(region, values):
            bench = self._bench = Bench(region, values)
        layout = bench.layout(graph)
        if layout.size > LARGEST:
            return Failure(Reason.MEMORY, f"buffers of {layout.size / 2**30:.1f} GiB")
        job = _job(region, graph, layout, values)
        try:
            worker = self._started(layout.size)
            bench.fill(worker.memory, layout)
            ran = scheduled(graph.steps, worker.run({**job, "copies": 1, "seconds": 0.0})["algorithms"])
            if isinstance(ran, Failure):
                return ran
            relaxed = any(is_tf32(s.schedule) for s in graph.steps)
            wrong = bench.compare(worker.memory, layout, relaxed)
            if wrong:
                return Failure(Reason.WRONG, wrong)
            copies = 1 if layout.size < COLD[0] else max(1, -(-COLD[1] // layout.size))
            times = worker.run({**job, "copies": copies, "seconds": SECONDS})
        except WorkerError as error:
            self._stop()
            return Failure(error.reason, str(error))
        steps = tuple(statistics.median(t) for t in times["steps"])
        return Timing(statistics.median(times["whole"]), steps, ran)

    def _started(self, size: int) -> Worker:
        if self._worker is None:
            self._worker = Worker("lumi.backends.cuda.worker")
        self._worker.hold(size)
        return self._worker

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


def _refused(steps: Sequence[Step], arch: str) -> Failure | None:
    """Why the kernels cannot be compiled; None when they are."""
    texts = []
    for number, step in enumerate(steps):
        try:
            texts.append(source([emit(step, NAME).text]))
        except (ValueError, AssertionError) as error:
            return Failure(Reason.ILLEGAL, str(error), number)
    for number, cubin in enumerate(compile_cubins(texts, arch)):
        if isinstance(cubin, LumiError):
            return Failure(Reason.COMPILE, cubin.message, number)
        if steps[number].schedule.template == tensor.TEMPLATE and cubin.spilled > tensor.SPILLED:
            return Failure(Reason.ILLEGAL, f"its tiles spill {cubin.spilled} bytes of registers", number)
    return None


def scheduled(steps: Sequence[Step], algorithms: Sequence[int | None]) -> tuple[Schedule, ...] | Failure:
    """The schedules of steps with the algorithms that the library computed them by."""
    found = []
    for number, (step, name) in enumerate(zip(steps, algorithms, strict=True)):
        is_call = step.schedule.template == gemm.TEMPLATE
        if is_call and name is None:
            return Failure(Reason.ILLEGAL, "cuBLASLt has no algorithm for this product", number)
        found.append(gemm.by(name, step.schedule) if is_call and name is not None else step.schedule)
    return tuple(found)


def _job(region: Region, graph: KernelGraph, layout: Layout, values: Mapping[str, int]) -> dict[str, Any]:
    """What the child is to run.  Inputs, params and states are constant unless a kernel writes them."""
    offsets = layout.copies[0]
    changed = {b for s in graph.steps for b in s.written}
    named = {f"B{k}" for k, name in enumerate(region.buffers) if not name.startswith("%")}
    return {
        "size": layout.size,
        "steps": [encode(step) for step in graph.steps],
        "table": [[offsets[b] for b in s.buffers] for s in graph.steps],
        "constant": [[b in named - changed for b in s.buffers] for s in graph.steps],
        "dims": dict(values),
    }
