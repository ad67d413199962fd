"""`lumi show`: what is inside a model, stage by stage, or inside a plan."""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumi.cli import compiling
from lumi.cli import options as shared
from lumi.cli.output import Outcome, Output
from lumi.errors import LumiError

if TYPE_CHECKING:
    from lumi.plan.memory import PlanMemory
    from lumi.plan.plan import Plan

_SOURCE, _MEMORY = "source", "memory"
_OF_PLAN = ("plan", "kernels", _SOURCE, _MEMORY)  # kernels have the names that the plan gives them


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is shown: a plan, if it was made, and the text of any other stage."""

    plan: Plan | None
    text: Callable[[str], str]
    status: int = 0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("file", type=Path, metavar="FILE", help="a .lumi file, or a plan")
    parser.add_argument(
        "--show",
        "--until",
        action="append",
        choices=(*compiling.STAGES, _SOURCE, _MEMORY),
        help="a stage, also several (default: hlir of a model, plan of a plan); source: the kernels' code; "
        "memory: what the plan takes and moves",
    )
    parser.add_argument(
        "--dim",
        action="append",
        default=[],
        dest="dims",
        type=shared.pair("NAME=INTEGER"),
        metavar="NAME=N",
        help="with --show memory: a dim of the call that is looked at (default: its first hint)",
    )
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page instead: the stages asked for, by default all that tell of kernels and memory",
    )
    compiling.arguments(parser)


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Print the stages asked for, or write a page of them."""
    is_plan = zipfile.is_zipfile(options.file)
    stages = tuple(dict.fromkeys(options.show or _usual(is_plan, options.html is not None)))
    if options.dims and _MEMORY not in stages:
        message = "--dim says at which call --show memory looks, and that is not asked for"
        raise LumiError("usage error", message, hint="add --show memory, or leave it out")
    subject = _of_plan(options.file, stages) if is_plan else _of_model(options, output, stages)
    wanted = {_MEMORY} | ({"kernels"} if options.html else set())
    found = None
    if subject.plan is not None and not wanted.isdisjoint(stages):
        found = _memory(subject.plan, shared.dims(options.dims))
    if options.html is not None:
        return _page(options, output, subject, stages, found)
    shown: dict[str, str] = {}
    for stage in stages:
        shown[stage] = _text(subject, stage, found)
        output.say(shown[stage], end="")
    figures = {_MEMORY: _figures(found)} if found and _MEMORY in stages else {}
    return Outcome({"file": str(options.file), "show": shown, **figures}, subject.status)


def _usual(is_plan: bool, is_page: bool) -> Sequence[str]:
    if is_page:
        return ("memory", "kernels", "plan") if is_plan else ("memory", "hlir", "kernels", "plan")
    return ("plan",) if is_plan else ("hlir",)


def _text(subject: _Subject, stage: str, found: PlanMemory | None) -> str:
    from lumi.cli.memory import told

    return "\n".join(told(found)) + "\n" if stage == _MEMORY and found else subject.text(stage)


def _page(
    options: argparse.Namespace,
    output: Output,
    subject: _Subject,
    stages: Sequence[str],
    found: PlanMemory | None,
) -> Outcome:
    """Write the page."""
    from lumi.cli.html import sections
    from lumi.cli.html.page import page, write

    made = []
    for stage in stages:
        if stage == _MEMORY and found:
            made.append(sections.memory(found))
        elif stage == "kernels" and found and subject.plan:
            made.append(sections.kernels(subject.plan, found, subject.text(stage)))
        else:
            made.append(sections.stage(stage, subject.text(stage)))
    write(page(options.file.name, made), options.html)
    output.note(f"{options.html}: {', '.join(s.title for s in made)}")
    return Outcome({"file": str(options.file), "html": str(options.html)}, subject.status)


def _of_model(options: argparse.Namespace, output: Output, stages: Sequence[str]) -> _Subject:
    reached = max(("plan" if s in _OF_PLAN else s for s in stages), key=compiling.STAGES.index)
    work = compiling.compiled(options.file, options, output, reached)

    def text(stage: str) -> str:
        return _sources(work.plan) if stage == _SOURCE else compiling.text(work, stage)

    return _Subject(work.plan, text, compiling.tell_cut_short(work, output))


def _of_plan(path: Path, stages: Sequence[str]) -> _Subject:
    from lumi.plan import file, text

    for stage in stages:
        if stage not in _OF_PLAN:
            raise LumiError("plan error", f"a plan holds no {stage}", hint=f"it has {', '.join(_OF_PLAN)}")
    plan = file.load(path)
    makers = {"plan": text.show, "kernels": _kernels, _SOURCE: _sources}
    return _Subject(plan, lambda stage: makers[stage](plan))


def _kernels(plan: Plan) -> str:
    from lumi.llir import text
    from lumi.plan.text import kernel_head

    heads = (kernel_head(plan, number) for number in range(len(plan.kernels)))
    kernels = (text.show_step(k.step).strip() for k in plan.kernels)
    return "\n".join(f";;; {head}\n{kernel}\n" for head, kernel in zip(heads, kernels, strict=True))


def _sources(plan: Plan | None) -> str:
    return "\n".join(f"// {k.name}\n{k.source.strip()}\n" for k in (plan.kernels if plan else ()))


def _memory(plan: Plan, dims: dict[str, int]) -> PlanMemory:
    from lumi.backends.targets import beside
    from lumi.plan.memory import memory

    return memory(plan, dims, beside(plan))


def _figures(found: PlanMemory) -> dict[str, Any]:
    """The memory report for programs."""
    from lumi.llir.json import describe

    every: Any = describe(found)
    for told, variant in zip(every["variants"], found.variants, strict=True):
        told |= {"ratio": variant.ratio, "in_use": found.in_use(variant)}
        told |= {"read": variant.read, "written": variant.written}
    return {**every, "total": found.total}
