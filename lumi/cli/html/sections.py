"""The sections of a page about a plan: its memory, its kernels, and the text of any stage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lumi.cli.html.page import Section, heading, listing
from lumi.cli.html.picture import picture
from lumi.cli.html.table import table
from lumi.cli.memory import told
from lumi.cli.output import counted, duration
from lumi.cli.stories import amount, ratio
from lumi.plan.check import plan_error
from lumi.plan.text import show_schedule

if TYPE_CHECKING:
    from lumi.plan.memory import PlanMemory, VariantMemory
    from lumi.plan.plan import Plan

_HEAD = (
    "kernel",
    "scope",
    "schedule",
    "launches",
    "read",
    "written",
    "model",
    "measured",
    "floor",
    "× floor",
)
_WORDS = (0, 1, 2)
_KEY = (
    '<p>Buffers lie in the arena from their first launch to their last: <b class="input">inputs</b>, '
    '<b class="output">outputs</b>, <b class="temporary">temporaries</b>. The line is what is alive, the '
    "dashed lines say where it is the most.</p>"
)


def stage(name: str, text: str) -> Section:
    """The text of a stage."""
    return Section(name, name, (listing(text, f"{name}: {counted(text.count(chr(10)), 'line')}"),))


def kernels(plan: Plan, memory: PlanMemory, text: str) -> Section:
    """The kernels of each variant, those that move most first, and their programs.

    Raises `LumiError` where what the search told of them is damaged.
    """
    try:
        times = _times(plan)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise plan_error(f"its explanation is damaged: {error}") from None
    parts = []
    for variant in memory.variants:
        parts += [heading(_title(variant)), table(_HEAD, list(_rows(plan, variant, times)), _WORDS)]
    return Section("kernels", "kernels", (*parts, listing(text, f"{len(plan.kernels)} programs")))


def memory(found: PlanMemory) -> Section:
    """The memory report, with a picture of each variant's arena."""
    parts = [listing("\n".join(told(found))), _KEY]
    for variant in found.variants:
        parts += [heading(_title(variant)), picture(variant)]
    return Section("memory", "memory", tuple(parts))


def _title(variant: VariantMemory) -> str:
    return "; ".join(filter(None, [variant.label, counted(len(variant.launches), "launch")]))


def _times(plan: Plan) -> dict[str, list[str]]:
    """What the search told of kernels, by name: seconds by the model, as measured, and at least.

    They are sums over the hints of a variant.  A plan that was made by hand has none.
    """
    regions: Any = plan.explanation.get("regions", [])
    found = {}
    for region in regions:
        for name, story in zip(region["names"], region["kernels"], strict=True):
            seconds = (story["modelled"], story["measured"], story["floor"])
            found[name] = [*("" if x is None else duration(float(x)) for x in seconds), ratio(story)]
    return found


def _rows(plan: Plan, variant: VariantMemory, times: Mapping[str, list[str]]) -> Iterator[list[str]]:
    counts = Counter(launch.kernel for launch in variant.launches)
    moved = {launch.kernel: launch for launch in variant.launches}
    known = {k.name: k for k in plan.kernels}
    for name in sorted(counts, key=lambda n: -counts[n] * (moved[n].read + moved[n].written)):
        kernel, sizes = known[name], (moved[name].read, moved[name].written)
        yield [
            *(name, kernel.scope, show_schedule(kernel.step), str(counts[name])),
            *(f"{amount(size)}B" for size in sizes),
            *times.get(name, [""] * 4),
        ]
