"""Attention on an NVIDIA GPU: seconds against the bytes that must cross memory, beside PyTorch's backends.

A token of each sequence attends to a cache of bf16, 32 heads over 8 key heads of 128.  The model is the
stdlib's `sdpa` over states, compiled whole.  Everything is timed in turn, as graph replays on copies of the
caches that together exceed the GPU's; the bandwidth is that of a copy in the same run.  Results are compared
with float64 for some of the heads.

    python bench/attention.py [--json FILE] [--search model|measure] [CASE …]

With --ladder it measures what each group of rules and each template buys (see `ladder`), also on a CPU:

    python bench/attention.py --ladder [--json FILE] [--target cuda|cpu] [--modelled] [CASE …]
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ladder
import numpy as np
from gpu_case import COLD, Contestant, copy_bandwidth, in_graph, interleaved
from kernel_times import launches_of

from lumi.backends.cuda.gpu import Gpu, open_gpu
from lumi.backends.cuda.launch import Launches
from lumi.compiler import Options, compile_plan
from lumi.dtype import BF16
from lumi.errors import Source
from lumi.llir.arithmetic import from_memory, to_memory
from lumi.plan.plan import Plan
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

HEADS, KEY_HEADS, WIDTH, CONTEXT = 32, 8, 128, 32768
LENGTHS = (8192, 16384, 32768)
BATCHES = (1, 4, 16)

LAUNCHES = 16
"""Launches that are timed together at least."""

BACKENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION")


@dataclass(frozen=True)
class Case:
    """Decoding `batch` sequences at a length of the cache."""

    batch: int
    length: int

    @property
    def name(self) -> str:
        return f"decode b{self.batch} kv{self.length}"

    @property
    def bytes(self) -> int:
        """Of keys and values, queries and results."""
        rows = 2 * KEY_HEADS * self.length + 2 * HEADS
        return self.batch * rows * WIDTH * BF16.size

    @property
    def copies(self) -> int:
        return max(1, -(-COLD // self.bytes))

    @property
    def repeat(self) -> int:
        """How often all copies are attended to while the clock runs."""
        return max(1, -(-LAUNCHES // self.copies))


def model(batch: int) -> str:
    cache = f"[{batch} {KEY_HEADS} {CONTEXT} {WIDTH}] :dtype bf16"
    return f"""
(defdim kv :min 1 :max {CONTEXT} :hint [{LENGTHS[0]} {LENGTHS[-1]}])
(defmodel decode [(q bf16 [{batch} {HEADS} 1 {WIDTH}])]
  "A token attends to the first kv positions of a cache."
  (let [k (state "k" {cache})
        v (state "v" {cache})]
    (sdpa q (slice k :axis 2 :stop kv) (slice v :axis 2 :stop kv))))
"""


class Lumi:
    """The plan of a batch on copies of its caches."""

    def __init__(self, gpu: Gpu, batch: int, copies: int, options: Options) -> None:
        plan = compile_plan(Source(f"decode{batch}", model(batch)), options)
        self.gpu, self.batch, self.plan = gpu, batch, plan
        queries = np.random.default_rng(batch).standard_normal((batch, HEADS, 1, WIDTH), np.float32)
        self.queries = to_memory(queries, BF16)
        first = Session(plan)
        self.sessions = [first, *(first.fork() for _ in range(copies - 1))]
        for number, session in enumerate(self.sessions):
            session.randomize_states(number)
            session(q=self.queries, kv=1)

    def contestant(self, case: Case) -> Contestant:
        """Runs all copies of a case; the seconds of one."""
        sessions = self.sessions[: case.copies]
        entries = [e for s in sessions for e in launches_of(s, 0).entries]
        launches = Launches(self.gpu, entries * case.repeat)
        launches.run({"kv": case.length})

        def run() -> float:
            whole = self.gpu.seconds(lambda: launches.start({"kv": case.length}))
            return whole / (case.repeat * len(sessions))

        return run

    def error(self, case: Case) -> float:
        """‖result − reference‖ / ‖reference‖ for the first and last head of the first and last sequence."""
        session = self.sessions[0]
        got = session(q=self.queries, kv=case.length)["out"].astype(np.float64)
        program: Any = session._ready[0, ()]
        names = [b.name for b in self.plan.variants[0].buffers]
        places = {n: program.program.places[names.index(n)] for n in ("k", "v")}
        wrong = whole = 0.0
        for b in {0, self.batch - 1}:
            for head in (0, HEADS - 1):
                rows = []
                for name in ("k", "v"):
                    place = (b * KEY_HEADS + head * KEY_HEADS // HEADS) * CONTEXT * WIDTH * BF16.size
                    address = places[name].memory.address + places[name].offset + place
                    raw = self.gpu.fetch(address, case.length * WIDTH * BF16.size).view(BF16.storage)
                    rows.append(from_memory(raw, BF16).astype(np.float64).reshape(case.length, WIDTH))
                scores = rows[0] @ from_memory(self.queries, BF16)[b, head, 0].astype(np.float64) / WIDTH**0.5
                weights = np.exp(scores - scores.max())
                want = weights @ rows[1] / weights.sum()
                wrong += float(((got[b, head, 0] - want) ** 2).sum())
                whole += float((want**2).sum())
        return float((wrong / whole) ** 0.5)


def peers(case: Case) -> tuple[dict[str, Contestant], dict[str, str]]:
    """PyTorch's backends on data of their own, and why some refuse; nothing without PyTorch."""
    try:
        import torch
    except ImportError:
        return {}, {}
    found: dict[str, Contestant] = {}
    refused: dict[str, str] = {}
    kind = {"device": "cuda", "dtype": torch.bfloat16}
    q = torch.randn(case.batch, HEADS, 1, WIDTH, **kind)
    shape = (case.batch, KEY_HEADS, case.length, WIDTH)
    every = [
        {"q": q, "k": torch.randn(shape, **kind), "v": torch.randn(shape, **kind)} for _ in range(case.copies)
    ]

    def attend(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

    for name in BACKENDS:
        try:
            with torch.nn.attention.sdpa_kernel(getattr(torch.nn.attention.SDPBackend, name)):
                found[name] = in_graph(torch, attend, every, case.repeat)
        except RuntimeError as error:
            refused[name] = str(error).splitlines()[0][:120]
    return found, refused


def measured(gpu: Gpu, lumi: Lumi, case: Case) -> dict[str, Any]:
    """Median seconds of everything, run in turn."""
    others, refused = peers(case)
    medians = interleaved({"lumi": lumi.contestant(case), **others})
    return {"seconds": medians.pop("lumi"), "peers": medians, "refused": refused, "error": lumi.error(case)}


def kernels(plan: Plan) -> list[str]:
    return [str(plan.kernels[launch.kernel].schedule) for launch in plan.variants[0].launches]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", help="parts of the names of the cases to run")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--search", choices=["model", "measure"], default="model")
    parser.add_argument("--ladder", action="store_true", help="what rules and templates buy")
    parser.add_argument("--target", choices=["cuda", "cpu"], default="cuda", help="of the ladder")
    parser.add_argument("--modelled", action="store_true", help="run nothing: the ladder by the model")
    options = parser.parse_args()
    if options.ladder:
        ladder.main(options.target, options.cases, options.json, not options.modelled)
    else:
        decode(options)


def decode(options: argparse.Namespace) -> None:
    """Time decoding, print a table, and write JSON if asked for."""
    gpu = open_gpu()
    bandwidth = copy_bandwidth(gpu)
    print(f"{gpu.name}, driver {gpu.driver_version}, copy {bandwidth / 1e12:.2f} TB/s", flush=True)
    results = []
    for batch in BATCHES:
        cases = [Case(batch, length) for length in LENGTHS]
        cases = [c for c in cases if not options.cases or any(part in c.name for part in options.cases)]
        if not cases:
            continue
        how = Options(target="cuda", settings=Settings(mode=Mode(options.search)))
        lumi = Lumi(gpu, batch, max(c.copies for c in cases), how)
        for case in cases:
            told = measured(gpu, lumi, case)
            floor = case.bytes / bandwidth
            told |= {"kernels": kernels(lumi.plan)}
            results.append({"name": case.name, "bytes": case.bytes, "floor": floor, **told})
            beside = ", ".join(f"{name} {seconds * 1e6:.1f}" for name, seconds in told["peers"].items())
            print(
                f"{case.name:<20} {told['seconds'] * 1e6:8.1f} us, floor {floor * 1e6:7.1f}, "
                f"{floor / told['seconds']:6.1%} of copy; error {told['error']:.1e}; {beside}",
                flush=True,
            )
    if options.json:
        head = {"command": f"python {' '.join(sys.argv)}", "gpu": gpu.name, "driver": gpu.driver_version}
        options.json.write_text(json.dumps({**head, "copy": bandwidth, "cases": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
