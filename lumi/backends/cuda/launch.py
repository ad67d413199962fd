"""Launches of a variant as one graph, which takes the dims from device memory and so never changes."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lumi.backends.cuda.compile import compile_cubins
from lumi.backends.cuda.emit import Code, emit, source
from lumi.backends.cuda.gpu import Function, Gpu, Graph
from lumi.errors import LumiError
from lumi.llir.kernel import Step, dims

BLOCKS = 64
"""Blocks a multiprocessor is given at most; with more cells each block runs several."""

NAME = "kernel"
"""What the function of every source is called."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A kernel on the GPU: its code, its function, the dims it takes."""

    code: Code
    names: tuple[str, ...]
    function: Function = field(repr=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A launch: a kernel, the addresses of its buffers, and the most cells its grid can have.

    `constant` tells for each buffer whether no launch of the same graph writes it.
    """

    kernel: Loaded
    addresses: tuple[int, ...]
    cells: int
    constant: tuple[bool, ...] = ()

    @property
    def mask(self) -> int:
        """The constant buffers as bits, the first being the lowest."""
        return sum(1 << k for k, is_constant in enumerate(self.constant) if is_constant)


def load_kernels(gpu: Gpu, steps: Sequence[Step]) -> list[Loaded]:
    """Compile kernels side by side and put them on the GPU.  Raises `LumiError` for what NVRTC refuses."""
    codes = [emit(step, NAME) for step in steps]
    cubins = compile_cubins([source([code.text]) for code in codes], gpu.arch)
    loaded = []
    for step, code, cubin in zip(steps, codes, cubins, strict=True):
        if isinstance(cubin, LumiError):
            raise cubin
        loaded.append(Loaded(code, dims(step.kernel), gpu.function(cubin.content, NAME, code.shared)))
    return loaded


class Launches:
    """Launches in order, captured once; `run` gives the dims their values and runs them all.

    `entries` are what was captured.
    """

    def __init__(self, gpu: Gpu, entries: Sequence[Entry]) -> None:
        self._gpu, self.entries = gpu, tuple(entries)
        self._places: dict[tuple[str, ...], int] = {}
        for entry in entries:
            if entry.kernel.names not in self._places:
                self._places[entry.kernel.names] = sum(map(len, self._places))
        self._values = np.zeros(max(sum(map(len, self._places)), 1), np.int64)
        self._block = gpu.allocate(self._values.nbytes)
        self._graph = self._captured(entries)

    def _captured(self, entries: Sequence[Entry]) -> Graph:
        def work() -> None:
            for number, entry in enumerate(entries):
                self._launch(entry, early=number > 0 and self._gpu.starts_early)

        return self._gpu.capture(work)

    def _launch(self, entry: Entry, early: bool) -> None:
        kernel, code = entry.kernel, entry.kernel.code
        place = int(self._block) + 8 * self._places[kernel.names]
        values: list[tuple[int, type]] = [(a, ctypes.c_void_p) for a in (*entry.addresses, place)]
        if code.streams:
            values.append((entry.mask, ctypes.c_uint32))
        most = self._gpu.units * (1 if code.streams else BLOCKS)
        blocks = max(1, min(entry.cells, most))
        self._gpu.launch(kernel.function, blocks, code.threads, code.shared, values, early)

    def start(self, values: Mapping[str, int]) -> None:
        """Put all launches on the stream."""
        wanted = [values[name] for names in self._places for name in names]
        if wanted and self._values.tolist() != wanted:
            self._values[:] = wanted
            self._gpu.write(int(self._block), self._values.view(np.uint8))
        self._graph.replay()

    def run(self, values: Mapping[str, int]) -> None:
        """Run all launches in order, and wait."""
        self.start(values)
        self._gpu.wait()
