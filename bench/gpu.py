"""Kernels that memory bounds, on an NVIDIA GPU: seconds against the bytes that must cross memory.

Each case is a small model.  Its time is that of a graph replay, on copies of its buffers that together
exceed the caches; with `--search measure` the search chooses by such times, else by its model alone.  The
bandwidth is that of a copy on the device, measured in the same run.  With PyTorch installed the same work is
timed beside it.

    python bench/gpu.py [--json FILE] [--search model|measure] [--trials N] [CASE …]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from kernel_times import launches_of

from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.backends.cuda.launch import Launches
from lumi.compiler import Options, Stage, compile_model, compile_plan
from lumi.errors import LumiError, Source
from lumi.llir.arithmetic import to_memory
from lumi.plan.plan import Signature
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

COLD = 256 << 20
"""Bytes that all copies of a case's buffers have at least."""

LAUNCHES = 48
"""Launches that are timed together at least."""

COPIED = 2 << 30
"""Bytes of the block that is copied to measure the bandwidth."""


@dataclass(frozen=True)
class Case:
    """A model in the language, the bytes it must move, and how PyTorch spells it."""

    name: str
    text: str
    bytes: int
    peer: Callable[[Any], Callable[[], Any]] | None = None


def product(rows: int, columns: int, dtype: str, size: int) -> Case:
    text = f"""
(defmodel product [(x f32 [1 {columns}])]
  "A matrix times a vector."
  (einsum x [b k] (cast (param "w" [{rows} {columns}] :dtype {dtype}) f32) [n k] -> [b n]))
"""

    def peer(torch: Any) -> Callable[[], Any]:
        kind = {"bf16": torch.bfloat16, "f32": torch.float32}[dtype]
        w = torch.randn(rows, columns, device="cuda", dtype=kind)
        x = torch.randn(1, columns, device="cuda", dtype=kind)
        return lambda: torch.nn.functional.linear(x, w)

    return Case(f"gemv {dtype} {rows}x{columns}", text, rows * columns * size + 4 * (rows + columns), peer)


def rows(name: str, body: str, shape: tuple[int, int], peer: Callable[[Any, Any], Any]) -> Case:
    count, width = shape
    text = f"""
(defmodel chain [(x f32 [{count} {width}])]
  "{name.capitalize()} of rows."
  {body})
"""

    def make(torch: Any) -> Callable[[], Any]:
        x = torch.randn(count, width, device="cuda")
        return lambda: peer(torch, x)

    return Case(f"{name} {count}x{width}", text, 8 * count * width, make)


def loss(count: int, width: int) -> Case:
    text = f"""
(defmodel loss [(x f32 [{count} {width}]) (labels i32 [{count}])]
  "Cross-entropy of rows."
  (cross-entropy x labels))
"""

    def peer(torch: Any) -> Callable[[], Any]:
        x = torch.randn(count, width, device="cuda")
        labels = torch.randint(width, (count,), device="cuda")
        return lambda: torch.nn.functional.cross_entropy(x, labels)

    return Case(f"cross-entropy {count}x{width}", text, 4 * count * width, peer)


def norm(count: int, width: int) -> Case:
    text = f"""
(defmodel norm [(x bf16 [{count} {width}]) (w bf16 [{width}])]
  "A weighted norm of rows of halves."
  (cast (* (root-mean-square (cast x f32)) (cast w f32)) bf16))
"""

    def peer(torch: Any) -> Callable[[], Any]:
        x = torch.randn(count, width, device="cuda", dtype=torch.bfloat16)
        w = torch.randn(width, device="cuda", dtype=torch.bfloat16)
        return lambda: torch.nn.functional.rms_norm(x, x.shape[-1:], w)

    return Case(f"weighted norm bf16 {count}x{width}", text, 4 * count * width, peer)


def rms_norm(torch: Any, x: Any) -> Any:
    return torch.nn.functional.rms_norm(x, x.shape[-1:])


SHAPE = (4096, 4096)
CASES = (
    rows("scale-add-relu", "(relu (+ (* x 1.5) 0.25))", SHAPE, lambda t, x: t.relu(x * 1.5 + 0.25)),
    rows("gelu-tanh", "(gelu-tanh x)", SHAPE, lambda t, x: t.nn.functional.gelu(x, approximate="tanh")),
    rows("softmax", "(softmax x)", SHAPE, lambda t, x: t.softmax(x, -1)),
    rows("standardize", "(standardize x)", SHAPE, lambda t, x: t.nn.functional.layer_norm(x, x.shape[-1:])),
    rows(
        "root-mean-square",
        "(root-mean-square x)",
        SHAPE,
        lambda t, x: t.nn.functional.rms_norm(x, x.shape[-1:]),
    ),
    rows("softmax", "(softmax x)", (1024, 32768), lambda t, x: t.softmax(x, -1)),
    rows("log-softmax", "(log-softmax x)", (4096, 8192), lambda t, x: t.log_softmax(x, -1)),
    loss(4096, 32000),
    norm(8192, 4096),
    product(6144, 4096, "bf16", 2),
    product(4096, 4096, "bf16", 2),
    product(28672, 4096, "bf16", 2),
    product(4096, 14336, "bf16", 2),
    product(128256, 4096, "bf16", 2),
    product(4096, 4096, "f32", 4),
)


def copy_bandwidth(gpu: Gpu) -> float:
    """Bytes a second, read and written, of a copy from device memory to device memory."""
    source, target = gpu.allocate(COPIED), gpu.allocate(COPIED)

    def copy() -> None:
        gpu.driver.memcpy_dtod_async(int(target), int(source), COPIED, gpu.stream)

    return 2 * COPIED / statistics.median(gpu.seconds(copy) for _ in range(10))


def modelled(gpu: Gpu, case: Case) -> dict[str, Any]:
    """Compile a case by the model alone, and time its plan."""
    start = time.perf_counter()
    plan = compile_plan(Source(case.name, case.text), Options(target="cuda"))
    compiled = time.perf_counter() - start
    copies, generator = max(1, -(-COLD // case.bytes)), np.random.default_rng(0)
    sessions = [Session(plan, init="random") for _ in range(copies)]
    entries = []
    for session in sessions:
        session.run({one.name: made(one, generator) for one in plan.inputs})
        entries += launches_of(session, 0).entries
    repeat = max(1, LAUNCHES // len(entries))
    launches = Launches(gpu, entries * repeat)
    launches.run({})
    seconds = statistics.median(gpu.seconds(lambda: launches.start({})) for _ in range(12))
    return {
        "seconds": seconds / (copies * repeat),
        "kernels": [str(k.schedule) for k in plan.kernels],
        "trials": 0,
        "failures": [],
        "compile_s": compiled,
    }


def made(one: Signature, generator: np.random.Generator) -> Any:
    """Random numbers for an input."""
    shape = tuple(int(size) for size in one.shape if isinstance(size, int))
    if not one.dtype.is_float:
        return generator.integers(0, 1000, shape).astype(one.dtype.numpy)
    return to_memory(generator.standard_normal(shape, np.float32), one.dtype)


def measured(case: Case, trials: int) -> dict[str, Any]:
    """Compile a case, searching by measurement."""
    settings = Settings(mode=Mode.MEASURE, trials=trials, seconds=30.0)
    start = time.perf_counter()
    work = compile_model(
        Source(case.name, case.text), Options(target="cuda", settings=settings), Stage.KERNELS
    )
    stories = [f.explanation for f in work.found.values()]
    steps = [step for f in work.found.values() for step in f.graph.steps]
    return {
        "seconds": sum(s.measured or 0.0 for s in stories),
        "kernels": [str(step.schedule) for step in steps],
        "trials": sum(s.trials for s in stories),
        "failures": [f for s in stories for f in s.failures],
        "compile_s": time.perf_counter() - start,
    }


def peer_seconds(gpu: Gpu, case: Case) -> float | None:
    """The same work by PyTorch, in a CUDA graph; None without PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    if case.peer is None:
        return None
    copies = max(1, -(-(256 << 20) // case.bytes))
    works = [case.peer(torch) for _ in range(copies)]
    for work in works:
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for work in works:
            work()
    times = []
    for _ in range(12):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) * 1e-3 / copies)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", help="parts of the names of the cases to run")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--search", choices=["model", "measure"], default="model")
    parser.add_argument("--trials", type=int, default=24)
    options = parser.parse_args()
    gpu = open_gpu()
    bandwidth = copy_bandwidth(gpu)
    print(f"{gpu.name}, driver {gpu.driver_version}, copy {bandwidth / 1e12:.2f} TB/s", flush=True)
    results = []
    for case in CASES:
        if options.cases and not any(part in case.name for part in options.cases):
            continue
        try:
            told = measured(case, options.trials) if options.search == "measure" else modelled(gpu, case)
        except LumiError as error:
            print(f"{case.name:<28} {error.message}", flush=True)
            continue
        floor, peer = case.bytes / bandwidth, peer_seconds(gpu, case)
        results.append({"name": case.name, "bytes": case.bytes, "floor": floor, "peer": peer, **told})
        share = floor / told["seconds"] if told["seconds"] else 0.0
        beside = f"{peer * 1e6:8.1f} us torch" if peer else ""
        print(
            f"{case.name:<28} {told['seconds'] * 1e6:8.1f} us  {share:6.1%} of copy {beside}"
            f"  {told['trials']} trials, {told['compile_s']:.1f} s  {told['kernels']} {told['failures'][:2]}",
            flush=True,
        )
    if options.json:
        told = {"command": " ".join(sys.argv), "gpu": gpu.name, "driver": gpu.driver_version}
        options.json.write_text(json.dumps({**told, "copy": bandwidth, "cases": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
