"""`lumi show`: what is inside a model, stage by stage, or inside a plan."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lumi.cli import compiling
from lumi.cli.output import Outcome, Output
from lumi.errors import LumiError

if TYPE_CHECKING:
    from lumi.plan.plan import Plan

_SOURCE = "source"
_NAMED = ("kernels", _SOURCE)  # kernels have the names that the plan gives them


_Shown: TypeAlias = tuple[dict[str, str], int]
"""The text of each stage, and the exit status."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a .lumi file, or a plan")
    parser.add_argument(
        "--show",
        "--until",
        action="append",
        choices=(*compiling.STAGES, _SOURCE),
        help="a stage, also several (default: hlir of a model, plan of a plan); source: the kernels' code",
    )
    compiling.arguments(parser)


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Print the stages asked for."""
    is_plan = zipfile.is_zipfile(options.file)
    stages = options.show or (["plan"] if is_plan else ["hlir"])
    shown, status = _of_plan(options.file, stages) if is_plan else _of_model(options, output, stages)
    for text in shown.values():
        output.say(text, end="")
    return Outcome({"file": str(options.file), "show": shown}, status)


def _of_model(options: argparse.Namespace, output: Output, stages: Sequence[str]) -> _Shown:
    reached = max(("plan" if s in _NAMED else s for s in stages), key=compiling.STAGES.index)
    work = compiling.compiled(options.file, options, output, reached)
    shown = {s: _sources(work.plan) if s == _SOURCE else compiling.text(work, s) for s in stages}
    return shown, compiling.tell_cut_short(work, output)


def _of_plan(path: Path, stages: Sequence[str]) -> _Shown:
    from lumi.plan import file, text

    makers = {"plan": text.show, "kernels": _kernels, _SOURCE: _sources}
    for stage in stages:
        if stage not in makers:
            raise LumiError("plan error", f"a plan holds no {stage}", hint=f"it has {', '.join(makers)}")
    plan = file.load(path)
    return {stage: makers[stage](plan) for stage in stages}, 0


def _kernels(plan: Plan) -> str:
    from lumi.llir import text
    from lumi.plan.text import kernel_head

    heads = (kernel_head(plan, number) for number in range(len(plan.kernels)))
    kernels = (text.show_step(k.step).strip() for k in plan.kernels)
    return "\n".join(f";;; {head}\n{kernel}\n" for head, kernel in zip(heads, kernels, strict=True))


def _sources(plan: Plan | None) -> str:
    return "\n".join(f"// {k.name}\n{k.source.strip()}\n" for k in (plan.kernels if plan else ()))
