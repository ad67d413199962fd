"""What each group of rules, and each template of kernels, buys attention that is written out of primitives.

A case is compiled once for every rung, the plans searched by the model: first under the rules of the first
group alone, then with one group more at a time; and under all rules, first for CUDA cores alone, then with
one template for tensor cores or caches more at a time.  Temporaries may be of any size, so that a rung that
needs all scores in memory can have them.  All plans of a case run in turn on the same random data; results
are compared with float64 for some of the heads, and as a whole with those of the first rung.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from gpu_case import Contestant, copy_bandwidth, interleaved
from kernel_times import launches_of

from lumi.compiler import Options, compile_plan
from lumi.dtype import BF16
from lumi.egraph.groups import grouped
from lumi.egraph.rules import load, select
from lumi.errors import LumiError, Source
from lumi.llir.arithmetic import from_memory, to_memory
from lumi.llir.rename import identity
from lumi.plan.plan import Plan, Role
from lumi.runtime.session import Session
from lumi.search.settings import Settings

TEMPLATES = "mma", "wgmma", "walk", "cublaslt"
"""The templates that are left out at first, in the order in which they come back."""

UNBOUNDED = 1 << 20
"""Times the largest buffer that temporaries may have."""

TOLERANCE = 1e-2
"""Of results that are rounded to bf16, by the norms."""

LEAST = 2e-3
"""Seconds that are timed together at least."""

MOST = 4.0
"""Seconds that the plans of one case are timed, but for the least number of rounds."""

ROUNDS = 5, 15
"""The least and the largest number of rounds."""


@dataclass(frozen=True)
class Case:
    """Attention of `queries` rows to `keys` rows in bf16, all dims known.

    `splits` are axes of its region that may be split, and into how many chunks.
    """

    name: str
    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    width: int
    causal: bool = False
    splits: Mapping[str, int] = field(default_factory=dict)

    @property
    def shapes(self) -> dict[str, tuple[int, int, int, int]]:
        """Of the inputs."""
        rows = (self.batch, self.key_heads, self.keys, self.width)
        return {"q": (self.batch, self.heads, self.queries, self.width), "k": rows, "v": rows}

    @property
    def text(self) -> str:
        inputs = " ".join(f"({n} bf16 [{' '.join(map(str, s))}])" for n, s in self.shapes.items())
        return f"""
(defmodel attention [{inputs}]
  "softmax(q kᵀ / √d) v, where no later key is seen if it is causal."
  (sdpa q k v :causal {str(self.causal).lower()}))
"""

    @property
    def bytes(self) -> int:
        """Of queries, keys, values and results."""
        rows = 2 * self.heads * self.queries + 2 * self.key_heads * self.keys
        return self.batch * rows * self.width * BF16.size

    @property
    def flops(self) -> float:
        """Of both products, where keys are seen."""
        seen = self.queries * self.keys
        if self.causal:
            seen = sum(min(i + 1, self.keys) for i in range(self.queries))
        return 4.0 * self.batch * self.heads * self.width * seen

    def draw(self) -> dict[str, np.ndarray[Any, Any]]:
        """Random inputs, as they lie in memory."""
        rng = np.random.default_rng(len(self.name))
        return {n: to_memory(rng.standard_normal(s, np.float32), BF16) for n, s in self.shapes.items()}

    def want(
        self, data: Mapping[str, np.ndarray[Any, Any]], batch: int, head: int
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The result for a head in float64."""
        group = self.heads // self.key_heads
        q, k, v = (
            from_memory(data[n][batch, h], BF16).astype(np.float64)
            for n, h in (("q", head), ("k", head // group), ("v", head // group))
        )
        scores = q @ k.T / self.width**0.5
        if self.causal:
            scores = np.where(np.tri(self.queries, self.keys, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: np.ndarray[Any, np.dtype[np.float64]] = weights @ v / weights.sum(axis=1, keepdims=True)
        return found


GPU_CASES = (
    Case("full b2 h32/8 s4096 d128", 2, 32, 8, 4096, 4096, 128),
    Case("causal b2 h32/8 s4096 d128", 2, 32, 8, 4096, 4096, 128, causal=True),
    Case("decode b4 h32/8 kv32768 d128", 4, 32, 8, 1, 32768, 128),
    Case("16 queries b1 h32/8 kv32768 d128", 1, 32, 8, 16, 32768, 128, splits={"e": 32}),
)

CPU_CASES = (
    Case("full b1 h4/2 s512 d64", 1, 4, 2, 512, 512, 64),
    Case("causal b1 h4/2 s512 d64", 1, 4, 2, 512, 512, 64, causal=True),
    Case("16 queries b1 h4/2 kv2048 d64", 1, 4, 2, 16, 2048, 64, splits={"e": 4}),
)


@dataclass(frozen=True)
class Rung:
    """Rules and templates that are left out, and what is told of what is not."""

    name: str
    rules: int
    without: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()


def rungs_of_rules() -> list[Rung]:
    """One for each group of rules, which has those of all groups before it, too."""
    groups = grouped(select(load(), Options().families))
    found = []
    for number, name in enumerate(groups):
        later = [r.name for rules in list(groups.values())[number + 1 :] for r in rules]
        count = sum(map(len, groups.values())) - len(later)
        found.append(Rung(f"+ {name}" if number else name, count, tuple(later)))
    return found


def rungs_of_templates() -> list[Rung]:
    """Without any of the templates, then with one more at a time, under all rules."""
    count = rungs_of_rules()[-1].rules
    names = ["CUDA cores", *(f"+ {t}" for t in TEMPLATES)]
    return [Rung(name, count, barred=TEMPLATES[n:]) for n, name in enumerate(names)]


def compiled(case: Case, rung: Rung, target: str) -> Plan:
    """The plan of a case on a rung, the best by the model."""
    options = Options(
        target=target,
        settings=Settings(growth=UNBOUNDED),
        splits=case.splits,
        without=rung.without,
        barred=rung.barred,
    )
    return compile_plan(Source(case.name, case.text), options)


def steps(plan: Plan) -> tuple[tuple[str, str], ...]:
    """What a plan launches, whatever its buffers and axes are called."""
    kernels = [plan.kernels[launch.kernel].step for launch in plan.variants[0].launches]
    return tuple((identity(*k.kernels), str(k.schedule)) for k in kernels)


def scratch(plan: Plan) -> int:
    """Bytes of the arena beside inputs and outputs."""
    (variant,) = plan.variants
    own = (b for b in variant.buffers if b.role in (Role.INPUT, Role.OUTPUT))
    return variant.arena - sum(int(np.prod(b.shape)) * b.dtype.size for b in own)


# -- machines


class Machine(Protocol):
    """Where plans are timed, and how fast it is at best."""

    target: str
    heading: Mapping[str, Any]
    bandwidth: float
    peak: float

    def prepare(self, plans: Iterable[Plan]) -> None:
        """Compile kernels side by side."""

    def contestant(self, session: Session, data: Mapping[str, Any]) -> Contestant:
        """Runs a plan that has run on some data before; the seconds of one run."""


class OnGpu:
    """The first NVIDIA GPU; the peak is that of a large product of bf16."""

    target = "cuda"

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

    target = "cpu"

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


# -- one case


@dataclass(frozen=True)
class Row:
    """A rung as it was measured; one whose plan is that of the rung before has its figures.

    One that did not run, or whose result is wrong, says why and has none.
    """

    rung: str
    rules: int
    same: bool
    kernels: tuple[str, ...]
    launches: int
    scratch: int
    seconds: float | None
    error: float | None
    failure: str


def measured(machine: Machine, case: Case, rungs: Sequence[Rung], plans: Sequence[Plan]) -> list[Row]:
    """All rungs of a case."""
    data = case.draw()
    works, errors, failures = dict[str, Contestant](), dict[str, float](), dict[str, str]()
    sessions, first = [], None
    for name, plan in _distinct(rungs, plans).items():
        try:
            session = Session(plan)
            result = session(**data)["out"].astype(np.float32)
            first = result if first is None else first
            errors[name] = max(_error(case, data, result), _apart(result, first))
            if errors[name] <= TOLERANCE:
                works[name] = machine.contestant(session, data)
                sessions.append(session)  # which owns the memory that is worked on
            else:
                failures[name] = f"wrong by {errors[name]:.2g}"
        except LumiError as error:
            failures[name] = error.message
    once = sum(work() for work in works.values())
    least, most = ROUNDS
    seconds = interleaved(works, max(least, min(most, int(MOST / once)))) if works else {}
    return list(_rows(rungs, plans, seconds, errors, failures))


def _distinct(rungs: Sequence[Rung], plans: Sequence[Plan]) -> dict[str, Plan]:
    """The plans that are not the same as that of the rung before, by the name of their rung."""
    before, found = None, {}
    for rung, plan in zip(rungs, plans, strict=True):
        if steps(plan) != before:
            found[rung.name] = plan
        before = steps(plan)
    return found


def _rows(
    rungs: Sequence[Rung],
    plans: Sequence[Plan],
    seconds: Mapping[str, float],
    errors: Mapping[str, float],
    failures: Mapping[str, str],
) -> Iterator[Row]:
    timed = ""
    for rung, plan in zip(rungs, plans, strict=True):
        timed = rung.name if rung.name in {**seconds, **failures} else timed
        yield Row(
            rung=rung.name,
            rules=rung.rules,
            same=timed != rung.name,
            kernels=tuple(plan.kernels[x.kernel].schedule.template for x in plan.variants[0].launches),
            launches=len(plan.variants[0].launches),
            scratch=scratch(plan),
            seconds=seconds.get(timed),
            error=errors.get(timed),
            failure=failures.get(timed, ""),
        )


def _error(case: Case, data: Mapping[str, np.ndarray[Any, Any]], result: np.ndarray[Any, Any]) -> float:
    """How far the first and last head of the first and last sequence are from float64, by the norms."""
    places = {(b, h) for b in (0, case.batch - 1) for h in (0, case.heads - 1)}
    return max(_apart(result[b, h], case.want(data, b, h)) for b, h in places)


def _apart(found: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> float:
    return float(np.linalg.norm(found - want) / np.linalg.norm(want))


def table(rows: Sequence[Row], floor: float) -> str:
    """The rows in Markdown; the floor is in seconds, and the first rung that ran is compared with."""
    first = next((row.seconds for row in rows if row.seconds is not None), None)
    lines = ["| rung | rules | kernels | launches | scratch | µs | of the floor | × first |"]
    lines.append("|---|--:|---|--:|--:|--:|--:|--:|")
    for row in rows:
        told = [row.rung, str(row.rules), " ".join(row.kernels), str(row.launches), _size(row.scratch)]
        if row.same:
            told += ["the same", "", ""]
        elif first is None or row.seconds is None:
            told += [row.failure, "", ""]
        else:
            told += [f"{row.seconds * 1e6:,.1f}", f"{floor / row.seconds:.1%}", f"{first / row.seconds:.2f}"]
        lines.append(f"| {' | '.join(told)} |")
    return "\n".join(lines)


def _size(number: int) -> str:
    if number < 1 << 20:
        return f"{number / (1 << 10):.3g} KiB" if number else "0"
    return f"{number / (1 << 20):,.0f} MiB"


# -- all of them


def run(machine: Machine, cases: Sequence[Case], make: Callable[..., Iterable[Plan]]) -> list[dict[str, Any]]:
    """Measure and print the ladders of cases; `make(compiled, cases, rungs, targets)` maps side by side."""
    ladders = {"rules": rungs_of_rules()}
    if machine.target == "cuda":
        ladders["templates"] = rungs_of_templates()
    wanted = [(case, what, rung) for case in cases for what, rungs in ladders.items() for rung in rungs]
    made = make(
        compiled, [c for c, _, _ in wanted], [r for _, _, r in wanted], [machine.target] * len(wanted)
    )
    plans = {(c.name, what, r.name): plan for (c, what, r), plan in zip(wanted, made, strict=True)}
    machine.prepare(plans.values())
    found = []
    for case in cases:
        floor = max(case.bytes / machine.bandwidth, case.flops / machine.peak)
        print(f"\n**{case.name}**, floor {floor * 1e6:,.1f} µs", flush=True)
        told: dict[str, Any] = {"name": case.name, "bytes": case.bytes, "flops": case.flops, "floor": floor}
        for what, rungs in ladders.items():
            rows = measured(machine, case, rungs, [plans[case.name, what, r.name] for r in rungs])
            print(f"\n{table(rows, floor)}", flush=True)
            told[what] = [asdict(row) for row in rows]
        found.append(told)
    return found


def main(target: str, names: Sequence[str], output: Path | None) -> None:
    """Measure the cases of a target whose names contain one of `names`, and write JSON if asked for."""
    cases = GPU_CASES if target == "cuda" else CPU_CASES
    cases = tuple(c for c in cases if not names or any(part in c.name for part in names))
    with ProcessPoolExecutor(min(8, cpu_count() or 1), get_context("spawn")) as pool:
        machine: Machine = OnGpu() if target == "cuda" else OnCpu()
        head = {"command": f"python {' '.join(sys.argv)}", **machine.heading}
        head |= {"bandwidth": machine.bandwidth, "peak": machine.peak}
        told = ", ".join(str(v) for v in machine.heading.values())
        rates = f"{machine.bandwidth / 1e12:.3g} TB/s, {machine.peak / 1e12:.3g} TFLOP/s"
        print(f"{told}: {rates}", flush=True)
        found = run(machine, cases, pool.map)
    if output:
        output.write_text(json.dumps({**head, "cases": found}, indent=1) + "\n")
