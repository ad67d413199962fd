"""Running kernels made by hand on the GPU, and the kernels of the workloads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from lumi.backends.cuda import schedule
from lumi.backends.cuda.gpu import open_gpu
from lumi.backends.cuda.launch import Entry, Launches, load_kernels
from lumi.errors import Source
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Step
from lumi.llir.parse import parse
from tests.search.plans import found
from tests.workloads import WORKLOADS

Array = np.ndarray

SIMPLE = ("softmax", "rmsnorm", "log_sum_exp", "matmul_dequantised", "softmax_topped", "gate_overflow")
"""Workloads whose kernels hold few values at once, so that nothing may spill."""


class OnGpu:
    """Steps compiled together; `run(number, buffers, dims)` runs one of them in place."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.gpu, self.steps = open_gpu(), list(steps)
        self.kernels = load_kernels(self.gpu, self.steps)

    def run(
        self,
        number: int,
        arrays: Mapping[str, Array],
        values: Mapping[str, int] = {},
        since: int = -1,
        largest: Mapping[str, int] | None = None,
    ) -> None:
        kernel, names = self.kernels[number], self.steps[number].buffers
        blocks = {n: self.gpu.allocate(arrays[n].nbytes) for n in names}
        for name, block in blocks.items():
            self.gpu.write(int(block), arrays[name].reshape(-1).view(np.uint8))
        addresses = tuple(int(blocks[n]) for n in names)
        entry = Entry(kernel, addresses, kernel.code.cells(values), since=since, largest=largest or values)
        Launches(self.gpu, [entry]).run(values)
        for name, block in blocks.items():
            self.gpu.read(int(block), arrays[name].reshape(-1).view(np.uint8))


def read(name: str, sizes: tuple[int, int] = (0, 0)) -> Kernel:
    """The kernel in `texts/NAME.lumi`, the first of two `sizes` being the second wherever it stands."""
    path = Path(__file__).parent / "texts" / f"{name}.lumi"
    old, new = map(str, sizes)
    return parse(
        Source(path.name, re.sub(rf"\b{old}\b", new, path.read_text()) if sizes[0] else path.read_text())
    )


@cache
def plan_of(name: str) -> KernelGraph:
    """The kernels of a workload."""
    return found(WORKLOADS[name]).graph


def variants(kernel: Kernel) -> tuple[Schedule, ...]:
    """The schedules that are tried in tests: the default, and the two that differ from it most."""
    every = schedule.schedules(kernel)
    return tuple(dict.fromkeys((every[0], every[min(3, len(every) - 1)], every[-1])))
