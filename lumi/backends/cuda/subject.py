"""A region at some dims in the child's memory: random data, and the results that candidates must give.

The reference is the region's unfused plan in f64, under the schedule that always works; where numpy would
not take long, it is compared with numpy's first.  What a right result may be off by beyond the usual is
found when it is first needed: by how far the unfused plan is off in the region's own types.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lumi.backends.cuda.commands import (
    BETWEEN,
    Command,
    Place,
    aligned,
    ask,
    between,
    room_between,
    run,
    table,
)
from lumi.backends.cuda.schedule import DEFAULT
from lumi.dtype import F32, F64, DType
from lumi.field.access import Access
from lumi.field.evaluate import evaluate
from lumi.field.index import of_axis
from lumi.field.region import Region, Store
from lumi.field.widen import cut_factors, widened
from lumi.llir.json import decode, encode
from lumi.llir.kernel import Kernel, KernelGraph, Load, Map, Step
from lumi.llir.kernel import Store as Write
from lumi.search.accuracy import (
    Difference,
    depends_on_rounding,
    difference,
    rounds_to_tf32,
    tolerance,
    tolerance_of_reference,
)
from lumi.search.child import Worker
from lumi.search.numpy_time import numpy_seconds
from lumi.search.protocol import Failure, Reason
from lumi.search.samples import Sample, sampled, wide
from lumi.search.unfused import unfused

BRIEF = 0.5
"""Seconds that numpy may take for a reference, for the unfused plan to be compared with it."""

FINER = 1024.0
"""How many times nearer to numpy the unfused plan must be than a candidate to it, or as near as its own
roundings take it: of those a sine of a large angle makes more, for instance, than any count foresees."""

PATIENCE = 60.0
"""Seconds that the unfused plan may take."""

SHARE = 0.5
"""Share of the free memory that temporaries of the unfused plan may have."""

UNFUSED = "its unfused plan in f64"
"""What candidates are compared with."""


@dataclass(slots=True)
class Subject:
    """A region at some dims; its blocks in the child's memory begin with `name`.

    `copies` of the buffers are held.  `against` says what candidates are compared with; it is empty before
    the first `prepare`.  `fault` is why there is nothing to compare with.
    """

    region: Region
    values: Mapping[str, int]
    name: str
    is_ready: bool = False
    copies: int = 1
    against: str = ""
    fault: Failure | None = None
    samples: dict[str, Sample] = field(init=False)
    stores: dict[str, Store] = field(init=False)
    limit: float = field(init=False)
    offsets: dict[str, int] = field(default_factory=dict)
    wanted: dict[str, Place] = field(default_factory=dict)
    digests: list[int] = field(default_factory=list)
    drifts: dict[bool, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.samples = sampled(self.region, self.values)
        self.stores = {s.access.buffer: s for s in self.region.stores}
        self.limit = tolerance(self.region, self.values)
        place = 0
        for name, sample in self.samples.items():
            self.offsets[name] = place
            place += aligned(sample.size)
        self.wanted = self._apart("wanted", wide=True)

    def fits(self, region: Region, values: Mapping[str, int]) -> bool:
        """Whether it is that region at those dims."""
        return region.key == self.region.key and values == self.values

    @property
    def size(self) -> int:
        """Bytes of the region's buffers."""
        return sum(aligned(s.size) for s in self.samples.values())

    # -- places

    def block(self, copy: int = 0) -> str:
        """The block of a copy of the region's buffers."""
        return f"{self.name} {copy}"

    def places(self, copy: int = 0) -> dict[str, Place]:
        """Where the buffers of a copy of the region lie."""
        return {name: (self.block(copy), offset) for name, offset in self.offsets.items()}

    def filled(self, copy: int = 0) -> list[Command]:
        """What fills a copy of the region's buffers."""
        places = self.places(copy)
        return [["fill", places[name], encode(sample)] for name, sample in self.samples.items()]

    def kept(self) -> list[tuple[Place, int]]:
        """What no candidate may change, and its bytes: whatever is only read, and the reference."""
        places = self.places()
        read = [(places[n], aligned(s.size)) for n, s in self.samples.items() if n not in self.stores]
        return read + [(place, self._bytes(name, wide=True)) for name, place in self.wanted.items()]

    def _apart(self, block: str, wide: bool) -> dict[str, Place]:
        """Places in a block of its own for all that is stored, its floats `wide` or as they are."""
        place, found = 0, dict[str, Place]()
        for name in self.stores:
            found[name] = f"{self.name} {block}", place
            place += self._bytes(name, wide)
        return found

    def _bytes(self, name: str, wide: bool) -> int:
        dtype = self._dtype(name) if wide else self.stores[name].access.dtype
        return aligned(self.samples[name].count * dtype.size)

    def _dtype(self, name: str) -> DType:
        """The type of a result in the reference."""
        dtype = self.stores[name].access.dtype
        return F64 if dtype.is_float else dtype

    # -- the reference

    def prepare(self, worker: Worker) -> None:
        """Make data and reference; where the reference is wrong, that is the `fault` of all candidates.

        Raises `InfeasibleError` where it does not fit the GPU, and `WorkerError`.
        """
        wanted = sum(self._bytes(name, wide=True) for name in self.stores)
        blocks = {self.block(): self.size, f"{self.name} wanted": wanted}
        held = [[do, *block] for block in blocks.items() for do in ("hold", "spoil")]
        *_, room = ask(worker, [*held, *self.filled(), *self._widening(), ["room"]])
        plan = self._unfused(widened(self.region), self.wanted, int(SHARE * room), F64)
        *_, self.digests = ask(worker, [*plan, ["digest", self.kept()]], PATIENCE)
        wrong = "" if self.against else self._compared_with_numpy(worker)
        self.fault = Failure(Reason.WRONG, wrong) if wrong else None
        self.is_ready = not wrong

    def _widening(self) -> list[Command]:
        """What gives the reference's buffers what lies in the region's."""
        found: list[Command] = []
        for name, place in self.wanted.items():
            sample, dtype = self.samples[name], self.stores[name].access.dtype
            if not dtype.is_float or dtype == F64:
                found.append(["fill", place, encode(sample)])
            elif sample.count:
                graph = KernelGraph((Step(_widener(dtype, sample.count), DEFAULT),), {})
                found.append(run(graph, table(graph, {"A": self.places()[name], "R": place}, ()), {}))
        return found

    def _unfused(
        self, region: Region, stored: Mapping[str, Place], room: int, untyped: DType
    ) -> list[Command]:
        """What runs the unfused plan of a region whose stored buffers lie elsewhere."""
        plan = unfused(region, self.values, room, untyped)
        graph = KernelGraph(tuple(Step(kernel, DEFAULT) for kernel in plan.kernels), plan.temporaries)
        places, size = between(plan.temporaries, self.values)
        rows = table(graph, {**self.places(), **stored, **places}, ())
        return [*room_between(size), run(graph, rows, self.values), ["free", BETWEEN]]

    def _compared_with_numpy(self, worker: Worker) -> str:
        """What is wrong with the reference by numpy, if that does not take long."""
        self.against = UNFUSED
        if numpy_seconds(self.region, self.values) > BRIEF:
            return ""
        arrays = {n: s.array() for n, s in self.samples.items()}
        arrays |= {n: wide(arrays[n], s.access.dtype) for n, s in self.stores.items()}
        evaluate(self.region, arrays, self.values)
        limit = max(tolerance_of_reference(widened(self.region), self.values), self.limit / FINER)
        for name, store in self.stores.items():
            found = difference(self._fetched(worker, name), arrays[name], self._dtype(name))
            wrong = found.wrong(self._dtype(name), limit, depends_on_rounding(store.term))
            if wrong:
                return f"{name}, the unfused plan itself, by numpy: {wrong}"
        self.against = f"{UNFUSED}, which is what numpy computes"
        return ""

    def _fetched(self, worker: Worker, name: str) -> np.ndarray:
        shape, kind = self.samples[name].shape, self._dtype(name).storage
        size = math.prod(shape) * kind.itemsize
        worker.hold(max(size, 1))
        ask(worker, [["fetch", self.wanted[name], size]])
        found: np.ndarray = worker.memory.bytes[:size].view(kind).reshape(shape).copy()
        return found

    # -- candidates

    def comparing(self, places: Mapping[str, Place]) -> list[Command]:
        """What compares all that is stored with the reference."""
        return [
            ["compare", places[n], self.wanted[n], str(s.access.dtype), self.samples[n].count]
            for n, s in self.stores.items()
        ]

    def wrong(self, worker: Worker, told: Sequence[Any], tf32: bool) -> str:
        """What is wrong with results, by what comparing them told; empty when nothing is.

        With `tf32` products of f32 may have been made of rounded factors.  Those of a region that rounds
        some itself may have been: a factor may be rounded before or after it is scaled.
        """
        tf32 = tf32 or rounds_to_tf32(self.region)
        for (name, store), encoded in zip(self.stores.items(), told, strict=True):
            found, dtype = decode(Difference, encoded), store.access.dtype
            rounded = depends_on_rounding(store.term)
            if found.wrong(dtype, self.limit, rounded):
                if tf32 not in self.drifts:
                    self.drifts[tf32] = self._drift(worker, tf32)
                wrong = found.wrong(dtype, max(self.limit, self.drifts[tf32][name]), rounded)
                if wrong:
                    return f"{name}: {wrong}"
        return ""

    def _drift(self, worker: Worker, tf32: bool) -> dict[str, float]:
        """How far right results may be off by what the region's own types make of a rounding."""
        region, places = cut_factors(self.region) if tf32 else self.region, self._apart("narrow", wide=False)
        block, size = f"{self.name} narrow", sum(self._bytes(name, wide=False) for name in self.stores)
        fills: list[Command] = [["fill", p, encode(self.samples[n])] for n, p in places.items()]
        *_, room = ask(worker, [["hold", block, size], *fills, ["room"]])
        plan = self._unfused(region, places, int(SHARE * room), F32)
        *told, _ = ask(worker, [*plan, *self.comparing(places), ["free", block]], PATIENCE)
        found = (decode(Difference, t) for t in told[len(plan) :])
        return {name: one.drift for name, one in zip(self.stores, found, strict=True)}


def _widener(dtype: DType, count: int) -> Kernel:
    """The kernel that makes f64 of another float."""
    read, written = (Access(n, (of_axis("i"),), (count,), t) for n, t in (("A", dtype), ("R", F64)))
    body = (
        Load("a", read, (), ("i",), dtype),
        Map("r", "cast.f64", ("a",), ("i",), F64),
        Write(written, "r", ("i",)),
    )
    return Kernel({"i": count}, ("i",), (), {"i": 64}, body)
