"""`lumi explain`: how the search came to the kernels of a plan."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumi.cli import crossings, stories
from lumi.cli.options import load_plan, no_region
from lumi.cli.output import Outcome, Output, Report, aligned, counted, duration
from lumi.cli.progress import Display
from lumi.errors import LumiError

if TYPE_CHECKING:
    from lumi.plan.plan import Plan, PlanKernel

_ORIGIN = "origin"
_RIVALS = 3
_RULES = 6
_COLUMNS = ("kernel", "launches", "schedule", "model", "measured", "floor", "× floor", "bytes", "flop")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("plan", type=Path, metavar="PLAN", help="a plan that lumi compile made")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--region", metavar="TEXT", help="only regions whose scope contains this text")
    chosen.add_argument(
        "--kernel", metavar="NAME", help="how one kernel came about, what it beat, and what rules bought"
    )
    parser.add_argument(
        "--search",
        choices=["model", "measure"],
        help="with --kernel: whether plans with fewer rules are measured, too (default: model)",
    )


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Print the story of every distinct region, the most expensive first, or that of one kernel."""
    if options.search is not None and options.kernel is None:
        message = "--search says how plans are found that one kernel is compared with, and none is chosen"
        raise LumiError("usage error", message, hint="add --kernel NAME, or leave it out")
    plan = load_plan(options.plan)
    try:
        text, report = _regions(plan, options) if options.kernel is None else _kernel(plan, options)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        hint = "compile the model again with this Lumi"
        raise LumiError(
            "plan error", f"{options.plan}: its explanation is damaged: {error}", hint=hint
        ) from None
    output.say(text)
    return Outcome(report)


def _regions(plan: Plan, options: argparse.Namespace) -> tuple[str, Report]:
    every: Any = plan.explanation.get("regions", [])
    wanted = options.region or ""
    regions = [story for story in every if wanted in story["region"]]
    if wanted and not regions:
        raise no_region(wanted, [story["region"] for story in every])
    regions.sort(key=stories.seconds, reverse=True)
    relaxed: Any = plan.explanation.get("relaxed", [])
    text = "\n".join(_plan(plan, regions, relaxed))
    told = [{name: part for name, part in story.items() if name != _ORIGIN} for story in regions]
    report: Report = {"plan": plan.name, "target": plan.target, "relaxed": relaxed}
    return text, {**report, "variants": plan.explanation["variants"], "regions": told}


def _kernel(plan: Plan, options: argparse.Namespace) -> tuple[str, Report]:
    from lumi.cli.chosen import told
    from lumi.compiler import Options
    from lumi.derivation import derivation, rivals
    from lumi.llir.json import describe
    from lumi.search.settings import Mode, Settings

    settings = Settings(mode=Mode(options.search or "model"))
    with Display() as display:
        how = Options(settings=settings, progress=display.stage, report=display.search)
        found, others = derivation(plan, options.kernel, how), rivals(plan, options.kernel)
    text = "\n".join(told(plan, options.kernel, found, others))
    report = {"plan": plan.name, "target": plan.target, "kernel": options.kernel}
    return text, {**report, "derivation": describe(found), "rivals": describe(others)}


def _plan(plan: Plan, regions: list[Any], relaxed: list[str]) -> Iterator[str]:
    from lumi.plan.box import spelled

    labels = [spelled(v.dims.values()) if len(plan.variants) > 1 else "" for v in plan.variants]
    counts = [str(len(v.launches)) for v in plan.variants]
    launches = "; ".join(" at ".join(filter(None, pair)) for pair in zip(counts, labels, strict=True))
    yield f"{plan.name} for {plan.target}: kernels: {len(plan.kernels)}; launches: {launches}"
    machine: Any = plan.explanation["machine"]
    if machine["name"]:
        yield f"times by the model are those of an {machine['name']}, whatever device there is"
    yield from _memory(plan.explanation["memory"])
    for name in relaxed:
        yield _users(f"{name} allowed, taken by", (k.name for k in plan.kernels if _takes(k, name)))
    if "tf32" not in relaxed and any(_rounds(kernel) for kernel in plan.kernels):
        users = (k.name for k in plan.kernels if _rounds(k) or _takes(k, "tf32"))
        yield _users("tf32 asked for, taken by", users)
    yield from crossings.told(plan)
    known = stories.known(plan)
    every: Any = plan.explanation["regions"]
    is_cut_short = any(story["interrupted"] and story["mode"] != "none" for story in every)
    for region in regions:
        yield ""
        yield from _region(region, known, len(plan.variants) > 1)
        if is_cut_short and region["mode"] == "none":
            yield "  not searched, because Ctrl-C came before: the first plan that works"
    if not regions:
        yield "no region was searched"


def _memory(limit: Any) -> Iterator[str]:
    """What --memory left for temporaries."""
    if limit["given"] is not None:
        given, held, room = (f"{stories.amount(limit[part])}B" for part in ("given", "held", "room"))
        yield f"of {given} the model holds {held} at its largest dims; a region's temporaries may take {room}"


def _users(what: str, names: Iterable[str]) -> str:
    return f"{what} {', '.join(names) or 'no kernel'}"


def _takes(kernel: PlanKernel, precision: str) -> bool:
    """Whether the schedule of a launch computes in a precision, as tensor cores do."""
    return (precision, 1) in kernel.schedule.options


def _rounds(kernel: PlanKernel) -> bool:
    """Whether a launch rounds to TF32 as the model says, on whatever device."""
    from lumi.llir.kernel import Map, walk

    statements = (s for k in kernel.step.kernels for s in walk(k.body))
    return any(isinstance(s, Map) and s.op == "tf32" for s in statements)


def _region(
    story: Mapping[str, Any], known: Mapping[str | None, list[str]], is_marked: bool
) -> Iterator[str]:
    times = f" × {story['instances']}" if story["instances"] > 1 else ""
    variants = story["variants"] if is_marked else []
    yield f"{'; '.join([story['region'] + times, *variants])}: {stories.taken(story)}"
    compared = f"{story['evaluations']} plans compared, {story['trials']} measured"
    yield f"  search {story['mode']} from {story['seed']}; {compared}"
    if story["trials"]:
        yield f"  {_effort(story['effort'])}"
    yield f"  {story['enodes']} e-nodes, {_saturation(story['saturated'], story['rules'])}"
    yield from _kernels(story, known)
    if story["interrupted"]:
        yield "  stopped by Ctrl-C: the best so far was kept"
    if story["correlation"] is not None:
        yield f"  rank correlation of model and measurement: {story['correlation']:.2f}"
    if story["refusals"]:
        yield "  refused: " + ", ".join(f"{count} × {reason}" for reason, count in story["refusals"].items())
    for failure in story["failures"]:
        yield f"  failed: {failure}"
    gains = [f"{duration(seconds)} after {count}" for count, seconds in story["curve"]]
    if gains:
        yield f"  best so far: {', '.join(gains)}"


def _effort(effort: Mapping[str, Any]) -> str:
    """What measuring took, and what results were compared with."""
    parts = {
        "compiling": "compile",
        "making the reference": "reference",
        "checking": "check",
        "timing": "time",
    }
    told = ", ".join(f"{what} {duration(effort[name])}" for what, name in parts.items() if effort[name])
    against = f"; compared with {effort['against']}" if effort["against"] else ""
    return f"{told or 'nothing ran'}{against}"


def _saturation(is_saturated: bool, rules: Mapping[str, int]) -> str:
    """Whether saturation came to its end, and the rules that matched most."""
    busy = [f"{name} {count}" for name, count in rules.items()][:_RULES]
    more = f" and {counted(len(rules) - len(busy), 'more rule')}" if len(rules) > len(busy) else ""
    matches = f"; matches: {', '.join(busy)}{more}" if busy else ""
    return ("saturated" if is_saturated else "stopped by a limit") + matches


def _kernels(story: Mapping[str, Any], known: Mapping[str | None, list[str]]) -> Iterator[str]:
    """A table of the region's kernels, and below each what it was chosen over."""
    kernels = story["kernels"]
    rows = [[*known[name], *_figures(k)] for name, k in zip(story["names"], kernels, strict=True)]
    dropped = {"measured"} if all(k["measured"] is None for k in kernels) else set()
    kept = [n for n, column in enumerate(_COLUMNS) if column not in dropped]
    head, *lines = aligned([[row[n] for n in kept] for row in [list(_COLUMNS), *rows]], left=(0, 2))
    yield f"  {head}"
    for line, kernel in zip(lines, kernels, strict=True):
        yield f"  {line}"
        rivals = sorted(kernel["rivals"], key=lambda r: (r["seconds"] is None, r["seconds"] or 0.0))
        for rival in rivals[:_RIVALS]:
            yield f"    instead of {stories.schedule(rival)}: {stories.time(rival, kernel)}"


def _figures(story: Mapping[str, Any]) -> list[str]:
    return [
        duration(story["modelled"]),
        duration(story["measured"]),
        duration(float(story["floor"] or 0.0)),
        stories.ratio(story),
        f"{stories.amount(story['traffic'])}B",
        stories.amount(story["flops"]).strip(),
    ]
