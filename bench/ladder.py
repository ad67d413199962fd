"""What each group of rules, and each template of kernels, buys attention that is written out of primitives.

A case is compiled once for every rung, the plans searched by the model: first under the rules of the first
group alone, then with one group more at a time; and under all rules, first for CUDA cores alone, then with
one template for tensor cores or caches more at a time.  Temporaries may be of any size, so that a rung that
needs all scores in memory can have them.  All plans of a case run in turn on the same random data; results
are compared with float64 for some of the heads, and as a whole with those of the first rung.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from attention_case import CPU_CASES, GPU_CASES, Case
from gpu_case import Contestant, copy_bandwidth, interleaved
from kernel_times import launches_of

from lumi import dim
from lumi.compiler import Options, compile_plan
from lumi.egraph.groups import grouped
from lumi.egraph.rules import load, select
from lumi.errors import LumiError, Source
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


def steps(plan: Plan) -> str:
    """A name of what a plan launches, whatever its buffers and axes are called."""
    launched = [plan.kernels[launch.kernel].step for launch in plan.variants[0].launches]
    return "\n".join(f"{identity(*step.kernels)} {step.schedule}" for step in launched)


def scratch(plan: Plan) -> int:
    """Bytes of the arena beside inputs and outputs."""
    (variant,) = plan.variants
    own = (b for b in variant.buffers if b.role in (Role.INPUT, Role.OUTPUT))
    return variant.arena - sum(math.prod(dim.value(e, {}) for e in b.shape) * b.dtype.size for b in own)


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
class Figures:
    """Of a plan: seconds and how far its result is off, or why it has none."""

    seconds: float | None = None
    error: float | None = None
    failure: str = ""


@dataclass(frozen=True)
class Row:
    """A rung as it was measured; one whose plan is the `same` as that of the rung before has its figures."""

    rung: str
    rules: int
    same: bool
    kernels: tuple[str, ...]
    launches: int
    scratch: int
    seconds: float | None
    error: float | None
    failure: str


def measured(machine: Machine, case: Case, plans: Iterable[Plan]) -> dict[str, Figures]:
    """Every plan of a case, each once."""
    data, found = case.draw(), dict[str, Figures]()
    places = {(b, h) for b in (0, case.batch - 1) for h in (0, case.heads - 1)}
    wanted = {place: case.want(data, *place) for place in places}
    works, sessions, first = dict[str, Contestant](), list[Session](), None
    for key, plan in {steps(plan): plan for plan in plans}.items():
        try:
            session = Session(plan)
            result = session(**data)["out"].astype(np.float32)
            first = result if first is None else first
            error = max(_apart(result, first), *(_apart(result[p], want) for p, want in wanted.items()))
            if error <= TOLERANCE:
                works[key] = machine.contestant(session, data)
                sessions.append(session)  # which owns the memory that is worked on
            found[key] = Figures(error=error, failure="" if key in works else f"wrong by {error:.2g}")
        except LumiError as failure:
            found[key] = Figures(failure=failure.message)
    once = sum(work() for work in works.values())
    least, most = ROUNDS
    rounds = max(least, min(most, int(MOST / once))) if works else 0
    medians = interleaved(works, rounds)
    return {key: replace(figures, seconds=medians.get(key)) for key, figures in found.items()}


def _apart(found: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> float:
    return float(np.linalg.norm(found - want) / np.linalg.norm(want))


def rows(rungs: Sequence[Rung], plans: Sequence[Plan], figures: Mapping[str, Figures]) -> list[Row]:
    """What is told of the rungs of a ladder."""
    found, before = [], None
    for rung, plan in zip(rungs, plans, strict=True):
        (variant,), key = plan.variants, steps(plan)
        row = Row(
            rung=rung.name,
            rules=rung.rules,
            same=key == before,
            kernels=tuple(plan.kernels[x.kernel].schedule.template for x in variant.launches),
            launches=len(variant.launches),
            scratch=scratch(plan),
            **asdict(figures[key]),
        )
        found.append(row)
        before = key
    return found


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
    """Measure and print the ladders of cases; `make` maps `compiled` over what it takes, as `map` does."""
    ladders = {"rules": rungs_of_rules()}
    if machine.target == "cuda":
        ladders["templates"] = rungs_of_templates()
    left_out = {(r.without, r.barred): r for rungs in ladders.values() for r in rungs}
    wanted = [(case, rung) for case in cases for rung in left_out.values()]
    made = make(compiled, *zip(*wanted, strict=True), [machine.target] * len(wanted))
    plans = {(c.name, r.without, r.barred): plan for (c, r), plan in zip(wanted, made, strict=True)}
    machine.prepare(plans.values())
    found = []
    for case in cases:
        floor = max(case.bytes / machine.bandwidth, case.flops / machine.peak)
        told: dict[str, Any] = {"name": case.name, "bytes": case.bytes, "flops": case.flops, "floor": floor}
        mine = {key[1:]: plan for key, plan in plans.items() if key[0] == case.name}
        figures = measured(machine, case, mine.values())
        print(f"\n**{case.name}**, floor {floor * 1e6:,.1f} µs", flush=True)
        for what, rungs in ladders.items():
            told_of = rows(rungs, [mine[r.without, r.barred] for r in rungs], figures)
            print(f"\n{table(told_of, floor)}", flush=True)
            told[what] = [asdict(row) for row in told_of]
        found.append(told)
    return found


def main(target: str, names: Sequence[str], output: Path | None) -> None:
    """Measure the cases of a target whose names contain one of `names`, and write JSON if asked for.

    The exit status tells whether every plan ran and was right.
    """
    every: Sequence[Case] = GPU_CASES if target == "cuda" else CPU_CASES
    cases = tuple(c for c in every if not names or any(part in c.name for part in names))
    if not cases:
        sys.exit(f"no case has {' or '.join(names)} in its name")
    with ProcessPoolExecutor(min(8, cpu_count() or 1), get_context("spawn")) as pool:
        machine: Machine = OnGpu() if target == "cuda" else OnCpu()
        head = {"command": f"python {' '.join(sys.argv)}", **machine.heading}
        head |= {"bandwidth": machine.bandwidth, "peak": machine.peak}
        told = ", ".join(f"{name} {value}" for name, value in machine.heading.items())
        rates = f"{machine.bandwidth / 1e12:.3g} TB/s, {machine.peak / 1e12:.3g} TFLOP/s"
        print(f"{told}: {rates}", flush=True)
        found = run(machine, cases, pool.map)
    if output:
        output.write_text(json.dumps({**head, "cases": found}, indent=1) + "\n")
    failed = [row for case in found for what in ("rules", "templates") for row in case.get(what, ())]
    sys.exit(any(row["failure"] for row in failed))
