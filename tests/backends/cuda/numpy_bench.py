"""The commands of the child in which candidates are measured, carried out by numpy.

Run as a module, it is that child; `NumpyWorker` does without one.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.backends.cuda.worker import answered, serve
from lumi.dtype import DTYPES
from lumi.llir.json import decode, encode
from lumi.llir.kernel import Step, accesses
from lumi.search.accuracy import difference
from lumi.search.child import SharedMemory
from lumi.search.samples import Sample

Array = np.ndarray

ROOM = 4 << 30
"""Bytes that are said to be free."""


class NumpyBench:
    """Blocks are arrays of bytes; kernels run by the numpy executor, whatever their schedule."""

    def __init__(self, shared: Path) -> None:
        self.shared = shared
        self.blocks: dict[str, Array] = {}
        self.runs = 0

    def hold(self, name: str, size: int) -> None:
        if size > len(self.blocks.get(name, ())):
            self.blocks[name] = np.full(size, 0xAA, np.uint8)

    def free(self, name: str) -> None:
        self.blocks.pop(name, None)

    def clear(self) -> None:
        self.blocks.clear()

    def room(self) -> int:
        return ROOM

    def fill(self, place: Any, sample: Any) -> None:
        array = decode(Sample, sample).array()
        self._raw(place, array.nbytes)[:] = array.reshape(-1).view(np.uint8)

    def spoil(self, name: str, size: int) -> None:
        self.blocks[name][:size] = 0xFF

    def fetch(self, place: Any, size: int) -> None:
        with self.shared.open("r+b") as file:
            file.write(self._raw(place, size).tobytes())

    def run(self, steps: Any, table: Any, dims: dict[str, int]) -> list[None]:
        for encoded, (places, _) in zip(steps, table, strict=True):
            self.runs += 1
            step = decode(Step, encoded)
            where = dict(zip(step.buffers, places, strict=True))
            for kernel in step.kernels:
                found = {a.buffer: a for a, _ in accesses(kernel)}
                held = {}
                for name, access in found.items():
                    shape = [dim.value(e, dims) for e in access.shape]
                    kind = access.dtype.storage
                    size = int(np.prod(shape)) * kind.itemsize
                    held[name] = self._raw(where[name], size).view(kind).reshape(shape)
                interpret.run(kernel, held, dims)
        return [None] * len(steps)

    def time(self, steps: Any, tables: Any, dims: dict[str, int]) -> Any:
        assert all(name in self.blocks for rows in tables for places, _ in rows for name, _ in places)
        return [[1e-3 * len(steps)], [[1e-3]] * len(steps)]

    def compare(self, got: Any, want: Any, dtype: str, count: int) -> Any:
        kind = DTYPES[dtype]
        wide = np.dtype(np.float64) if kind.is_float else kind.storage
        results = self._raw(got, count * kind.size).view(kind.storage)
        return encode(difference(results, self._raw(want, count * wide.itemsize).view(wide), kind))

    def digest(self, places: Any) -> list[int]:
        return [zlib.crc32(self._raw(place, size).tobytes()) for place, size in places]

    def _raw(self, place: Any, size: int) -> Array:
        name, offset = place
        found = self.blocks[name][offset : offset + size]
        assert len(found) == size, "a place beyond its block"
        return found


class NumpyWorker:
    """What `lumi.search.child.Worker` is, without a child: it carries the commands out itself."""

    def __init__(self) -> None:
        self.memory = SharedMemory()
        self.bench = NumpyBench(Path(self.memory.path))

    def hold(self, size: int) -> None:
        self.memory.hold(size)

    def run(self, job: Mapping[str, Any]) -> dict[str, Any]:
        return answered(self.bench, job["commands"])  # type: ignore[arg-type]

    def stop(self) -> None:
        self.memory.close()


if __name__ == "__main__":
    serve(NumpyBench(Path(sys.argv[1])))  # type: ignore[arg-type]
