"""Matrix products on an NVIDIA GPU: what the search finds, beside torch.matmul and cuBLASLt's favourite.

Each case is a small model, compiled and searched by measurement.  What won, the library's first choice, the
fastest kernel that Lumi generates and PyTorch run in turn, each as a graph on the same kind of random data,
so that the GPU is as warm for one as for the other.  The floor is the larger of the operations over the best
rate of that type and the bytes over the bandwidth of a copy, both measured in the same run.

    python bench/matmul.py [--json FILE] [--trials N] [--seconds S] [CASE …]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gpu_case import COLD, copy_bandwidth, interleaved

from lumi.backends.cuda import gemm
from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.cublas import open_library
from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.backends.cuda.launch import Entry, Launches, load_kernels
from lumi.compiler import Options, Stage, compile_model
from lumi.dtype import DTYPES
from lumi.errors import Source
from lumi.llir.arithmetic import to_memory
from lumi.llir.kernel import KernelGraph, Schedule, Step, accesses, buffers
from lumi.search.settings import Mode, Settings

LARGE = 8192
"""Sides of the product that the best rate of a type is measured with."""

TENSOR_CORES = "mma", "wgmma"
"""The templates of kernels for tensor cores."""

DRAWN = 1_000_003
"""Numbers that are drawn for a large matrix; a prime, so that their repetition lines up with no row."""


@dataclass(frozen=True)
class Case:
    """out[m n] = Σ a[m k] · b[n k], b held as `weights` if that is another type."""

    name: str
    dtype: str
    m: int
    n: int
    k: int
    weights: str = ""

    @property
    def fast(self) -> str:
        """The type whose rate bounds it."""
        return self.weights or self.dtype

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.n * self.k

    @property
    def bytes(self) -> int:
        wide, narrow = DTYPES[self.dtype].size, DTYPES[self.fast].size
        return wide * (self.m * self.k + self.m * self.n) + narrow * self.n * self.k

    @property
    def text(self) -> str:
        b = f"(cast b {self.dtype})" if self.weights else "b"
        return f"""
(defmodel product [(a {self.dtype} [{self.m} {self.k}]) (b {self.fast} [{self.n} {self.k}])]
  "A matrix product."
  (einsum a [m k] {b} [n k] -> [m n]))
"""


CASES = (
    Case("prefill qkv 128x6144x4096", "bf16", 128, 6144, 4096),
    Case("prefill out 128x4096x4096", "bf16", 128, 4096, 4096),
    Case("prefill gate and up 128x28672x4096", "bf16", 128, 28672, 4096),
    Case("prefill down 128x4096x14336", "bf16", 128, 4096, 14336),
    Case("f32 by bf16 128x28672x4096", "f32", 128, 28672, 4096, "bf16"),
    Case("f32 by bf16 128x4096x14336", "f32", 128, 4096, 14336, "bf16"),
    Case("bf16 2048x4096x4096", "bf16", 2048, 4096, 4096),
    Case("bf16 4096x14336x4096", "bf16", 4096, 14336, 4096),
    Case("bf16 8192x8192x8192", "bf16", 8192, 8192, 8192),
    *(Case(f"rows {m}x14336x4096", "bf16", m, 14336, 4096) for m in (16, 64, 256)),
    *(Case(f"square {t} 4096", t, 4096, 4096, 4096) for t in ("bf16", "f16", "f32")),
)


def graph(case: Case, settings: Settings) -> tuple[KernelGraph, dict[str, Any]]:
    """The kernels found for a case, and what the search did."""
    start = time.perf_counter()
    options = Options(target="cuda", settings=settings)
    work = compile_model(Source(case.name, case.text), options, Stage.KERNELS)
    (found,) = work.found.values()
    told = found.explanation
    return found.graph, {
        "kernels": [str(s.schedule) for s in found.graph.steps],
        "trials": told.trials,
        "failures": list(told.failures),
        "compile_s": time.perf_counter() - start,
    }


class Work:
    """Kernels on copies of their buffers, as one graph."""

    def __init__(self, gpu: Gpu, steps: Sequence[Step], case: Case) -> None:
        self.gpu, self.copies = gpu, max(1, -(-COLD // case.bytes))
        kernels = load_kernels(gpu, steps)
        sizes = {a.buffer: a for s in steps for a, _ in accesses(s.kernel)}
        self.blocks = []
        entries = []
        for seed in range(self.copies):
            held = {name: self.block(gpu, a, seed) for name, a in sizes.items()}
            self.blocks.append(held)
            for step, kernel in zip(steps, kernels, strict=True):
                places = tuple(int(held[b]) for b in buffers(step.kernel))
                entries.append(Entry(kernel, places, kernel.code.cells({})))
        self.launches = Launches(gpu, entries)

    @staticmethod
    def block(gpu: Gpu, access: Any, seed: int) -> Any:
        """Device memory of normal numbers, which repeat where there are many."""
        drawn = np.random.default_rng(seed).standard_normal(DRAWN, np.float32)
        raw = np.resize(to_memory(drawn, access.dtype), access.shape)
        block = gpu.allocate(raw.nbytes)
        gpu.write(int(block), raw.reshape(-1).view(np.uint8))
        return block

    def seconds(self) -> float:
        return self.gpu.seconds(lambda: self.launches.start({})) / self.copies


def peer(gpu: Gpu, case: Case) -> Callable[[], float] | None:
    """torch.matmul on copies of its tensors, as one graph; None without PyTorch.

    It has no product of two types: the weights are of the other one's.
    """
    try:
        import torch
    except ImportError:
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    kind = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[case.dtype]
    copies = max(1, -(-COLD // case.bytes))
    shapes = ((case.m, case.k), (case.n, case.k))
    pairs = [[torch.randn(*s, device="cuda", dtype=kind) for s in shapes] for _ in range(copies)]
    outs = [torch.empty(case.m, case.n, device="cuda", dtype=kind) for _ in range(copies)]
    torch.matmul(pairs[0][0], pairs[0][1].T, out=outs[0])
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        for (a, b), out in zip(pairs, outs, strict=True):
            torch.matmul(a, b.T, out=out)

    def seconds() -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        captured.replay()
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) * 1e-3 / copies

    return seconds


def library(gpu: Gpu, case: Case) -> Work:
    """The library's first choice for a case."""
    kernels, _ = graph(case, Settings(mode=Mode.NONE))
    return Work(gpu, [Step(s.kernel, Schedule(gemm.TEMPLATE)) for s in kernels.steps], case)


def generated(gpu: Gpu, case: Case) -> tuple[Work, Schedule] | None:
    """The fastest of the kernels that Lumi makes for tensor cores; None where it makes none."""
    kernels, _ = graph(case, Settings(mode=Mode.NONE))
    if len(kernels.steps) != 1:
        return None
    kernel = kernels.steps[0].kernel
    best: tuple[float, Work, Schedule] | None = None
    for schedule in CudaBackend().schedules(kernel):
        if schedule.template in TENSOR_CORES:
            work = Work(gpu, [Step(kernel, schedule)], case)
            seconds = statistics.median(work.seconds() for _ in range(5))
            if best is None or seconds < best[0]:
                best = seconds, work, schedule
    return None if best is None else best[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", help="parts of the names of the cases to run")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=20.0, help="of measuring for each case")
    options = parser.parse_args()
    gpu = open_gpu()
    found = open_library(gpu)
    if found is None:
        sys.exit("there is no cuBLASLt: pip install -e '.[cuda]' in Lumi's checkout")
    bandwidth, rates, results = copy_bandwidth(gpu), dict[str, float](), []
    heading = (
        f"{gpu.name}, driver {gpu.driver_version}, cuBLASLt {found.version}, copy {bandwidth / 1e12:.2f} TB/s"
    )
    print(heading, flush=True)
    for case in CASES:
        if options.cases and not any(part in case.name for part in options.cases):
            continue
        if case.fast not in rates:
            large = Case("large", case.fast, LARGE, LARGE, LARGE)
            work = library(gpu, large)
            rates[case.fast] = large.flops / statistics.median(work.seconds() for _ in range(5))
            print(f"{case.fast}: {rates[case.fast] / 1e12:.0f} TFLOP/s", flush=True)
        settings = Settings(mode=Mode.MEASURE, trials=options.trials, seconds=options.seconds)
        kernels, told = graph(case, settings)
        works = {"lumi": Work(gpu, kernels.steps, case).seconds, "library": library(gpu, case).seconds}
        alone = generated(gpu, case)
        if alone is not None:
            works["generated"] = alone[0].seconds
            told["generated"] = str(alone[1])
        torch = peer(gpu, case)
        seconds = interleaved(works | ({"torch": torch} if torch else {}))
        floor = max(case.flops / rates[case.fast], case.bytes / bandwidth)
        results.append({"name": case.name, "floor": floor, "seconds": seconds, **told})
        times = "  ".join(f"{name} {s * 1e6:7.1f} us {floor / s:5.1%}" for name, s in seconds.items())
        print(f"{case.name:<36} {times}  {told['kernels']} {told['failures'][:1]}", flush=True)
        if options.json:
            told = {"command": f"python {' '.join(sys.argv)}", "gpu": gpu.name, "driver": gpu.driver_version}
            told |= {"library": found.version, "copy": bandwidth, "rates": rates, "cases": results}
            options.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
