"""What a machine does at best: the floors that figures are compared with.

On an NVIDIA GPU: a copy by the driver, then sums of 2 GB and large matrix products by Lumi and by PyTorch.
On a CPU: reading by all threads, and numpy's matrix product.

    python bench/ceilings.py [--json FILE] [--target cuda|cpu]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lumi.backends.targets import default_target

_ROUNDS = 7

SIDE = 8192
"""Rows and columns of the matrices that a GPU multiplies."""

READ = 8192, 65536
"""Rows that a GPU adds up, and numbers of each."""

KINDS = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}


def read_bandwidth(threads: int) -> float:
    """Bytes a second that `threads` threads read from memory: the best of some dot products of 512 MB."""
    array = np.ones(1 << 27, np.float32)
    parts = np.array_split(array, threads)
    with ThreadPoolExecutor(threads) as pool:
        return array.nbytes / _best(lambda: list(pool.map(lambda part: np.dot(part, part), parts)))


def multiply_rate() -> float:
    """Floating-point operations a second of numpy's f32 matrix product, the best of some of 1536³."""
    size = 1536
    a, b = np.random.default_rng(0).standard_normal((2, size, size), np.float32)
    return 2 * size**3 / _best(lambda: a @ b)


def _best(work: Callable[[], object]) -> float:
    """The least seconds of a few runs, after one that is not counted."""
    work()
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def on_cpu() -> dict[str, Any]:
    """Both ceilings of this CPU."""
    threads = len(os.sched_getaffinity(0))
    found = {"threads": threads, "read": read_bandwidth(threads), "matmul_f32": multiply_rate()}
    print(
        f"{threads} threads: read {found['read'] / 1e9:.1f} GB/s, f32 {found['matmul_f32'] / 1e9:.1f} GFLOP/s"
    )
    return found


def on_gpu() -> dict[str, Any]:
    """The ceilings of the first GPU, each by both contestants."""
    import torch
    from gpu_case import Case, Data, copy_bandwidth, measured

    from lumi.backends.cuda.gpu import open_gpu
    from lumi.search.settings import Settings

    def read() -> Case:
        text = f"""
(defmodel read [(x f32 [{READ[0]} {READ[1]}])]
  "The sums of rows."
  (reduce-sum x :axis 1))
"""
        return Case("read", text, 4 * READ[0] * READ[1], lambda t: {"x": t.rand(*READ)}, lambda x: x.sum(1))

    def product(dtype: str) -> Case:
        shape = f"[{SIDE} {SIDE}]"
        text = f"""
(defmodel product [(a {dtype} {shape}) (b {dtype} {shape})]
  "A matrix product."
  (einsum a [m k] b [n k] -> [m n]))
"""

        def draw(t: Any) -> Data:
            return {name: t.randn(SIDE, SIDE, dtype=getattr(t, KINDS[dtype])) for name in "ab"}

        size = 3 * SIDE**2 * getattr(torch, KINDS[dtype]).itemsize
        limit = {"bf16": 5e-3, "f16": 1e-3, "f32": 1e-5}[dtype]
        return Case(
            f"matmul {dtype}", text, size, draw, lambda a, b: a @ b.T, tolerance=limit, flops=2.0 * SIDE**3
        )

    torch.backends.cuda.matmul.allow_tf32 = False
    gpu = open_gpu()
    found: dict[str, Any] = {"gpu": gpu.name, "driver": gpu.driver_version, "copy": copy_bandwidth(gpu)}
    print(f"{gpu.name}, driver {gpu.driver_version}: copy {found['copy'] / 1e12:.3f} TB/s", flush=True)
    for case in (read(), *map(product, KINDS)):
        alone = replace(case, peers={"eager": lambda work=case.work: work})
        row = measured(torch, gpu, alone, Settings())
        torch.cuda.empty_cache()
        amount, unit = (case.bytes, "TB/s") if case.name == "read" else (case.flops, "TFLOP/s")
        found[case.name] = {name: amount / seconds for name, seconds in row["seconds"].items()}
        rates = "  ".join(f"{name} {rate / 1e12:.3f} {unit}" for name, rate in found[case.name].items())
        print(f"{case.name:<12} {rates}  {row['kernels']}", flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--target", choices=["cuda", "cpu"], default=default_target())
    options = parser.parse_args()
    found = on_gpu() if options.target == "cuda" else on_cpu()
    if options.json:
        options.json.write_text(
            json.dumps({"command": f"python {' '.join(sys.argv)}", **found}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
