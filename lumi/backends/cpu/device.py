"""The CPU as a device: kernels compiled once by the system's C compiler, each call one table of launches.

Without a compiler the same kernels run in numpy, slower.
"""

from __future__ import annotations

import ctypes
import os
import platform
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lumi import dim
from lumi.backends.cpu import binary, interpret, library
from lumi.backends.cpu.compile import compile_libraries, compile_library, find_compiler, find_library, is_kept
from lumi.backends.cpu.emit import driver_source, emit, source
from lumi.backends.cpu.launch import Launches, load_driver, open_library
from lumi.backends.cpu.schedule import BLAS, available
from lumi.errors import LumiError
from lumi.llir.kernel import Step
from lumi.noise import Noise
from lumi.plan.plan import ALIGNMENT, Buffer, Plan
from lumi.runtime.counters import Counters
from lumi.runtime.device import Array, Executable, Memory, Place, Program, tell_compiling
from lumi.runtime.dlpack import CPU


class CpuMemory:
    """Bytes of the host's memory; what is copied in and out is counted."""

    def __init__(self, data: Array, counters: Counters) -> None:
        self.data, self._counters = data, counters

    @property
    def size(self) -> int:
        """Bytes."""
        return int(self.data.size)

    @property
    def address(self) -> int:
        """Where the first byte lies."""
        return int(self.data.ctypes.data)

    def write(self, array: Array, offset: int = 0) -> None:
        """Copy a C-contiguous array in, from byte `offset` on."""
        self._counters.bytes_in += array.nbytes
        self.data[offset : offset + array.nbytes] = array.reshape(-1).view(np.uint8)

    def fetch(self, size: int, offset: int = 0) -> Array:
        """A new u8 array of `size` bytes from `offset` on."""
        self._counters.bytes_out += size
        return self.data[offset : offset + size].copy()

    def copy(self, source: Memory, offset: int = 0) -> None:
        """Copy the bytes of another block in, from byte `offset` on."""
        self._counters.bytes_within += source.size
        self.data[offset : offset + source.size] = _host(source).data

    def clear(self) -> None:
        """Make every byte zero."""
        self.data[:] = 0


class CpuDevice:
    """This machine's processor.

    With `trusted`, the compiled kernels that a plan carries for such a machine are run as they are.
    """

    def __init__(self, trusted: bool = False) -> None:
        self._trusted = trusted
        self._counters = Counters()

    @property
    def name(self) -> str:
        """The processor and how many of its cores are used."""
        return f"{_model()}, {cores()} cores"

    @property
    def counters(self) -> Counters:
        """What it was asked for so far; its memory is the host's, and counts as the device's."""
        return self._counters

    @property
    def kind(self) -> tuple[int, int]:
        """DLPack's number for the host."""
        return CPU, 0

    @property
    def queue(self) -> int | None:
        """None: nothing runs by itself."""
        return None

    def hand_over(self, stream: int | None) -> None:
        """Nothing is under way."""

    def wait(self) -> None:
        """Nothing is under way."""

    def view(self, address: int, size: int) -> CpuMemory:
        """Bytes of the process that someone else owns."""
        data = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        return CpuMemory(data, self._counters)

    def part(self, place: Place, size: int) -> CpuMemory:
        """A block holding a copy of the `size` bytes at a place."""
        block = self.allocate(size)
        block.copy(CpuMemory(_host(place.memory).data[place.offset : place.offset + size], self._counters))
        return block

    def random(self, noise: Noise, count: int) -> CpuMemory | None:
        """None: the host makes them."""
        return None

    def allocate(self, size: int) -> CpuMemory:
        """A zeroed block of at least `size` bytes."""
        self._counters.device_allocations += 1
        raw = np.zeros(size + ALIGNMENT, np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        return CpuMemory(raw[start : start + size], self._counters)

    def adopt(self, array: Array) -> CpuMemory:
        """A block over the array itself, or over a copy when that is not aligned."""
        raw = array.reshape(-1).view(np.uint8)
        if raw.ctypes.data % ALIGNMENT == 0:
            return CpuMemory(raw, self._counters)
        block = self.allocate(raw.size)
        block.write(raw)
        return block

    def load(self, plan: Plan) -> Executable:
        """Compile the kernels of a plan, or prepare to run them in numpy and say so."""
        carried = binary.find(plan)
        if carried is not None and self._trusted:
            functions, driver = binary.open_binary(carried, len(plan.kernels))
            return NativeExecutable(plan, functions, driver, self._counters)
        if find_compiler() is None:
            warnings.warn(
                "no C compiler was found, so kernels run in numpy, many times slower; "
                "install gcc or clang, or set CC"
                + (", or trust the plan's binary: CpuDevice(trusted=True)" if carried else ""),
                stacklevel=2,
            )
            return NumpyExecutable(plan, self._counters)
        steps = [available(k.step) for k in plan.kernels]
        driver = load_driver(compile_library(driver_source()))
        return NativeExecutable(plan, compile_steps(steps), driver, self._counters)


def open_device() -> CpuDevice:
    """The processor of this machine."""
    return CpuDevice()


def cores() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


# -- native code


def compile_steps(steps: Sequence[Step]) -> list[Any]:
    """The compiled function of each step, from as many libraries side by side as there are cores.

    Raises `LumiError` for what the compiler refuses.
    """
    texts = [emit(step, f"k{number}") for number, step in enumerate(steps)]
    groups = _balanced([len(t) for t in texts], cores())
    functions: list[Any] = [None] * len(texts)
    sources = [source(texts[n] for n in group) for group in groups]
    compiler = find_compiler()
    if compiler is not None:
        missing = [find_library(text, compiler) is None for text in sources]
        count = sum(len(group) for group, is_new in zip(groups, missing, strict=True) if is_new)
        tell_compiling(count, is_kept())
    found = compile_libraries(sources)
    for group, path in zip(groups, found, strict=True):
        if isinstance(path, LumiError):
            raise path
        opened = open_library(path)
        for number in group:
            functions[number] = opened[f"k{number}"]
    return functions


def _balanced(sizes: Sequence[int], parts: int) -> list[list[int]]:
    """Numbers of items in at most `parts` groups of about equal total size."""
    groups: list[list[int]] = [[] for _ in range(max(1, min(parts, len(sizes))))]
    totals = [0] * len(groups)
    for number in sorted(range(len(sizes)), key=lambda n: -sizes[n]):
        least = totals.index(min(totals))
        groups[least].append(number)
        totals[least] += sizes[number]
    return [sorted(g) for g in groups if g]


class NativeExecutable:
    """The compiled kernels of a plan."""

    def __init__(self, plan: Plan, functions: Sequence[Any], driver: ctypes.CDLL, counters: Counters) -> None:
        self._plan, self._counters = plan, counters
        self._steps = [available(k.step) for k in plan.kernels]
        self._functions = functions
        self._driver = driver

    def inputs(self, variant: int) -> dict[str, Memory]:
        """None: all inputs lie in the arena."""
        return {}

    def prepare(self, variant: int, places: Sequence[Place]) -> Program:
        """The launches of a variant whose buffers lie at `places`."""
        where = [_host(p.memory).address + p.offset for p in places]
        launches = self._plan.variants[variant].launches
        entries = [
            (
                self._functions[launch.kernel],
                self._steps[launch.kernel].dims,
                [where[n] for n in launch.buffers],
            )
            for launch in launches
        ]
        calls_blas = any(t.schedule == BLAS for launch in launches for t in self._steps[launch.kernel].turns)
        return NativeProgram(Launches(self._driver, entries), calls_blas, tuple(places), self._counters)


@dataclass(frozen=True, slots=True)
class NativeProgram:
    """A table of launches, and the memory it points into."""

    launches: Launches
    calls_blas: bool
    places: tuple[Place, ...] = field(repr=False)
    counters: Counters = field(repr=False)

    def run(self, dims: Mapping[str, int]) -> None:
        """Run all launches in order, and wait."""
        self.counters.launches += 1
        with library.single_threaded() if self.calls_blas else nullcontext():
            self.launches.run(dims)


def _host(memory: Memory) -> CpuMemory:
    assert isinstance(memory, CpuMemory), "the memory of another device"
    return memory


# -- numpy


class NumpyExecutable:
    """The kernels of a plan, run by the numpy executor."""

    def __init__(self, plan: Plan, counters: Counters) -> None:
        self._plan, self._counters = plan, counters

    def inputs(self, variant: int) -> dict[str, Memory]:
        """None: all inputs lie in the arena."""
        return {}

    def prepare(self, variant: int, places: Sequence[Place]) -> Program:
        """The launches of a variant whose buffers lie at `places`."""
        return NumpyProgram(self._plan, variant, tuple(places), self._counters)


@dataclass(frozen=True, slots=True)
class NumpyProgram:
    """The launches of a variant, run by the numpy executor."""

    plan: Plan
    variant: int
    places: tuple[Place, ...] = field(repr=False)
    counters: Counters = field(repr=False)

    def run(self, dims: Mapping[str, int]) -> None:
        """Run all launches in order."""
        self.counters.launches += 1
        variant = self.plan.variants[self.variant]
        arrays = [_view(b, p, dims) for b, p in zip(variant.buffers, self.places, strict=True)]
        for launch in variant.launches:
            step = self.plan.kernels[launch.kernel].step
            given = {own: arrays[n] for own, n in zip(step.buffers, launch.buffers, strict=True)}
            for kernel in step.kernels:
                interpret.run(kernel, given, dims)


def _view(buffer: Buffer, place: Place, dims: Mapping[str, int]) -> Array:
    """The array of a buffer in its memory."""
    shape = tuple(dim.value(size, dims) for size in buffer.shape)
    count = int(np.prod(shape, dtype=np.int64)) * buffer.dtype.size
    raw = _host(place.memory).data[place.offset : place.offset + count]
    return raw.view(buffer.dtype.storage).reshape(shape)
