"""`lumi explain`: how the search came to the kernels of a plan."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lumi.cli.output import Outcome, Output, duration
from lumi.errors import LumiError

if TYPE_CHECKING:
    from lumi.plan.plan import Plan

_RIVALS = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("plan", type=Path, metavar="PLAN", help="a plan that lumi compile made")
    parser.add_argument("--region", metavar="TEXT", help="only regions whose scope contains this text")


def execute(options: argparse.Namespace, output: Output) -> Outcome:
    """Print the story of every distinct region and its kernels, the most expensive first."""
    from lumi.plan.file import load

    plan = load(options.plan)
    try:
        stories: Any = plan.explanation.get("regions", [])
        regions = [story for story in stories if (options.region or "") in story["region"]]
        regions.sort(key=_seconds, reverse=True)
        text = "\n".join(_plan(plan, regions))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        hint = "compile the model again with this Lumi"
        raise LumiError(
            "plan error", f"{options.plan}: its explanation is damaged: {error}", hint=hint
        ) from None
    output.say(text)
    return Outcome({"plan": plan.name, "target": plan.target, "regions": regions})


def _plan(plan: Plan, regions: list[Any]) -> Iterator[str]:
    launches = ", ".join(str(len(variant.launches)) for variant in plan.variants)
    yield f"{plan.name} for {plan.target}: {len(plan.kernels)} kernels, launches a variant: {launches}"
    for region in regions:
        yield ""
        yield from _region(region)
    if not regions:
        yield "no region was searched"


def _seconds(story: Mapping[str, Any]) -> float:
    """What all instances of a region, or one kernel, take: measured, else by the model."""
    seconds = story["modelled"] if story["measured"] is None else story["measured"]
    return float(seconds or 0.0) * int(story.get("instances", 1))


def _region(story: Mapping[str, Any]) -> Iterator[str]:
    bound = "".join(f", {name} = {value}" for name, value in story["bind"].items())
    times = f" × {story['instances']}" if story["instances"] > 1 else ""
    yield f"{story['region'] or 'region'}{times}{bound}: {_taken(story)}"
    compared = f"{story['evaluations']} plans compared, {story['trials']} measured"
    grown = "saturated" if story["saturated"] else "not saturated"
    yield f"  search {story['mode']}, seed {story['seed']}: {story['enodes']} e-nodes, {grown}; {compared}"
    for name, kernel in zip(story["names"], story["kernels"], strict=True):
        yield from _kernel(name, kernel)
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


def _kernel(name: str, story: Mapping[str, Any]) -> Iterator[str]:
    seconds, floor = _seconds(story), float(story["floor"] or 0.0)
    ratio = f", {seconds / floor:.2f} × its floor" if floor else ""
    work = f"{_amount(story['traffic'])}B, {_amount(story['flops'])}flop"
    yield f"  {name}: {_taken(story)}{ratio} ({duration(floor)}: {work})"
    rivals = sorted(story["rivals"], key=lambda r: (r["seconds"] is None, r["seconds"] or 0.0))
    for rival in rivals[:_RIVALS]:
        yield f"    instead of {_schedule(rival)}: {_rival_time(rival, seconds)}"


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
