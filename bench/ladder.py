"""What each group of rules, and each template of kernels, buys attention that is written out of primitives.

A case is compiled once for every rung, the plans searched by the model: first under the rules of the first
group alone, then with one group more at a time; and under all rules, first for CUDA cores alone, then with
one template for tensor cores or caches more at a time.  Temporaries may be of any size, so that a rung that
needs all scores in memory can have them.  All plans of a case run in turn on the same random data; results
are compared with float64 for some of the heads, and as a whole with those of the first rung.  Where nothing
is run, the times are those by which the search chose.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np
from attention_case import CPU_CASES, GPU_CASES, Case
from gpu_case import Contestant, interleaved
from machines import Machine, OnCpu, OnGpu

from lumi import dim
from lumi.backends.targets import open_backend
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


def modelled(plans: Iterable[Plan]) -> tuple[dict[str, Figures], float]:
    """The seconds of plans by the model, and the least that all kernels of one of them may take."""
    found, floors = dict[str, Figures](), list[float]()
    for plan in plans:
        stories: Any = plan.explanation["regions"]
        found[steps(plan)] = Figures(seconds=sum(story["modelled"] for story in stories))
        floors.append(sum(kernel["floor"] for story in stories for kernel in story["kernels"]))
    return found, min(floors)


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


def summary(cases: Sequence[Mapping[str, Any]], what: str) -> str:
    """One ladder of all cases in Markdown: microseconds of each rung, and the share of the floor."""
    lines = [f"| rung | {' | '.join(case['name'] for case in cases)} |", f"|---|{'--:|' * len(cases)}"]
    lines.append(f"| floor | {' | '.join(_microseconds(case['floor']) for case in cases)} |")
    for at_rung in zip(*(case[what] for case in cases), strict=True):
        told = [_brief(row, case["floor"]) for row, case in zip(at_rung, cases, strict=True)]
        lines.append(f"| {at_rung[0]['rung']} | {' | '.join(told)} |")
    return "\n".join(lines)


def _brief(row: Mapping[str, Any], floor: float) -> str:
    if row["same"] or row["failure"]:
        return str(row["failure"] or "the same")
    return f"{_microseconds(row['seconds'])} ({floor / row['seconds']:.1%})"


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs"


def _size(number: int) -> str:
    if number < 1 << 20:
        return f"{number / (1 << 10):.3g} KiB" if number else "0"
    return f"{number / (1 << 20):,.0f} MiB"


# -- all of them


def run(
    target: str, machine: Machine | None, cases: Sequence[Case], make: Callable[..., Iterable[Plan]]
) -> list[dict[str, Any]]:
    """Print the ladders of cases, measured unless there is no machine.

    `make` maps `compiled` over what it takes, as `map` does.
    """
    ladders = {"rules": rungs_of_rules()}
    if target == "cuda":
        ladders["templates"] = rungs_of_templates()
    left_out = {(r.without, r.barred): r for rungs in ladders.values() for r in rungs}
    wanted = [(case, rung) for case in cases for rung in left_out.values()]
    made = make(compiled, *zip(*wanted, strict=True), [target] * len(wanted))
    plans = {(c.name, r.without, r.barred): plan for (c, r), plan in zip(wanted, made, strict=True)}
    if machine is not None:
        machine.prepare(plans.values())
    found = []
    for case in cases:
        mine = {key[1:]: plan for key, plan in plans.items() if key[0] == case.name}
        if machine is None:
            figures, floor = modelled(mine.values())
        else:
            figures = measured(machine, case, mine.values())
            floor = max(case.bytes / machine.bandwidth, case.flops / machine.peak)
        told: dict[str, Any] = {"name": case.name, "bytes": case.bytes, "flops": case.flops, "floor": floor}
        print(f"\n**{case.name}**, floor {floor * 1e6:,.1f} µs", flush=True)
        for what, rungs in ladders.items():
            told_of = rows(rungs, [mine[r.without, r.barred] for r in rungs], figures)
            print(f"\n{table(told_of, floor)}", flush=True)
            told[what] = [asdict(row) for row in told_of]
        found.append(told)
    for what in ladders:
        print(f"\n{summary(found, what)}", flush=True)
    return found


def main(target: str, names: Sequence[str], output: Path | None, is_measured: bool) -> None:
    """Print the ladders of a target's cases whose names contain one of `names`; write JSON if asked for.

    The exit status tells whether every plan ran and was right.
    """
    every: Sequence[Case] = GPU_CASES if target == "cuda" else CPU_CASES
    cases = tuple(c for c in every if not names or any(part in c.name for part in names))
    if not cases:
        sys.exit(f"no case has {' or '.join(names)} in its name")
    with ProcessPoolExecutor(min(8, cpu_count() or 1), get_context("spawn")) as pool:
        machine: Machine | None = None
        head: dict[str, Any] = {"model": open_backend(target).machine.name or "this processor"}
        if is_measured:
            machine = OnGpu() if target == "cuda" else OnCpu()
            head = {**machine.heading, "bandwidth": machine.bandwidth, "peak": machine.peak}
        told = (f"{value:.4g}" if isinstance(value, float) else value for value in head.values())
        print(", ".join(f"{name} {value}" for name, value in zip(head, told, strict=True)), flush=True)
        found = run(target, machine, cases, pool.map)
    if output:
        command = f"python {' '.join(sys.argv)}"
        output.write_text(json.dumps({"command": command, **head, "cases": found}, indent=1) + "\n")
    failed = [row for case in found for what in ("rules", "templates") for row in case.get(what, ())]
    sys.exit(any(row["failure"] for row in failed))
