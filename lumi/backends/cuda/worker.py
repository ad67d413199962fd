"""A process of its own in which candidate kernels run, so that a fault or a hang costs only that.

Started by `measure` as `python -m lumi.backends.cuda.worker FILE`: a file of shared memory, which only small
results pass through.  Each line of standard input is a JSON job, each line of standard output its answer.

A job has `commands`, lists of a name and arguments: the methods of `Workbench`.  It is answered by
`{"answers": [what each gives]}`, or by `{"failed": message, "at": name}` for the first that fails.  Memory is
blocks by name; a place is a block and an offset in bytes.
"""

from __future__ import annotations

import json
import mmap
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lumi.backends.cuda.fill import Filler
from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.backends.cuda.judge import Judge
from lumi.backends.cuda.launch import Entry, Launches, Loaded, load_kernels
from lumi.dtype import DTYPES
from lumi.errors import LumiError
from lumi.llir.json import Json, decode, encode
from lumi.llir.kernel import Step
from lumi.search.samples import BLOCK, Sample

LONG = 1e-3
"""Seconds that one timed run should take, so that its start does not count."""

REPEAT = 64
"""How often steps are repeated in one timed run at most."""

RUNS = 12
"""Timed runs of each thing that is timed."""

KERNELS = 400
"""Kernels that are kept loaded at most."""

Place: TypeAlias = "Sequence[Any]"
"""A block by its name, and a byte of it."""


def main() -> None:
    """Answer jobs until standard input ends."""
    serve(Workbench(open_gpu(), Path(sys.argv[1])))


def serve(bench: Workbench) -> None:
    """Answer jobs by what a workbench gives."""
    for line in sys.stdin:
        print(json.dumps(answered(bench, json.loads(line)["commands"])), flush=True)


def answered(bench: Workbench, commands: Sequence[Any]) -> dict[str, Any]:
    """What the commands of a job give."""
    answers = []
    for name, *given in commands:
        try:
            answers.append(getattr(bench, name)(*given))
        except LumiError as error:
            return {"failed": error.message, "at": name}
    return {"answers": answers}


class Workbench:
    """Memory and kernels that are kept from job to job, and what can be done with them."""

    def __init__(self, gpu: Gpu, shared: Path) -> None:
        self._gpu, self._shared = gpu, shared
        self._judge, self._filler = Judge(gpu), Filler(gpu)
        self._blocks: dict[str, tuple[Any, int]] = {}
        self._kernels: dict[str, Loaded] = {}

    # -- memory

    def hold(self, name: str, size: int) -> None:
        """Have a block of at least so many bytes; a new one holds anything."""
        if size > self._blocks.get(name, (None, 0))[1]:
            self._blocks.pop(name, None)
            self._blocks[name] = self._gpu.reserve(size), size

    def free(self, name: str) -> None:
        """Let go of a block."""
        self._blocks.pop(name, None)

    def clear(self) -> None:
        """Let go of all blocks."""
        self._blocks.clear()

    def room(self) -> int:
        """Bytes of the GPU's memory that nothing holds."""
        return self._gpu.memory()[0]

    def fill(self, place: Place, sample: Json) -> None:
        """Write made-up numbers: the first ones, then what is there again and again behind itself."""
        made = decode(Sample, sample)
        address, size = self._address(place), made.noise.dtype.size
        done = min(made.count, BLOCK)
        self._filler.put(address, made.noise, done)
        while done < made.count:
            more = min(done, made.count - done)
            self._gpu.copy(address + done * size, address, more * size)
            done += more

    def spoil(self, name: str, size: int) -> None:
        """Make the first bytes of a block what makes numbers NaN."""
        self._gpu.clear(self._address((name, 0)), size, value=0xFF)

    def fetch(self, place: Place, size: int) -> None:
        """Copy bytes to the shared file, which has room for them."""
        raw = np.empty(size, np.uint8)
        self._gpu.read(self._address(place), raw)
        with self._shared.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            memory[:size] = raw.tobytes()

    def _address(self, place: Place) -> int:
        name, offset = place
        return int(self._blocks[name][0]) + int(offset)

    # -- kernels

    def run(self, steps: Json, table: Any, dims: dict[str, int]) -> list[int | None]:
        """Run steps once; `table` has the places of each one's buffers, and which of them nothing writes.

        Gives the names of the algorithms that the library ran; None where it was not called.
        """
        entries = self._entries(steps, table, dims)
        once = Launches(self._gpu, entries)
        once.run(dims)
        calls = [once.call(entry, dims) for entry in entries]
        return [None if call is None else call.algorithm for call in calls]

    def time(self, steps: Json, tables: Any, dims: dict[str, int]) -> list[Any]:
        """Seconds of all steps, one list, and of each step alone; the tables take turns."""
        found = [self._entries(steps, table, dims) for table in tables]
        whole = self._times(found, dims)
        count = len(found[0])
        alone = [self._times([[e[n]] for e in found], dims) for n in range(count)] if count > 1 else [whole]
        return [whole, alone]

    def _entries(self, steps: Any, table: Any, dims: Mapping[str, int]) -> list[Entry]:
        rows = zip(self._loaded(steps), table, strict=True)
        return [
            Entry(k, tuple(map(self._address, places)), k.code.cells(dims), tuple(constant), largest=dims)
            for k, (places, constant) in rows
        ]

    def _loaded(self, steps: Sequence[Json]) -> list[Loaded]:
        """Steps on the GPU; those that were met before are there already."""
        if len(self._kernels) > KERNELS:
            self._kernels.clear()
        texts = [json.dumps(step) for step in steps]
        new = {
            t: decode(Step, s, "step") for t, s in zip(texts, steps, strict=True) if t not in self._kernels
        }
        self._kernels.update(zip(new, load_kernels(self._gpu, list(new.values())), strict=True))
        return [self._kernels[text] for text in texts]

    def _times(self, tables: Sequence[Sequence[Entry]], dims: dict[str, int]) -> list[float]:
        """Seconds of one pass over the entries of a table, the tables taking turns."""
        gpu = self._gpu
        once = Launches(gpu, [e for t in tables for e in t])
        once.run(dims)
        rough = min(gpu.seconds(lambda: once.start(dims)) for _ in range(2))
        repeat = max(1, min(REPEAT, int(LONG / max(rough, 1e-7))))
        many = once if repeat == 1 else Launches(gpu, [e for t in tables for e in t] * repeat)
        many.run(dims)
        return [gpu.seconds(lambda: many.start(dims)) / (repeat * len(tables)) for _ in range(RUNS)]

    # -- results

    def compare(self, got: Place, want: Place, dtype: str, count: int) -> Json:
        """How results differ from the reference, whose floats are f64."""
        found = self._judge.difference(self._address(got), self._address(want), DTYPES[dtype], count)
        return encode(found)

    def digest(self, places: Sequence[tuple[Place, int]]) -> list[int]:
        """Numbers that any change of the bytes at these places changes, each place with its bytes."""
        return [self._judge.digest(self._address(place), size) for place, size in places]


if __name__ == "__main__":
    main()
