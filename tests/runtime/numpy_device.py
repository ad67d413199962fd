"""A device in numpy that counts what it allocates, for tests of the runtime alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.llir.kernel import buffers
from lumi.noise import Noise
from lumi.plan.plan import Buffer, Plan
from lumi.runtime.counters import Counters
from lumi.runtime.device import Array, Memory, Place


@dataclass(slots=True)
class NumpyMemory:
    """Bytes, 0xFF where nothing was written yet when `dirty`."""

    data: Array

    @property
    def size(self) -> int:
        return self.data.size

    def write(self, array: Array, offset: int = 0) -> None:
        self.data[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)

    @property
    def address(self) -> int:
        return self.data.ctypes.data

    def fetch(self, size: int, offset: int = 0) -> Array:
        return self.data[offset : offset + size].copy()

    def copy(self, source: Memory, offset: int = 0) -> None:
        self.data[offset : offset + source.size] = source.fetch(source.size)

    def clear(self) -> None:
        self.data[:] = 0


@dataclass(slots=True)
class NumpyDevice:
    """Runs launches one by one; `allocated` are the sizes of all blocks so far."""

    name: str = "numpy"
    allocated: list[int] = field(default_factory=list)
    prepared: list[int] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)

    @property
    def kind(self) -> tuple[int, int]:
        return 1, 0

    @property
    def queue(self) -> int | None:
        return None

    def hand_over(self, stream: int | None) -> None: ...

    def wait(self) -> None: ...

    def view(self, address: int, size: int) -> NumpyMemory:
        raise AssertionError("nothing is lent to this device")

    def part(self, place: Place, size: int) -> NumpyMemory:
        return NumpyMemory(place.memory.fetch(size, place.offset))

    def random(self, noise: Noise, count: int) -> None:
        return None

    def allocate(self, size: int) -> NumpyMemory:
        self.allocated.append(size)
        return NumpyMemory(np.zeros(size, np.uint8))

    def adopt(self, array: Array) -> NumpyMemory:
        data = array.reshape(-1).view(np.uint8)
        data.flags.writeable = False
        return NumpyMemory(data)

    def load(self, plan: Plan) -> NumpyExecutable:
        return NumpyExecutable(plan, self)


@dataclass(slots=True)
class NumpyExecutable:
    plan: Plan
    device: NumpyDevice

    def inputs(self, variant: int) -> dict[str, Memory]:
        return {}

    def prepare(self, variant: int, places: Sequence[Place]) -> NumpyProgram:
        self.device.prepared.append(variant)
        return NumpyProgram(self.plan, variant, places)


@dataclass(slots=True)
class NumpyProgram:
    plan: Plan
    variant: int
    places: Sequence[Place]

    def run(self, dims: Mapping[str, int]) -> None:
        variant = self.plan.variants[self.variant]
        arrays = [_view(b, p, dims) for b, p in zip(variant.buffers, self.places, strict=True)]
        for launch in variant.launches:
            kernel = self.plan.kernels[launch.kernel].kernel
            given = {own: arrays[n] for own, n in zip(buffers(kernel), launch.buffers, strict=True)}
            interpret.run(kernel, given, dims)


def _view(buffer: Buffer, place: Place, dims: Mapping[str, int]) -> Array:
    shape = tuple(dim.value(size, dims) for size in buffer.shape)
    count = int(np.prod(shape, dtype=np.int64)) * buffer.dtype.size
    assert isinstance(place.memory, NumpyMemory)
    return place.memory.data[place.offset : place.offset + count].view(buffer.dtype.storage).reshape(shape)
