"""A process of its own in which candidate kernels run, so that a fault or a hang costs only that.

Started by `measure` as `python -m lumi.backends.cpu.worker FILE`: a file of shared memory.  Each line of
standard input is a JSON job, each line of standard output its result.

A job has `libraries` (paths), `kernels` ([library, function, names of its dims]), `tables` (lists of
[kernel, offsets of its buffers]; all tables do the same work on different memory), `dims`, `runs`,
`seconds` and `blas`.  The tables run in turn until `runs` or `seconds` are reached; the result is
`{"steps": [nanoseconds of each launch, one list a run]}`.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from lumi.backends.cpu import library
from lumi.backends.cpu.launch import Launches, load_driver, open_library


def main() -> None:
    """Answer jobs until standard input ends; Ctrl-C is left to the owner of the process, who ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Path(sys.argv[1]).open("r+b") as file:
        memory = Memory(file.fileno())
        for line in sys.stdin:
            job = json.loads(line)
            memory.hold(int(job["size"]))
            print(json.dumps(run(job, memory.address)), flush=True)


class Memory:
    """The shared file, mapped again when it has grown."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._map, self.address = descriptor, mmap.mmap(-1, 1), 0

    def hold(self, size: int) -> None:
        """Map at least `size` bytes."""
        if len(self._map) < size:
            self._map = mmap.mmap(self._descriptor, size)
            self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))


def run(job: dict[str, Any], base: int) -> dict[str, Any]:
    """Run one job on the memory at `base`."""
    opened = {path: open_library(Path(path)) for path in job["libraries"]}
    kernels = [(opened[path][name], tuple(names)) for path, name, names in job["kernels"]]
    driver = load_driver(job["driver"])
    tables = [
        Launches(driver, [(*kernels[k], [base + o for o in offsets]) for k, offsets in table])
        for table in job["tables"]
    ]
    steps: list[list[int]] = []
    deadline = time.monotonic() + job["seconds"]
    with library.single_threaded() if job["blas"] else nullcontext():
        while len(steps) < job["runs"] and (not steps or time.monotonic() < deadline):
            steps.append(tables[len(steps) % len(tables)].run(job["dims"], timed=True))
    return {"steps": steps}


if __name__ == "__main__":
    main()
