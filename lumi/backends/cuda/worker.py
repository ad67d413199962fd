"""A process of its own in which candidate kernels run, so that a fault or a hang costs only that.

Started by `measure` as `python -m lumi.backends.cuda.worker FILE`: a file of shared memory.  Each line of
standard input is a JSON job, each line of standard output its result.

A job has `steps` (JSON of `llir.json`), `table` (for each step the offsets of its buffers), `constant`
(for each step which of its buffers nothing writes), `size` (bytes of all buffers), `dims`, and `seconds`.
With `seconds` 0 the steps run once on the shared memory's bytes, which then hold the results, and the
answer is `{"algorithms": [name…]}`, null where the library was not called.  Else the steps run again and
again on `copies` of the buffers in turn, and the answer is `{"whole": [seconds…], "steps": [[seconds…]…]}`.
"""

from __future__ import annotations

import json
import mmap
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.backends.cuda.launch import Entry, Launches, Loaded, load_kernels
from lumi.llir.json import decode
from lumi.llir.kernel import Step

LONG = 1e-3
"""Seconds that one timed run should take, so that its start does not count."""

REPEAT = 64
"""How often steps are repeated in one timed run at most."""

RUNS = 12
"""Timed runs of each thing that is timed."""


def main() -> None:
    """Answer jobs until standard input ends."""
    gpu, blocks = open_gpu(), Blocks(open_gpu())
    with Path(sys.argv[1]).open("r+b") as file:
        for line in sys.stdin:
            job = json.loads(line)
            with mmap.mmap(file.fileno(), job["size"]) as shared:
                print(json.dumps(run(gpu, blocks, job, shared)), flush=True)


class Blocks:
    """Device memory that is kept from job to job, one block for each copy of the buffers."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu, self._size = gpu, 0
        self._blocks: list[Any] = []

    def hold(self, size: int, copies: int) -> list[int]:
        """The addresses of `copies` blocks of at least `size` bytes."""
        if size > self._size:
            self._blocks, self._size = [], size
        while len(self._blocks) < copies:
            self._blocks.append(self._gpu.allocate(self._size))
        return [int(b) for b in self._blocks[:copies]]


def run(gpu: Gpu, blocks: Blocks, job: dict[str, Any], shared: mmap.mmap) -> dict[str, Any]:
    """Run one job on the bytes of `shared`."""
    steps = [decode(Step, s, "step") for s in job["steps"]]
    kernels = load_kernels(gpu, steps)
    size, dims = job["size"], job["dims"]
    addresses = blocks.hold(size, job["copies"])
    tables = [_entries(kernels, job, base) for base in addresses]
    held = np.frombuffer(bytearray(shared[:size]), np.uint8)
    for base in addresses:
        gpu.write(base, held)
    if not job["seconds"]:
        once = Launches(gpu, tables[0])
        once.run(dims)
        gpu.read(addresses[0], held)
        shared[:size] = held.tobytes()
        calls = [once.call(entry, dims) for entry in tables[0]]
        return {"algorithms": [call and call.algorithm for call in calls]}
    whole = _times(gpu, tables, dims)
    alone = (
        [_times(gpu, [[t[n]] for t in tables], dims) for n in range(len(steps))]
        if len(steps) > 1
        else [whole]
    )
    return {"whole": whole, "steps": alone}


def _entries(kernels: Sequence[Loaded], job: dict[str, Any], base: int) -> list[Entry]:
    rows = zip(kernels, job["table"], job["constant"], strict=True)
    return [
        Entry(k, tuple(base + o for o in offsets), k.code.cells(job["dims"]), tuple(constant))
        for k, offsets, constant in rows
    ]


def _times(gpu: Gpu, tables: Sequence[Sequence[Entry]], dims: dict[str, int]) -> list[float]:
    """Seconds of one pass over the entries of a table, the tables taking turns."""
    once = Launches(gpu, [e for t in tables for e in t])
    once.run(dims)
    rough = min(gpu.seconds(lambda: once.start(dims)) for _ in range(2))
    repeat = max(1, min(REPEAT, int(LONG / max(rough, 1e-7))))
    many = once if repeat == 1 else Launches(gpu, [e for t in tables for e in t] * repeat)
    many.run(dims)
    return [gpu.seconds(lambda: many.start(dims)) / (repeat * len(tables)) for _ in range(RUNS)]


if __name__ == "__main__":
    main()
