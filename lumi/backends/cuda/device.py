"""An NVIDIA GPU as a device: kernels compiled by NVRTC, each variant of a plan one captured graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.backends.cuda.launch import Entry, Launches, load_kernels
from lumi.llir.kernel import Step
from lumi.plan.plan import Plan
from lumi.runtime.device import Array, Memory, Place


class CudaMemory:
    """Bytes of the GPU's memory."""

    def __init__(self, gpu: Gpu, size: int) -> None:
        self._gpu, self._size = gpu, size
        self._block: Any = gpu.allocate(size)

    @property
    def size(self) -> int:
        """Bytes."""
        return self._size

    @property
    def address(self) -> int:
        """Where the first byte lies."""
        return int(self._block)

    def write(self, array: Array, offset: int = 0) -> None:
        """Copy a C-contiguous array in, from byte `offset` on."""
        self._gpu.write(self.address + offset, array.reshape(-1).view(np.uint8))

    def read(self, array: Array, offset: int = 0) -> None:
        """Fill a C-contiguous array with the bytes from `offset` on."""
        self._gpu.read(self.address + offset, array.reshape(-1).view(np.uint8))

    def clear(self) -> None:
        """Make every byte zero."""
        self._gpu.clear(self.address, self._size)


class CudaDevice:
    """The first GPU of this machine."""

    def __init__(self) -> None:
        self._gpu = open_gpu()

    @property
    def name(self) -> str:
        """What the GPU calls itself."""
        return self._gpu.name

    def allocate(self, size: int) -> CudaMemory:
        """A zeroed block of at least `size` bytes."""
        return CudaMemory(self._gpu, size)

    def adopt(self, array: Array) -> CudaMemory:
        """A block holding a copy of the array."""
        block = CudaMemory(self._gpu, array.nbytes)
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
        self._kernels = load_kernels(gpu, [Step(k.kernel, k.schedule) for k in plan.kernels])

    def prepare(self, variant: int, places: Sequence[Place]) -> CudaProgram:
        """The graph of a variant whose buffers lie at `places`."""
        chosen = self._plan.variants[variant]
        where = [_own(p.memory).address + p.offset for p in places]
        largest = {name: r.high for name, r in chosen.dims.items()}
        entries = [
            Entry(
                self._kernels[launch.kernel],
                tuple(where[n] for n in launch.buffers),
                self._kernels[launch.kernel].code.cells(largest),
            )
            for launch in chosen.launches
        ]
        return CudaProgram(Launches(self._gpu, entries), tuple(places))


@dataclass(frozen=True, slots=True)
class CudaProgram:
    """The graph of a variant, and the memory it points into."""

    launches: Launches
    places: tuple[Place, ...] = field(repr=False)

    def run(self, dims: Mapping[str, int]) -> None:
        """Run all launches in order, and wait."""
        self.launches.run(dims)


def _own(memory: Memory) -> CudaMemory:
    assert isinstance(memory, CudaMemory), "the memory of another device"
    return memory
