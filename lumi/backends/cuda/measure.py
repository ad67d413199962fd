"""Measure candidate kernel graphs: compile, run on random data in a child process, check, then time."""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from lumi.backends.cuda import gemm
from lumi.backends.cuda.commands import ask, between, constants, room_between, run, table
from lumi.backends.cuda.compile import compile_cubins, is_compiled, start
from lumi.backends.cuda.crew import Ahead
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.launch import NAME
from lumi.backends.cuda.mma import plan as tensor
from lumi.backends.cuda.subject import Subject
from lumi.backends.cuda.tf32 import is_tf32
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.kernel import KernelGraph, Schedule, Step
from lumi.search.child import Worker, WorkerError
from lumi.search.draft import InfeasibleError
from lumi.search.effort import Stopwatch
from lumi.search.protocol import Failure, Reason, Timing

SECONDS = 1.0
"""Seconds that timing may take before the child counts as hanging, beside those any job has."""

COLD = 2 << 20, 256 << 20
"""A region that touches more bytes than the first is timed on copies of its buffers that together exceed
the second, so that weights come from memory, as they do in a model with many layers."""

SPARED = 2
"""Cores that no process compiles on while candidates are timed."""

LARGEST = 32 << 30
"""Bytes that the buffers of one candidate may take."""


class Measurer:
    """Measures graphs; it keeps what belongs to the region at hand, at all dims, and one child process."""

    def __init__(self) -> None:
        self._subjects: list[Subject] = []
        self._worker: Worker | None = None
        self._ahead: Ahead | None = None

    def prepare(self, steps: Sequence[Step], arch: str) -> None:
        """Begin to compile kernels, the first first, in processes that leave some cores to this one."""
        texts = [text for step in steps if isinstance(text := _text(step), str)]
        missing = [text for text in dict.fromkeys(texts) if not is_compiled(text, arch)]
        if self._ahead is None:
            self._ahead = Ahead(partial(is_compiled, arch=arch))
        self._ahead.begin(start(missing, arch, max(1, (os.cpu_count() or 1) - SPARED)) if missing else ())

    def measure(
        self, region: Region, graph: KernelGraph, values: Mapping[str, int], arch: str
    ) -> Timing | Failure:
        """The graph's times, if it compiles, runs, and computes what the region says."""
        watch = Stopwatch()
        result = self._measured(region, graph, values, arch, watch)
        return replace(result, effort=watch.effort)

    def _measured(
        self, region: Region, graph: KernelGraph, values: Mapping[str, int], arch: str, watch: Stopwatch
    ) -> Timing | Failure:
        with watch.on("compile"):
            refused = _refused(graph.steps, arch, self._ahead)
        if refused is not None:
            return refused
        worker = self._started()
        try:
            with watch.on("reference"):
                subject = self._subject(worker, region, values)
                fault = self._prepared(worker, subject)
            watch.against = subject.against
            if fault is not None:
                return fault
            with watch.on("check"):
                ran = self._checked(worker, subject, graph)
            if isinstance(ran, Failure):
                return ran
            with watch.on("time"):
                return self._timed(worker, subject, graph, ran)
        except WorkerError as error:
            self._stop()
            return Failure(error.reason, str(error))

    def _subject(self, worker: Worker, region: Region, values: Mapping[str, int]) -> Subject:
        """What belongs to a region at some dims; memory of other regions is freed."""
        if any(s.region.key != region.key for s in self._subjects):
            self._subjects.clear()
            ask(worker, [["clear"]])
        for subject in self._subjects:
            if subject.fits(region, values):
                return subject
        self._subjects.append(Subject(region, dict(values), f"{len(self._subjects)}"))
        return self._subjects[-1]

    def _prepared(self, worker: Worker, subject: Subject) -> Failure | None:
        """Make the reference of a subject, if it has none; what is wrong with it, which is tried once."""
        if subject.is_ready or subject.fault is not None:
            return subject.fault
        try:
            subject.prepare(worker)
        except InfeasibleError:
            message = "the unfused plan of the region does not fit the GPU"
            subject.fault = Failure(Reason.UNCHECKED, message)
        except WorkerError as error:
            self._stop()
            subject.fault = Failure(Reason.UNCHECKED, f"the unfused plan of the region failed: {error}")
        return subject.fault

    def _checked(
        self, worker: Worker, subject: Subject, graph: KernelGraph
    ) -> tuple[Schedule, ...] | Failure:
        """Run a graph once; its schedules as they ran, if it gives the right results."""
        places, size = between(graph.temporaries, subject.values)
        if subject.size + size > LARGEST:
            return Failure(Reason.MEMORY, f"buffers of {(subject.size + size) / 2**30:.1f} GiB")
        places |= subject.places()
        before = [*subject.filled(), *room_between(size)]
        rows = table(graph, places, constants(subject.region, graph))
        kept: list[object] = ["digest", subject.kept()]
        told = ask(worker, [*before, run(graph, rows, subject.values), *subject.comparing(places), kept])
        algorithms, *differences, digests = told[len(before) :]
        ran = scheduled(graph.steps, algorithms)
        if isinstance(ran, Failure):
            return ran
        if digests != subject.digests:
            subject.is_ready = False
            return Failure(Reason.WRONG, "it writes where nothing of it should lie")
        wrong = subject.wrong(worker, differences, any(is_tf32(s.schedule) for s in graph.steps))
        return Failure(Reason.WRONG, wrong) if wrong else ran

    def _timed(
        self, worker: Worker, subject: Subject, graph: KernelGraph, ran: tuple[Schedule, ...]
    ) -> Timing:
        copies = 1 if subject.size < COLD[0] else max(1, -(-COLD[1] // subject.size))
        if subject.copies < copies:
            made = [(["hold", subject.block(n), subject.size], *subject.filled(n)) for n in range(1, copies)]
            ask(worker, [command for commands in made for command in commands])
            subject.copies = copies
        lie, size = between(graph.temporaries, subject.values)
        constant = constants(subject.region, graph)
        tables = [table(graph, {**lie, **subject.places(n)}, constant) for n in range(copies)]
        _, steps, _, dims = run(graph, [], subject.values)
        *_, (whole, alone) = ask(worker, [*room_between(size), ["time", steps, tables, dims]], SECONDS)
        return Timing(statistics.median(whole), tuple(statistics.median(t) for t in alone), ran)

    def _started(self) -> Worker:
        if self._worker is None:
            self._worker = Worker("lumi.backends.cuda.worker")
        return self._worker

    def _stop(self) -> None:
        """End the child; the next one has to be given everything anew."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None
        for subject in self._subjects:
            subject.is_ready, subject.copies = False, 1


def _text(step: Step) -> str | ValueError | AssertionError:
    """The source of a step, or why it has none."""
    try:
        return source([emit(step, NAME).text])
    except (ValueError, AssertionError) as error:
        return error


def _refused(steps: Sequence[Step], arch: str, ahead: Ahead | None) -> Failure | None:
    """Why the kernels cannot be compiled; None when they are."""
    texts = []
    for number, step in enumerate(steps):
        text = _text(step)
        if not isinstance(text, str):
            return Failure(Reason.ILLEGAL, str(text), number)
        if ahead is not None:
            ahead.wait(text)
        texts.append(text)
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
