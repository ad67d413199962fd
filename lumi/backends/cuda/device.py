"""An NVIDIA GPU as a device: kernels compiled by NVRTC, each variant of a plan one captured graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lumi.backends.cuda.fill import fill
from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.backends.cuda.launch import Entry, Launches, load_kernels
from lumi.backends.cuda.mail import LARGEST, Mail, Slot
from lumi.backends.cuda.settled import Settled
from lumi.noise import Noise
from lumi.plan.check import size_in_bytes
from lumi.plan.plan import Plan, Role
from lumi.runtime.counters import Counters
from lumi.runtime.device import Array, Memory, Place
from lumi.runtime.dlpack import CUDA

_LEGACY = 1
"""The stream that libraries mean where they name none."""


class CudaMemory:
    """Bytes of the GPU's memory."""

    def __init__(self, gpu: Gpu, size: int, block: Any) -> None:
        self._gpu, self._size = gpu, size
        self._block, self._address = block, int(block)

    @property
    def size(self) -> int:
        """Bytes."""
        return self._size

    @property
    def address(self) -> int:
        """Where the first byte lies."""
        return self._address

    def write(self, array: Array, offset: int = 0) -> None:
        """Copy a C-contiguous array in, from byte `offset` on."""
        self._gpu.write(self._address + offset, array.reshape(-1).view(np.uint8))

    def fetch(self, size: int, offset: int = 0) -> Array:
        """A new u8 array of `size` bytes from `offset` on."""
        return self._gpu.fetch(self._address + offset, size)

    def copy(self, source: Memory, offset: int = 0) -> None:
        """Copy the bytes of another block of the GPU in, from byte `offset` on."""
        self._gpu.copy(self._address + offset, source.address, source.size)

    def clear(self) -> None:
        """Make every byte zero."""
        self._gpu.clear(self._address, self._size)


class CudaDevice:
    """The first GPU of this machine."""

    def __init__(self) -> None:
        self._gpu = open_gpu()

    @property
    def name(self) -> str:
        """What the GPU calls itself."""
        return self._gpu.name

    @property
    def counters(self) -> Counters:
        """What the GPU was asked for so far, by everyone in this process."""
        return self._gpu.counters

    @property
    def kind(self) -> tuple[int, int]:
        """DLPack's number for the first GPU."""
        return CUDA, 0

    @property
    def queue(self) -> int:
        """The stream that everything runs on."""
        return self._gpu.queue

    def hand_over(self, stream: int | None) -> None:
        """Let what is put on another stream next wait for this one; -1 asks for no order."""
        if stream != -1:
            self._gpu.order(_LEGACY if stream is None else stream)

    def wait(self) -> None:
        """Wait for everything on the stream."""
        self._gpu.wait()

    def view(self, address: int, size: int) -> CudaMemory:
        """Bytes of the GPU's memory that someone else owns."""
        return CudaMemory(self._gpu, size, address)

    def part(self, place: Place, size: int) -> CudaMemory:
        """A block holding a copy of the `size` bytes at a place."""
        block = CudaMemory(self._gpu, size, self._gpu.reserve(size))
        self._gpu.copy(block.address, place.memory.address + place.offset, size)
        return block

    def random(self, noise: Noise, count: int) -> CudaMemory:
        """A block of `count` made-up numbers."""
        block = self.allocate(count * noise.dtype.size)
        fill(self._gpu, block.address, noise, count)
        return block

    def allocate(self, size: int) -> CudaMemory:
        """A zeroed block of at least `size` bytes."""
        return CudaMemory(self._gpu, size, self._gpu.allocate(size))

    def adopt(self, array: Array) -> CudaMemory:
        """A block holding a copy of the array."""
        block = CudaMemory(self._gpu, array.nbytes, self._gpu.reserve(array.nbytes))
        block.write(array)
        return block

    def load(self, plan: Plan) -> CudaExecutable:
        """Compile the kernels of a plan.  Raises `LumiError` for what NVRTC refuses."""
        return CudaExecutable(self._gpu, plan)


def open_device() -> CudaDevice:
    """The first GPU of this machine.  Raises `LumiError` that says what is missing."""
    return CudaDevice()


class CudaExecutable:
    """The compiled kernels of a plan."""

    def __init__(self, gpu: Gpu, plan: Plan) -> None:
        self._gpu, self._plan = gpu, plan
        self._kernels = load_kernels(gpu, [k.step for k in plan.kernels])

    def inputs(self, variant: int) -> dict[str, Memory]:
        """Memory for the small inputs of a variant, which one copy fills together with the dims."""
        chosen = self._plan.variants[variant]
        names = {self._kernels[launch.kernel].names for launch in chosen.launches}
        sizes = {b.name: size_in_bytes(b, chosen.dims) for b in chosen.buffers if b.role is Role.INPUT}
        small = {name: size for name, size in sizes.items() if size <= LARGEST}
        mail = Mail(self._gpu, sum(map(len, names)), tuple(small.values()))
        return dict(zip(small, mail.slots, strict=True))

    def prepare(self, variant: int, places: Sequence[Place]) -> CudaProgram:
        """The graph of a variant whose buffers lie at `places`."""
        chosen = self._plan.variants[variant]
        where = [p.memory.address + p.offset for p in places]
        mails = [p.memory.mail for p in places if isinstance(p.memory, Slot)]
        largest = {name: r.high for name, r in chosen.dims.items()}
        settled = Settled([k.step for k in self._plan.kernels], chosen)
        entries = [
            Entry(
                self._kernels[launch.kernel],
                tuple(where[n] for n in launch.buffers),
                self._kernels[launch.kernel].code.cells(largest),
                tuple(map(settled.is_constant, launch.buffers)),
                settled.since(launch) if self._kernels[launch.kernel].code.walks else -1,
                largest,
            )
            for launch in chosen.launches
        ]
        growing = chosen.dims.keys() - {n for s in self._plan.inputs for n in s.dims()}
        launches = Launches(self._gpu, entries, mails[0] if mails else None, growing)
        return CudaProgram(launches, tuple(places))


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """The graph of a variant, and the memory it points into."""

    launches: Launches
    places: tuple[Place, ...] = field(repr=False)

    def run(self, dims: Mapping[str, int]) -> None:
        """Put all launches on the stream, in order."""
        self.launches.start(dims)
