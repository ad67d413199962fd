"""`lumi explain`: how the search came to the kernels of a plan."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumi.cli.options import load_plan, no_region
from lumi.cli.output import Outcome, Output, aligned, duration
from lumi.errors import LumiError

if TYPE_CHECKING:
    from lumi.plan.plan import Plan, PlanKernel

_PRICED = "times by the model are those of an NVIDIA H200, whatever GPU there is"
_RIVALS = 3
_RULES = 6
_COLUMNS = ("kernel", "launches", "schedule", "model", "measured", "floor", "× floor", "bytes", "flop")
_START = 5e-6
"""Seconds: under a floor below this a kernel's start weighs more than its work, and a ratio says nothing."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("plan", type=Path, metavar="PLAN", help="a plan that lumi compile made")
    parser.add_argument("--region", metavar="TEXT", help="only regions whose scope contains this text")


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Print the story of every distinct region and its kernels, the most expensive first."""
    plan = load_plan(options.plan)
    try:
        stories: Any = plan.explanation.get("regions", [])
        wanted = options.region or ""
        regions = [story for story in stories if wanted in story["region"]]
        if wanted and not regions:
            raise no_region(wanted, [story["region"] for story in stories])
        regions.sort(key=_seconds, reverse=True)
        relaxed: Any = plan.explanation.get("relaxed", [])
        text = "\n".join(_plan(plan, regions, relaxed))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        hint = "compile the model again with this Lumi"
        raise LumiError(
            "plan error", f"{options.plan}: its explanation is damaged: {error}", hint=hint
        ) from None
    output.say(text)
    report = {"plan": plan.name, "target": plan.target, "relaxed": relaxed, "regions": regions}
    return Outcome(report)


def _plan(plan: Plan, regions: list[Any], relaxed: list[str]) -> Iterator[str]:
    from lumi.plan.box import spelled

    labels = [spelled(v.dims.values()) if len(plan.variants) > 1 else "" for v in plan.variants]
    counts = [str(len(v.launches)) for v in plan.variants]
    launches = "; ".join(" at ".join(filter(None, pair)) for pair in zip(counts, labels, strict=True))
    yield f"{plan.name} for {plan.target}: kernels: {len(plan.kernels)}; launches: {launches}"
    if plan.target == "cuda":
        yield _PRICED
    for name in relaxed:
        yield _users(f"{name} allowed, taken by", (k.name for k in plan.kernels if _takes(k, name)))
    if "tf32" not in relaxed and any(_rounds(kernel) for kernel in plan.kernels):
        users = (k.name for k in plan.kernels if _rounds(k) or _takes(k, "tf32"))
        yield _users("tf32 asked for, taken by", users)
    known = _known(plan)
    stories: Any = plan.explanation["regions"]
    is_cut_short = any(story["interrupted"] and story["mode"] != "none" for story in stories)
    for region in regions:
        yield ""
        yield from _region(region, known, len(plan.variants) > 1)
        if is_cut_short and region["mode"] == "none":
            yield "  not searched, because Ctrl-C came before: the first plan that works"
    if not regions:
        yield "no region was searched"


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


def _known(plan: Plan) -> dict[str | None, list[str]]:
    """Name, launches and schedule of each kernel: launches of a call, in the variant with the most.

    A kernel without a name runs as another, which writes over its input.
    """
    from lumi.plan.text import show_schedule

    counts = [Counter(plan.kernels[x.kernel].name for x in v.launches) for v in plan.variants]
    found: dict[str | None, list[str]] = {None: ["(in place)", "", ""]}
    for k in plan.kernels:
        found[k.name] = [k.name, str(max(count[k.name] for count in counts)), show_schedule(k.step)]
    return found


def _seconds(story: Mapping[str, Any]) -> float:
    """What all instances of a region, or one kernel, take: measured, else by the model."""
    seconds = story["modelled"] if story["measured"] is None else story["measured"]
    return float(seconds or 0.0) * int(story.get("instances", 1))


def _region(
    story: Mapping[str, Any], known: Mapping[str | None, list[str]], is_marked: bool
) -> Iterator[str]:
    times = f" × {story['instances']}" if story["instances"] > 1 else ""
    variants = story["variants"] if is_marked else []
    yield f"{'; '.join([story['region'] + times, *variants])}: {_taken(story)}"
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
    more = f" and {len(rules) - len(busy)} more rules" if len(rules) > len(busy) else ""
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
            yield f"    instead of {_schedule(rival)}: {_rival_time(rival, _seconds(kernel))}"


def _figures(story: Mapping[str, Any]) -> list[str]:
    seconds, floor = _seconds(story), float(story["floor"] or 0.0)
    return [
        duration(story["modelled"]),
        duration(story["measured"]),
        duration(floor),
        f"{seconds / floor:.2f}" if floor >= _START else "",
        f"{_amount(story['traffic'])}B",
        _amount(story["flops"]).strip(),
    ]


def _schedule(rival: Mapping[str, Any]) -> str:
    options = "".join(f" :{name} {value}" for name, value in rival["schedule"]["options"])
    tiles = "".join(f" {axis}={size}" for axis, size in rival["tiles"].items())
    return f"{rival['schedule']['template']}{options}{tiles and ' tiles' + tiles}"


def _rival_time(rival: Mapping[str, Any], seconds: float) -> str:
    if rival["seconds"] is None:
        return "not timed"
    more = f" ({(rival['seconds'] / seconds - 1) * 100:+.0f} %)" if seconds else ""
    return f"{duration(rival['seconds'])}{more}"


def _taken(story: Mapping[str, Any]) -> str:
    if story["measured"] is not None:
        return f"{duration(story['measured'])} measured, {duration(story['modelled'])} by the model"
    return f"{duration(story['modelled'])} by the model"


def _amount(value: float | None) -> str:
    """A number with its power of a thousand: 12.3 M."""
    number = float(value or 0)
    for prefix in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} T"
