"""Decoding with Gemma-3-270M's shapes and random f32 weights on an NVIDIA GPU, step by step.

The floor is what the weights take to cross memory once at the bandwidth of a copy in the same run.

    python bench/gpu_decode.py [--json FILE] [--steps N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from gpu_case import copy_bandwidth
from kernel_times import kernel_times, launches_of, show

from lumi import paths
from lumi.backends.cuda.gpu import open_gpu
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.plan import Role
from lumi.runtime.session import Session

PROMPT = 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--kernels", action="store_true", help="time each kernel of the step alone, warm")
    parser.add_argument("--steps", type=int, default=64)
    options = parser.parse_args()
    gpu = open_gpu()
    path = paths.data("models") / "gemma3.lumi"
    start = time.perf_counter()
    plan = compile_plan(Source(path.name, path.read_text()), Options(target="cuda"))
    compiled = time.perf_counter() - start
    session = Session(plan, init="random")
    params = {b.name: b for v in plan.variants for b in v.buffers if b.role is Role.PARAM}
    size = sum(int(np.prod(b.shape)) * b.dtype.size for b in params.values())
    floor = size / copy_bandwidth(gpu)
    tokens = np.random.default_rng(0).integers(0, 1000, (1, PROMPT)).astype(np.int32)
    session(tokens=tokens, past=0)
    times = []
    for step in range(options.steps):
        start = time.perf_counter()
        session(tokens=tokens[:, :1], past=PROMPT + step)
        times.append(time.perf_counter() - start)
    seconds = statistics.median(times[4:])
    launched = launches_of(session, 0)
    graph = statistics.median(
        gpu.seconds(lambda: launched.start({"seq": 1, "past": PROMPT})) for _ in range(20)
    )
    launches = [len(v.launches) for v in plan.variants]
    print(
        f"{gpu.name}: {seconds * 1e6:.0f} us a step, floor {floor * 1e6:.0f} us ({size / 1e9:.2f} GB), "
        f"{floor / seconds:.1%}, graph {graph * 1e6:.0f} us; {launches} launches; "
        f"compiled in {compiled:.1f} s"
    )
    if options.kernels:
        show(kernel_times(gpu, session, 0, {"seq": 1, "past": PROMPT}))
    if options.json:
        told = {"command": " ".join(sys.argv), "gpu": gpu.name, "driver": gpu.driver_version}
        told |= {
            "seconds": seconds,
            "graph": graph,
            "floor": floor,
            "bytes": size,
            "launches": launches,
            "compile_s": compiled,
        }
        options.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
