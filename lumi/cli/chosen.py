"""`lumi explain --kernel`: how one kernel came about, its floor, what it beat, and what rules bought."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from lumi.cli import stories
from lumi.cli.derive import chain, how, ladder, seconds
from lumi.cli.output import aligned, counted, duration

if TYPE_CHECKING:
    from lumi.derivation import Derivation
    from lumi.plan.plan import Plan
    from lumi.search.explain import Rival

_NEAR = 1.001
"""How far above the time for its bytes a floor may be that is told to come from them."""


def told(plan: Plan, kernel: str, found: Derivation, rivals: Sequence[Rival]) -> Iterator[str]:
    """The lines for people."""
    from lumi.derivation import story_of

    region = story_of(plan, kernel)
    story = region["kernels"][region["names"].index(kernel)]
    name, launches, schedule = stories.known(plan)[kernel]
    where = region["region"] or "(all)"
    yield f"{name} of {where} for {plan.target}: {counted(int(launches), 'launch')} of {schedule}"
    yield f"  {stories.taken(story)}"
    machine: Any = plan.explanation["machine"]
    yield f"  {_floor(story, machine)}"
    beaten = [*_measured(story), *_modelled(story, rivals)]
    if beaten:
        yield "  it beat"
        yield from (f"    {line}" for line in aligned(beaten, left=(0, 3)))
    needs = f"{counted(len(found.needs), 'rule')}, which make {found.few} e-nodes of {found.enodes}"
    yield f"  its terms follow from those of the model by {needs}:"
    yield from (f"    {line}" for line in chain(found))
    best = f"{duration(seconds(found.best))} {how(found.best)}"
    yield f"  without a group of rules, beside {best} for all of {where}:"
    yield from (f"    {line}" for line in ladder(found))


def _floor(story: Mapping[str, Any], machine: Mapping[str, Any]) -> str:
    """The floor, whether its bytes or its operations make it, and how far from it the kernel is."""
    floor, least = float(story["floor"] or 0.0), story["traffic"] / machine["bandwidth"]
    on = f" on an {machine['name']}" if machine["name"] else ""
    why = f"{stories.amount(story['traffic'])}B at {stories.amount(machine['bandwidth'])}B/s"
    if floor > least * _NEAR:
        operations = f"{stories.amount(story['flops']).strip()} operations"
        why = f"{operations}; {why} take {duration(least)}"
    times = stories.ratio(story)
    more = f"; the kernel takes {times} × that" if times else ""
    return f"floor {duration(floor)}{on}: {why}{more}"


def _measured(story: Mapping[str, Any]) -> Iterator[list[str]]:
    """The ways to run it that were measured, fastest first."""
    rivals = [r for r in story["rivals"] if r["seconds"] is not None]
    for rival in sorted(rivals, key=lambda r: float(r["seconds"])):
        times = _times(rival["seconds"], stories.seconds(story))
        yield [stories.schedule(rival), duration(rival["seconds"]), times, "measured"]


def _modelled(story: Mapping[str, Any], rivals: Sequence[Rival]) -> Iterator[list[str]]:
    """Other templates, fastest first."""
    from lumi.llir.json import describe

    for rival in rivals:
        assert rival.seconds is not None, "by the model everything has a time"
        times, shown = _times(rival.seconds, story["modelled"]), cast("dict[str, Any]", describe(rival))
        yield [stories.schedule(shown), duration(rival.seconds), times, "by the model"]


def _times(seconds: float, than: float) -> str:
    return f"{seconds / than:,.2f} ×" if than else ""
