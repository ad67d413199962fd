"""Where plans are timed whole, and how fast a machine is at best."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from gpu_case import Contestant, copy_bandwidth
from kernel_times import launches_of

from lumi.errors import LumiError
from lumi.plan.plan import Plan
from lumi.runtime.session import Session

LEAST = 2e-3
"""Seconds that are timed together at least."""


class Machine(Protocol):
    """Where plans are timed, and its bytes and operations a second at best."""

    heading: Mapping[str, Any]
    bandwidth: float
    peak: float

    def prepare(self, plans: Iterable[Plan]) -> None:
        """Compile kernels side by side."""

    def contestant(self, session: Session, data: Mapping[str, Any]) -> Contestant:
        """Runs a plan that has run on some data before; the seconds of one run."""


class OnGpu:
    """The first NVIDIA GPU; the peak is that of a large product of bf16."""

    def __init__(self) -> None:
        from matmul import LARGE, library
        from matmul import Case as Product

        from lumi.backends.cuda.gpu import open_gpu

        self.gpu = open_gpu()
        self.bandwidth = copy_bandwidth(self.gpu)
        large = Product("large", "bf16", LARGE, LARGE, LARGE)
        work = library(self.gpu, large)
        self.peak = large.flops / statistics.median(work.seconds() for _ in range(5))
        self.heading = {"gpu": self.gpu.name, "driver": self.gpu.driver_version}

    def prepare(self, plans: Iterable[Plan]) -> None:
        from lumi.backends.cuda.launch import load_kernels

        with suppress(LumiError):  # which the session of its plan raises, too
            load_kernels(self.gpu, [k.step for plan in plans for k in plan.kernels])

    def contestant(self, session: Session, data: Mapping[str, Any]) -> Contestant:
        from lumi.backends.cuda.launch import Launches

        entries = launches_of(session, 0).entries
        once = Launches(self.gpu, entries)
        once.run({})
        repeat = max(1, int(LEAST / self.gpu.seconds(lambda: once.start({}))))
        launches = Launches(self.gpu, entries * repeat)
        launches.run({})
        return lambda: self.gpu.seconds(lambda: launches.start({})) / repeat


class OnCpu:
    """This processor; calls are timed whole, with what copies their inputs and outputs."""

    def __init__(self) -> None:
        from ceilings import multiply_rate, read_bandwidth

        from lumi.backends.cpu.device import CpuDevice, cores

        self.bandwidth, self.peak = read_bandwidth(cores()), multiply_rate()
        self.heading = {"cpu": CpuDevice().name, "threads": cores()}

    def prepare(self, plans: Iterable[Plan]) -> None:
        """Nothing: a session compiles its kernels side by side."""

    def contestant(self, session: Session, data: Mapping[str, Any]) -> Contestant:
        def run() -> float:
            start = time.perf_counter()
            session(**data)
            return time.perf_counter() - start

        return run
