"""What the benches of single operations on an NVIDIA GPU share.

A case is one piece of work, done by Lumi, by PyTorch as written and by torch.compile, or by the peers that
it names.  Each contestant works on copies of the same random data that together exceed the caches, as one
CUDA graph, and writes results of its own.  Results are compared with the same work in float64; then all
graphs run in turn, so that the GPU is as warm for one as for the other, and medians are told.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from kernel_times import launches_of

from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.backends.cuda.launch import Launches
from lumi.compiler import Options, compile_plan
from lumi.errors import LumiError, Source
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

COLD = 1 << 30
"""Bytes that all copies of a case's data have at least: many times what the last cache keeps."""

LAUNCHES = 32
"""Runs of a case that are timed together at least, unless they are long."""

LONG = 1e13
"""Operations after which a case has been timed long enough."""

ROUNDS = 15

COPIED = 2 << 30
"""Bytes of the block that is copied to measure the bandwidth."""

COMPILED = "max-autotune-no-cudagraphs"
"""The mode of torch.compile: its graphs are captured here, like those of all others."""

Data: TypeAlias = "dict[str, Any]"
"""PyTorch's tensors on the GPU, by name."""

Work: TypeAlias = "Callable[..., Any]"
"""A function of PyTorch's tensors."""

Contestant: TypeAlias = "Callable[[], float]"
"""Runs the graph of one side; the seconds of one run of the case."""


@dataclass(frozen=True)
class Case:
    """A model in the language, the bytes and operations it must do, its data, and the same in PyTorch.

    `draw` makes tensors in the order in which `work` takes them; `params` are those that are weights of the
    model.  `wide` is the work in float64, where PyTorch's own way to do it would need too much memory.
    `peers` make what does the work beside Lumi, instead of PyTorch as written and torch.compile.  Results may
    be `tolerance` away from those in float64, by the norms of both.
    """

    name: str
    text: str
    bytes: int
    draw: Callable[[Any], Data]
    work: Work
    params: tuple[str, ...] = ()
    tolerance: float = 1e-5
    flops: float = 0.0
    wide: Work | None = None
    peers: Mapping[str, Callable[[], Work]] = field(default_factory=dict)

    @property
    def copies(self) -> int:
        """How many copies of the data there are."""
        return max(1, -(-COLD // self.bytes))

    @property
    def repeat(self) -> int:
        """How often all copies are worked on while the clock runs."""
        runs = min(LAUNCHES, int(LONG / self.flops)) if self.flops else LAUNCHES
        return max(1, runs // self.copies)


def copy_bandwidth(gpu: Gpu) -> float:
    """Bytes a second, read and written, of a copy from device memory to device memory."""
    source, target = gpu.allocate(COPIED), gpu.allocate(COPIED)
    seconds = [gpu.seconds(lambda: gpu.copy(int(target), int(source), COPIED)) for _ in range(10)]
    return 2 * COPIED / statistics.median(seconds)


def interleaved(works: Mapping[str, Contestant], rounds: int = ROUNDS) -> dict[str, float]:
    """Median seconds of each, one run of each after the other."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 2):
        for name, work in works.items():
            taken = work()
            if number >= 2:
                times[name].append(taken)
    return {name: statistics.median(t) for name, t in times.items()}


# -- Lumi


def lumi(gpu: Gpu, case: Case, every: Sequence[Data], settings: Settings) -> tuple[Contestant, Any, Data]:
    """The case by Lumi: how it is run, the result on the first data, and what there is to tell."""
    start = time.perf_counter()
    plan = compile_plan(Source(case.name, case.text), Options(target="cuda", settings=settings))
    told = {"compile_s": time.perf_counter() - start, "kernels": [str(k.schedule) for k in plan.kernels]}
    told["arena"] = max(v.arena for v in plan.variants)
    entries, results, sessions = [], [], []
    for data in every:
        weights = {n: data[n].float().cpu().numpy() for n in case.params}
        session = Session(plan, weights or None)
        given = {n: t for n, t in data.items() if n not in case.params}
        results.append(session.run_on_device(given))
        entries += launches_of(session, 0).entries
        sessions.append(session)
    launches = Launches(gpu, entries * case.repeat)
    launches.run({})

    def run() -> float:
        return gpu.seconds(lambda: launches.start({})) / (len(sessions) * case.repeat)

    (result,) = results[0].values()
    return run, result, told


# -- PyTorch


def in_graph(torch: Any, work: Work, every: Sequence[Data], repeat: int = 1) -> Contestant:
    """Some work of PyTorch's on all data, `repeat` times, as one graph."""
    for data in every[:2]:
        work(*data.values())
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeat):
            kept = [work(*data.values()) for data in every]  # so that each has memory of its own

    def run() -> float:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) * 1e-3 / (len(kept) * repeat)

    return run


def compiled(torch: Any, case: Case) -> Work:
    """The work of a case as torch.compile makes it."""
    found: Work = torch.compile(case.work, mode=COMPILED)
    return found


def peers(
    torch: Any, works: Mapping[str, Callable[[], Work]], every: Sequence[Data], repeat: int
) -> tuple[dict[str, Contestant], dict[str, str]]:
    """What does the work beside Lumi, and why some cannot."""
    found: dict[str, Contestant] = {}
    refused: dict[str, str] = {}
    for name, make in works.items():
        try:
            torch._dynamo.reset()
            found[name] = in_graph(torch, make(), every, repeat)
        except Exception as error:  # a peer that cannot do it is told of, and no reason to stop
            refused[name] = str(error).splitlines()[0][:120]
            torch.cuda.synchronize()
    return found, refused


def error(torch: Any, case: Case, data: Data, result: Any) -> float:
    """How far a result is from the work in float64."""
    wide = [t.double() if t.is_floating_point() else t.long() for t in data.values()]
    want = (case.wide or case.work)(*wide)
    got = torch.from_dlpack(result).double().reshape(want.shape)
    return float((got - want).norm() / want.norm())


# -- all of them


def checked(torch: Any, gpu: Gpu, case: Case, settings: Settings) -> tuple[list[Data], Contestant, Data]:
    """The data of a case, Lumi on it, and what there is to tell.

    Raises `AssertionError` when Lumi's result is wrong.
    """
    torch.manual_seed(len(case.name))
    with torch.device("cuda"):
        every = [case.draw(torch) for _ in range(case.copies)]
    torch.cuda.synchronize()
    mine, result, told = lumi(gpu, case, every, settings)
    gpu.wait()
    told["error"] = error(torch, case, every[0], result)
    assert told["error"] <= case.tolerance, f"{case.name} is wrong by {told['error']:.2g}"
    return every, mine, told


def measured(torch: Any, gpu: Gpu, case: Case, settings: Settings) -> dict[str, Any]:
    """A case by all contestants.  Raises `AssertionError` when Lumi's result is wrong."""
    every, mine, told = checked(torch, gpu, case, settings)
    indices = [{n: t if t.is_floating_point() else t.long() for n, t in data.items()} for data in every]
    usual = {"eager": lambda: case.work, "compiled": lambda: compiled(torch, case)}
    others, refused = peers(torch, case.peers or usual, indices, case.repeat)
    seconds = interleaved({"lumi": mine, **others})
    return {"name": case.name, "bytes": case.bytes, "seconds": seconds, "refused": refused, **told}


def shown(row: Mapping[str, Any], floor: float) -> str:
    """A line of the table."""
    times = row["seconds"]
    beside = "  ".join(f"{name} {s * 1e6:8.2f} us" for name, s in times.items())
    best = min((s for name, s in times.items() if name != "lumi"), default=math.nan)
    share, ahead = floor / times["lumi"], best / times["lumi"]
    return (
        f"{row['name']:<30} floor {floor * 1e6:8.2f} us  {beside}  {share:6.1%} of the floor, "
        f"{ahead:5.2f} x the best peer  {row['kernels']} {row['refused'] or ''}"
    )


def main(cases: Sequence[Case], what: str | None) -> None:
    """Run the cases that the command line names, print a table, and write JSON if asked for."""
    options = arguments(what)
    try:
        import torch
    except ImportError:
        sys.exit("this bench needs PyTorch, for the data and to compare with: pip install torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    gpu, rows = open_gpu(), []
    settings = Settings(mode=Mode(options.search), trials=options.trials, seconds=options.seconds)
    copy = copy_bandwidth(gpu)
    head = {"command": f"python {' '.join(sys.argv)}", "gpu": gpu.name, "driver": gpu.driver_version}
    head |= {"torch": torch.__version__, "copy": copy}
    print(f"{gpu.name}, driver {gpu.driver_version}, copy {copy / 1e12:.3f} TB/s", flush=True)
    for case in cases:
        if options.cases and not any(part in case.name for part in options.cases):
            continue
        try:
            row = measured(torch, gpu, case, settings)
        except (LumiError, AssertionError) as failure:
            print(f"{case.name:<30} {failure}", flush=True)
            continue
        rows.append({**row, "floor": case.bytes / copy, "flops": case.flops})
        print(shown(row, case.bytes / copy), flush=True)
        torch.cuda.empty_cache()
        if options.json:
            options.json.write_text(json.dumps({**head, "cases": rows}, indent=1) + "\n")


def arguments(what: str | None) -> argparse.Namespace:
    """The options that all these benches have."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("cases", nargs="*", help="parts of the names of the cases to run")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--search", choices=[m.value for m in Mode], default="model")
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=30.0, help="of measured search a case")
    return parser.parse_args()
