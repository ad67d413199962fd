"""`lumi compile`: a model becomes a plan file."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lumi.cli import compiling
from lumi.cli.output import Outcome, Output, counted
from lumi.cli.progress import Display
from lumi.errors import LumiError

LEAST = 0.05
"""Seconds that are worth telling."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a .lumi file")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PLAN", help="the plan file (default: the file's name)"
    )
    parser.add_argument(
        "--until",
        choices=compiling.STAGES,
        default="plan",
        help="stop after this stage and print what it made, write no plan",
    )
    parser.add_argument(
        "--show", action="append", default=[], choices=compiling.STAGES, help="also print what a stage made"
    )
    compiling.arguments(parser)


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Compile, print the stages asked for, write the plan."""
    for stage in options.show:
        if compiling.STAGES.index(stage) > compiling.STAGES.index(options.until):
            message = f"nothing is there to show of {stage}: the compilation ends after {options.until}"
            raise LumiError("usage error", message)
    path = _place(options)
    work = compiling.compiled(options.file, options, output, options.until, Display(in_lines=True))
    stages = options.show or ([] if options.until == "plan" else [options.until])
    shown = {stage: compiling.text(work, stage) for stage in stages}
    for text in shown.values():
        output.say(text, end="")
    counts = work.counts()
    seconds = {stage.value: s for stage, s in work.seconds.items()}
    unfinished = {scope: e.busiest.name if e.busiest else None for scope, e in work.unfinished().items()}
    stopped, left = work.cut_short()
    report: dict[str, Any] = {"plan": None, **counts, "unfinished": unfinished, "seconds": seconds}
    report["spent"] = work.spent()
    report["cut_short"] = {"stopped": stopped, "not_searched": left}
    if work.plan is not None:
        from lumi.plan.file import save

        save(work.plan, path)
        report["plan"] = str(path)
        output.note(_summary(str(path), counts, work.spent()))
    if shown:
        report["show"] = shown
    return Outcome(report, compiling.tell_cut_short(work, output))


def _place(options: argparse.Namespace) -> Path:
    """Where the plan goes; that it cannot be written there is told before the search, not after it."""
    from lumi.plan.file import SUFFIX, check_place

    path: Path = options.output or Path(f"{options.file.stem}{SUFFIX}")
    if options.until == "plan":
        check_place(path)
    return path


def _summary(path: str, counts: Mapping[str, int | float], spent: Mapping[str, float]) -> str:
    """What was made, and where the seconds went; what took next to none is left out."""
    items = {
        "kernels": "kernel",
        "launches": "launch",
        "regions": "region",
        "enodes": "e-node",
        "trials": "trial",
    }
    parts = [counted(int(counts[key]), noun) for key, noun in items.items()]
    if counts["recalled"]:
        parts.append(f"{int(counts['recalled'])} known from the tuning database")
    where = ", ".join(f"{what} {seconds:.1f}" for what, seconds in spent.items() if seconds >= LEAST)
    return f"{path}: {', '.join(parts)}, {counts['total_s']:.1f} s{f' ({where})' if where else ''}"
