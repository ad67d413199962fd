"""Recorded measurements: a search that is replayed on them finds the same plan, byte for byte."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.json import decode, encode
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Step
from lumi.search.protocol import Backend, Cost, Failure, Timing
from lumi.search.trial import Clock

FORMAT = 4
"""Version of the file; another version is refused."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one trial gave, and the seconds it took."""

    result: Timing | Failure
    took: float


@dataclass(frozen=True, slots=True)
class Record:
    """The trials of a search by what was run: repeated trials stand in their order."""

    format: int
    device: str
    trials: Mapping[str, tuple[Entry, ...]]

    def save(self, path: Path) -> None:
        """Write the record as JSON."""
        Path(path).write_text(json.dumps(encode(self), indent=1, sort_keys=True) + "\n")

    @staticmethod
    def load(path: Path) -> Record:
        """Read a record.  Raises `LumiError` when the file is damaged or of another version."""
        try:
            value = json.loads(Path(path).read_text())
        except (OSError, ValueError) as error:
            raise LumiError("record error", f"cannot read the record {path}: {error}") from error
        record = decode(Record, value, str(path))
        if record.format != FORMAT:
            raise LumiError(
                "record error",
                f"{path} has format {record.format}, this Lumi reads {FORMAT}",
                hint="record the search again",
            )
        return record


def key(region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> str:
    """The name of a trial: a hash of the region's terms, the kernels with their schedules, and the dims."""
    value = [region.key, encode(graph), dict(sorted(dims.items()))]
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class Recorder:
    """A backend that notes every measurement of another one.  `seconds` have passed in trials so far."""

    backend: Backend
    clock: Clock = time.perf_counter
    trials: dict[str, list[Entry]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """That of the backend."""
        return self.backend.name

    @property
    def cells(self) -> int:
        """Those of the backend."""
        return self.backend.cells

    @property
    def joins(self) -> bool:
        """What the backend says."""
        return self.backend.joins

    @property
    def free(self) -> Collection[str]:
        """Those of the backend."""
        return self.backend.free

    def schedules(self, kernel: Kernel) -> Sequence[Schedule]:
        """Those of the backend."""
        return self.backend.schedules(kernel)

    def together(self, kernels: Sequence[Kernel]) -> Sequence[Schedule]:
        """Those of the backend."""
        return self.backend.together(kernels)

    def cost_together(self, kernels: Sequence[Kernel], schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """That of the backend."""
        return self.backend.cost_together(kernels, schedule, dims)

    def in_turn(self, steps: Sequence[Step]) -> Step | None:
        """That of the backend."""
        return self.backend.in_turn(steps)

    def cost_in_turn(self, steps: Sequence[Step], dims: Mapping[str, int]) -> Cost:
        """That of the backend."""
        return self.backend.cost_in_turn(steps, dims)

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """That of the backend."""
        return self.backend.cost(kernel, schedule, dims)

    def prepare(self, steps: Sequence[Step]) -> None:
        """As the backend does."""
        self.backend.prepare(steps)

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        """Measure, and note the result."""
        start = self.clock()
        result = self.backend.measure(region, graph, dims)
        took = self.clock() - start
        self.seconds += took
        self.trials.setdefault(key(region, graph, dims), []).append(Entry(result, took))
        return result

    def now(self) -> float:
        """The clock to search by: it runs in trials only, so that a replay can keep it."""
        return self.seconds

    @property
    def record(self) -> Record:
        """What was noted."""
        return Record(FORMAT, self.name, {k: tuple(e) for k, e in sorted(self.trials.items())})


@dataclass(slots=True)
class Replay:
    """A backend whose measurements come from a record; schedules and costs from `backend`."""

    backend: Backend
    record: Record
    used: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The device that was recorded."""
        return self.record.device

    @property
    def cells(self) -> int:
        """Those of the backend."""
        return self.backend.cells

    @property
    def joins(self) -> bool:
        """What the backend says."""
        return self.backend.joins

    @property
    def free(self) -> Collection[str]:
        """Those of the backend."""
        return self.backend.free

    def schedules(self, kernel: Kernel) -> Sequence[Schedule]:
        """Those of the backend."""
        return self.backend.schedules(kernel)

    def together(self, kernels: Sequence[Kernel]) -> Sequence[Schedule]:
        """Those of the backend."""
        return self.backend.together(kernels)

    def cost_together(self, kernels: Sequence[Kernel], schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """That of the backend."""
        return self.backend.cost_together(kernels, schedule, dims)

    def in_turn(self, steps: Sequence[Step]) -> Step | None:
        """That of the backend."""
        return self.backend.in_turn(steps)

    def cost_in_turn(self, steps: Sequence[Step], dims: Mapping[str, int]) -> Cost:
        """That of the backend."""
        return self.backend.cost_in_turn(steps, dims)

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        """That of the backend."""
        return self.backend.cost(kernel, schedule, dims)

    def prepare(self, steps: Sequence[Step]) -> None:
        """Nothing: nothing is compiled."""

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        """The recorded result.  Raises `LumiError` for a trial that was not recorded."""
        name = key(region, graph, dims)
        entries, number = self.record.trials.get(name, ()), self.used.get(name, 0)
        if number >= len(entries):
            raise LumiError(
                "record error",
                f"the record has no trial {number + 1} of a plan of region {region.scope or '(all)'}",
                hint="the model, the settings or Lumi changed since: record the search again",
            )
        self.used[name] = number + 1
        self.seconds += entries[number].took
        return entries[number].result

    def now(self) -> float:
        """The clock to search by: the recorded seconds of the trials replayed so far."""
        return self.seconds


@contextmanager
def measuring(backend: Backend, record: Path | None, replay: Path | None) -> Iterator[tuple[Backend, Clock]]:
    """The backend to measure with, and the clock that its budget runs by.

    What it measures is written to `record` at the end; with `replay` it comes from that record instead.
    """
    if replay is not None:
        player = Replay(backend, Record.load(replay))
        yield player, player.now
    elif record is not None:
        recorder = Recorder(backend)
        yield recorder, recorder.now
        recorder.record.save(record)
    else:
        yield backend, time.perf_counter
