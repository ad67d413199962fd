"""What the runtime asks of a device: memory, and an executable made from a plan.

A backend implements `Device` in `lumi.backends.<target>.device`; only `open_device` knows their names.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from lumi.errors import LumiError
from lumi.noise import Noise
from lumi.plan.plan import Plan
from lumi.runtime.counters import Counters

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
"""A host array; floats that numpy lacks are held as unsigned integers."""

_BACKENDS = {"cpu": "lumi.backends.cpu.device", "cuda": "lumi.backends.cuda.device"}
"""The module of each target; it has `open_device() -> Device`.  A plan chooses among these names only."""


class Memory(Protocol):
    """A block of device memory whose first byte lies at a multiple of `lumi.plan.plan.ALIGNMENT`."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def address(self) -> int:
        """Where the first byte lies, for who knows the device."""

    def write(self, array: Array, offset: int = 0) -> None:
        """Copy a C-contiguous array in, from byte `offset` on."""

    def fetch(self, size: int, offset: int = 0) -> Array:
        """A new u8 array of `size` bytes from `offset` on."""

    def copy(self, source: Memory, offset: int = 0) -> None:
        """Copy the bytes of another block of the device in, from byte `offset` on."""

    def clear(self) -> None:
        """Make every byte zero."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer begins: byte `offset` of a block."""

    memory: Memory
    offset: int


class Program(Protocol):
    """The launches of one variant with every address filled in."""

    def run(self, dims: Mapping[str, int]) -> None:
        """Run all launches in order; what is asked of a memory afterwards waits for them.

        `dims` has every dim of the variant.
        """


class Executable(Protocol):
    """The kernels of a plan, ready to run on one device."""

    def inputs(self, variant: int) -> Mapping[str, Memory]:
        """Memory for the inputs of a variant that are to lie outside of the arena; one session has it."""

    def prepare(self, variant: int, places: Sequence[Place]) -> Program:
        """The launches of `plan.variants[variant]`; `places[i]` is where its buffer i lies.

        The program keeps the memories alive.  Called once a variant and session: everything that a
        call would otherwise compute or allocate is done here.
        """


class Device(Protocol):
    """Something that holds memory and runs kernels."""

    @property
    def name(self) -> str:
        """What it is, in words, for people."""

    @property
    def counters(self) -> Counters:
        """What it was asked for so far."""

    @property
    def kind(self) -> tuple[int, int]:
        """Its kind and number as DLPack counts them."""

    @property
    def queue(self) -> int | None:
        """The stream that other libraries make ready for; None where nothing runs by itself."""

    def hand_over(self, stream: int | None) -> None:
        """Let what is put on another library's stream next see what this device was asked for so far."""

    def wait(self) -> None:
        """Wait until everything that was asked for is done."""

    def view(self, address: int, size: int) -> Memory:
        """Bytes of the device's memory that someone else owns."""

    def part(self, place: Place, size: int) -> Memory:
        """A block holding a copy of the `size` bytes at a place."""

    def random(self, noise: Noise, count: int) -> Memory | None:
        """A block of `count` made-up numbers; None where the host makes them as fast."""

    def allocate(self, size: int) -> Memory:
        """A zeroed block of at least `size` bytes."""

    def adopt(self, array: Array) -> Memory:
        """A block holding a C-contiguous array that never changes; shares the host's memory if it can."""

    def load(self, plan: Plan) -> Executable:
        """Compile the kernels of a plan, or take them from its binaries."""


def open_device(target: str) -> Device:
    """The device that plans for `target` run on.  Raises `LumiError` for an unknown target."""
    if target not in _BACKENDS:
        raise LumiError(
            "device error", f"no device runs plans for {target!r}", hint=f"targets: {', '.join(_BACKENDS)}"
        )
    return cast(Device, importlib.import_module(_BACKENDS[target]).open_device())


@contextmanager
def room_for(what: str, size: int, hint: str) -> Iterator[None]:
    """Raise `LumiError` where the host has no memory for `what`, of `size` bytes, that is made meanwhile."""
    try:
        yield
    except MemoryError:
        raise out_of_memory(what, size, hint) from None


def out_of_memory(what: str, size: int, hint: str) -> LumiError:
    """The error of `what` that would take more bytes than there are."""
    number, units = float(size), iter(("bytes", "KiB", "MiB", "GiB", "TiB"))
    unit = next(units)
    while number >= 1024 and unit != "TiB":
        number, unit = number / 1024, next(units)
    return LumiError(
        "memory error", f"{what} {number:.3g} {unit} of memory, more than this machine gives", hint=hint
    )


def tell_compiling(count: int, is_kept: bool) -> None:
    """Log that kernels are compiled that no cache has; if they are kept, later runs have no such delay."""
    once = ", once" if is_kept else ""
    if count:
        logging.getLogger("lumi").info("compiling %d kernel%s%s", count, "" if count == 1 else "s", once)
