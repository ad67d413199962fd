"""What changes from call to call, sent to the GPU by one copy: the values of dims, then small inputs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from struct import Struct

import numpy as np

from lumi.backends.cuda.gpu import Gpu, Piece
from lumi.plan.plan import ALIGNMENT
from lumi.runtime.device import Array, Memory

LARGEST = 64 << 10
"""Bytes of an input that goes by mail."""


class Mail:
    """A block of device memory and its likeness on the host: room for `dims` integers, then for inputs."""

    def __init__(self, gpu: Gpu, dims: int, inputs: Sequence[int] = ()) -> None:
        self._gpu = gpu
        self._edges = [0, _rounded(8 * max(dims, 1))]
        for size in inputs:
            self._edges.append(self._edges[-1] + _rounded(size))
        self._block = gpu.allocate(self._edges[-1])
        self._whole = memoryview(bytearray(self._edges[-1]))
        self._values, self._packing = [0] * dims, Struct(f"{dims}q")
        self._changed: set[int] = set()
        self.address = int(self._block)
        self.slots = tuple(Slot(self, number, size) for number, size in enumerate(inputs, 1))

    def set_dims(self, values: list[int]) -> None:
        """Give the dims their values."""
        if self._values != values:
            self._packing.pack_into(self._whole, 0, *values)
            self._values = values
            self._changed.add(0)

    def put(self, number: int, raw: bytes, offset: int) -> None:
        """Give a part, the dims being the first, some bytes."""
        start = self._edges[number] + offset
        self._whole[start : start + len(raw)] = raw
        self._changed.add(number)

    def fill(self, number: int, source: int, size: int, offset: int) -> None:
        """Give a part bytes that lie on the GPU."""
        self._changed.discard(number)
        self._gpu.copy(self.address + self._edges[number] + offset, source, size)

    def pieces(self) -> list[Piece]:
        """What has to be sent: the changed parts, neighbours together."""
        if not self._changed:
            return []
        if len(self._changed) == len(self._edges) - 1:
            self._changed.clear()
            return [(self.address, self._whole)]
        changed = sorted(self._changed)
        self._changed.clear()
        starts = changed[:1] + [b for a, b in pairwise(changed) if b > a + 1]
        stops = [a + 1 for a, b in pairwise(changed) if b > a + 1] + [n + 1 for n in changed[-1:]]
        spans = [(self._edges[a], self._edges[b]) for a, b in zip(starts, stops, strict=True)]
        return [(self.address + a, self._whole[a:b]) for a, b in spans]


class Slot:
    """The part of a mail that holds an input, as memory."""

    def __init__(self, mail: Mail, number: int, size: int) -> None:
        self.mail, self._number, self._size = mail, number, size

    @property
    def size(self) -> int:
        """Bytes."""
        return self._size

    @property
    def address(self) -> int:
        """Where the first byte lies."""
        return self.mail.address + self.mail._edges[self._number]

    def write(self, array: Array, offset: int = 0) -> None:
        """Note a C-contiguous array, from byte `offset` on; it is sent with the next call."""
        self.mail.put(self._number, array.tobytes(), offset)

    def fetch(self, size: int, offset: int = 0) -> Array:
        """A new u8 array of `size` bytes from `offset` on, as they were last sent."""
        return self.mail._gpu.fetch(self.address + offset, size)

    def copy(self, source: Memory, offset: int = 0) -> None:
        """Copy the bytes of another block of the GPU in, from byte `offset` on."""
        self.mail.fill(self._number, source.address, source.size, offset)

    def clear(self) -> None:
        """Make every byte zero."""
        self.write(np.zeros(self._size, np.uint8))


def _rounded(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
