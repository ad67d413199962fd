"""What tells of kernels: how a plan runs them, what they take, and what they were chosen over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lumi.cli.output import duration

if TYPE_CHECKING:
    from lumi.plan.plan import Plan


_START = 5e-6
"""Seconds: under a floor below this a kernel's start weighs more than its work, and a ratio says nothing."""


def known(plan: Plan) -> dict[str | None, list[str]]:
    """Name, launches and schedule of each kernel: launches of a call, in the variant with the most.

    A kernel without a name runs as another, which writes over its input.
    """
    from lumi.plan.text import show_schedule

    counts = [Counter(plan.kernels[x.kernel].name for x in v.launches) for v in plan.variants]
    found: dict[str | None, list[str]] = {None: ["(in place)", "", ""]}
    for k in plan.kernels:
        found[k.name] = [k.name, str(max(count[k.name] for count in counts)), show_schedule(k.step)]
    return found


def seconds(story: Mapping[str, Any]) -> float:
    """What all instances of a region, or one kernel, take: measured, else by the model."""
    taken = story["modelled"] if story["measured"] is None else story["measured"]
    return float(taken or 0.0) * int(story.get("instances", 1))


def ratio(story: Mapping[str, Any]) -> str:
    """How many times its floor a kernel takes; nothing where that says nothing."""
    floor = float(story["floor"] or 0.0)
    return f"{seconds(story) / floor:.2f}" if floor >= _START else ""


def taken(story: Mapping[str, Any]) -> str:
    """What a region or a kernel takes."""
    if story["measured"] is not None:
        return f"{duration(story['measured'])} measured, {duration(story['modelled'])} by the model"
    return f"{duration(story['modelled'])} by the model"


def schedule(rival: Mapping[str, Any]) -> str:
    """How a rival would run the kernel."""
    options = "".join(f" :{name} {value}" for name, value in rival["schedule"]["options"])
    tiles = "".join(f" {axis}={size}" for axis, size in rival["tiles"].items())
    return f"{rival['schedule']['template']}{options}{tiles and ' tiles' + tiles}"


def time(rival: Mapping[str, Any], kernel: Mapping[str, Any]) -> str:
    """What a rival takes, beside the kernel."""
    if rival["seconds"] is None:
        return "not timed"
    than = seconds(kernel)
    more = f" ({(rival['seconds'] / than - 1) * 100:+.0f} %)" if than else ""
    return f"{duration(rival['seconds'])}{more}"


def amount(value: float | None) -> str:
    """A number with its power of a thousand: 12.3 M."""
    number = float(value or 0)
    for prefix in ("", "k", "M", "G"):
        if number < 1000:
            return f"{number:.3g} {prefix}"
        number /= 1000
    return f"{number:.3g} T"
