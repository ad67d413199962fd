"""Measure candidate kernel graphs: compile, run on random data in a child process, check, then time."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lumi.backends.cpu.compile import compile_libraries, compile_library
from lumi.backends.cpu.emit import driver_source, emit, source
from lumi.backends.cpu.schedule import BLAS, available
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.kernel import KernelGraph, Step
from lumi.search.child import Worker, WorkerError
from lumi.search.data import Bench, Layout
from lumi.search.effort import Stopwatch
from lumi.search.protocol import Failure, Reason, Timing

SECONDS = 0.15
"""Seconds of timed runs of one graph, and how many runs at most."""

RUNS = 40

COLD = 4 << 20, 96 << 20
"""A region that touches more bytes than the first is timed on copies of its buffers that together exceed
the second, so that weights come from memory, as they do in a model with many layers."""

MEMORY_SHARE = 0.5
"""Share of the machine's memory that buffers of one candidate may take."""


class Measurer:
    """Measures graphs; it keeps the data of the region at hand, at all dims, and one child process."""

    def __init__(self) -> None:
        self._benches: list[Bench] = []
        self._worker: Worker | None = None

    def measure(self, region: Region, graph: KernelGraph, values: Mapping[str, int]) -> Timing | Failure:
        """The graph's times, if it compiles, runs, and computes what the region says."""
        watch = Stopwatch()
        return replace(self._measured(region, graph, values, watch), effort=watch.effort)

    def _measured(
        self, region: Region, graph: KernelGraph, values: Mapping[str, int], watch: Stopwatch
    ) -> Timing | Failure:
        steps = [available(s) for s in graph.steps]
        with watch.on("compile"):
            libraries = self._compiled(steps)
        if isinstance(libraries, Failure):
            return libraries
        with watch.on("reference"):
            bench = self._data(region, values)
        watch.against = "numpy"
        copies = 1 if bench.size < COLD[0] else max(1, -(-COLD[1] // bench.size))
        layout = bench.layout(graph, copies)
        if layout.size > MEMORY_SHARE * _memory():
            return Failure(Reason.MEMORY, f"buffers of {layout.size / 2**30:.1f} GiB")
        job = _job(steps, libraries, layout, values)
        try:
            with watch.on("check"):
                worker = self._started(layout.size)
                bench.fill(worker.memory, layout)
                worker.run({**job, "tables": job["tables"][:1], "runs": 1, "seconds": 0.0})
                wrong = bench.compare(worker.memory, layout)
            if wrong:
                return Failure(Reason.WRONG, wrong)
            with watch.on("time"):
                times = worker.run({**job, "runs": RUNS, "seconds": SECONDS})["steps"]
        except WorkerError as error:
            self._stop()
            return Failure(error.reason, str(error))
        return _timing(times)

    def _data(self, region: Region, values: Mapping[str, int]) -> Bench:
        """The data of a region, kept for its next graph."""
        if any(b.region.key != region.key for b in self._benches):
            self._benches.clear()
        found = next((b for b in self._benches if b.fits(region, values)), None) or Bench(region, values)
        if not self._benches or found is not self._benches[-1]:
            found.filled = -1  # others have used the memory
            self._benches = [*(b for b in self._benches if b is not found), found]
        return found

    def _compiled(self, steps: Sequence[Step]) -> list[Path] | Failure:
        texts = []
        for number, step in enumerate(steps):
            try:
                texts.append(source([emit(step, "kernel")]))
            except (ValueError, AssertionError) as error:
                return Failure(Reason.ILLEGAL, str(error), number)
        found = compile_libraries(texts)
        for number, library in enumerate(found):
            if isinstance(library, LumiError):
                return Failure(Reason.COMPILE, library.message, number)
        return [f for f in found if isinstance(f, Path)]

    def _started(self, size: int) -> Worker:
        if self._worker is None:
            self._worker = Worker("lumi.backends.cpu.worker")
        self._worker.hold(size)
        return self._worker

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _job(
    steps: Sequence[Step], libraries: Sequence[Path], layout: Layout, values: Mapping[str, int]
) -> dict[str, Any]:
    return {
        "size": layout.size,
        "driver": str(compile_library(driver_source())),
        "libraries": sorted({str(p) for p in libraries}),
        "kernels": [[str(p), "kernel", s.dims] for p, s in zip(libraries, steps, strict=True)],
        "tables": [
            [[n, [offsets[b] for b in s.buffers]] for n, s in enumerate(steps)] for offsets in layout.copies
        ],
        "dims": dict(values),
        "blas": any(s.schedule == BLAS for s in steps),
    }


def _timing(runs: Sequence[Sequence[int]]) -> Timing:
    """Medians, without the first run when there are others."""
    kept = runs[1:] if len(runs) > 2 else runs
    whole = statistics.median(sum(run) for run in kept)
    steps = tuple(statistics.median(column) * 1e-9 for column in zip(*kept, strict=True))
    return Timing(whole * 1e-9, steps)
