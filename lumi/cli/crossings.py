"""A plan's variants as `lumi explain` tells of them: boxes, what calls take, what crossing them costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lumi.cli.output import aligned, duration
from lumi.cli.stories import amount

if TYPE_CHECKING:
    from lumi.plan.plan import Plan


def told(plan: Plan) -> Iterator[str]:
    """The lines for people; none where only one variant was ever thought of."""
    from lumi.plan.box import spelled

    buckets: Any = plan.explanation["variants"]
    if len(buckets) < 2:
        return
    arenas = {spelled(v.dims.values()): v.arena for v in plan.variants}
    yield ""
    one = f"one arena of {amount(max(arenas.values()))}B serves all"
    yield f"variants: a call runs the first that is made for it; {one}"
    rows = [["for", "arena", "at", "takes", "in the next one"]]
    for bucket in (b for b in buckets if not b["merged"]):
        rows += _rows(bucket, f"{amount(arenas[bucket['box']])}B")
    yield from (f"  {line}".rstrip() for line in aligned(rows, left=(0, 2)))
    for bucket in (b for b in buckets if b["merged"]):
        yield f"  no variant for {bucket['box']}: {_why(bucket)}"


def _rows(bucket: Mapping[str, Any], arena: str) -> Iterator[list[str]]:
    """A line for every call whose time is known, the box and its arena before the first."""
    for number, crossing in enumerate(bucket["crossings"]):
        first = [bucket["box"], arena] if number == 0 else ["", ""]
        beyond = _share(crossing) if bucket["beyond"] else ""
        yield [*first, _where(crossing), _time(crossing, "seconds"), beyond]


def _where(crossing: Mapping[str, Any]) -> str:
    """The dims of a call: those that kernels were searched at, or where the box ends."""
    dims = ", ".join(f"{name} {value}" for name, value in crossing["dims"].items())
    return dims if crossing["is_hint"] else f"{dims} (its end)"


def _time(crossing: Mapping[str, Any], name: str) -> str:
    return duration(crossing[name]) + ("" if crossing["measured"] else " by the model")


def _share(crossing: Mapping[str, Any]) -> str:
    """What the next variant would take, and how much more that is."""
    more = f" ({(crossing['beyond'] / crossing['seconds'] - 1) * 100:+.0f} %)" if crossing["seconds"] else ""
    return f"{duration(crossing['beyond'])}{more}"


def _why(bucket: Mapping[str, Any]) -> str:
    """What made a variant not worth its kernels."""
    hints = [c for c in bucket["crossings"] if c["is_hint"]]
    times = "; ".join(f"at {_where(c)} {_time(c, 'seconds')}, in the next one {_share(c)}" for c in hints)
    return f"it would gain too little over the one for {bucket['beyond']}: {times}"
