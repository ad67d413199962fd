"""Which way calls of one kind take: the variant that runs them, and the dims for which nothing else is asked.

Every call could be looked at from the beginning.  A route keeps what was found for one, and the ranges within
which the same must be found for others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from lumi import dim
from lumi.dim import Dim, DimRange, Extent
from lumi.runtime.model import Model


@dataclass(frozen=True, slots=True)
class Route:
    """Calls whose inputs have certain shapes and that tell the same dims run as `variant`.

    `shown` are the dims that the shapes tell.  While the others lie within `ranges` and none of `gaps` is
    negative, the variant is the first that is valid and has all the room it needs.
    """

    variant: int
    shown: Mapping[str, int]
    ranges: tuple[tuple[str, int, int], ...]
    gaps: tuple[Dim, ...]

    def bind(self, told: Mapping[str, int]) -> dict[str, int] | None:
        """The value of every dim, of which the caller tells some; None where the route may not be taken."""
        for name, low, high in self.ranges:
            value = told[name]
            if type(value) is not int or not low <= value <= high:
                return None
        dims = {**self.shown, **told}
        for gap in self.gaps:
            if dim.value(gap, dims) < 0:
                return None
        return dims


def route(model: Model, variant: int, dims: Mapping[str, int], told: Collection[str]) -> Route | None:
    """The route of a call with these dims, which the variant runs; the caller told those in `told`.

    None where what the shapes of inputs show depends on what is told.  Dims that shapes of states depend on
    keep their values.
    """
    plan, variants = model.plan, model.plan.variants
    if not {name for s in plan.inputs for name in s.dims()}.isdisjoint(told):
        return None
    shown = {name: value for name, value in dims.items() if name not in told}
    held = {name for s in plan.states for name in s.dims()}
    ranges = {name: variants[variant].dims[name] for name in told}
    for other in variants[:variant]:
        _keep_out(ranges, other.dims, dims)
    for name in ranges.keys() & held:
        ranges[name] = DimRange(name, dims[name], dims[name], ())
    gaps = tuple(_unproved(ranges, [dim.bind(gap, shown) for gap in model.gaps(variant)]))
    return Route(variant, shown, tuple((r.name, r.low, r.high) for r in ranges.values()), gaps)


def _keep_out(ranges: dict[str, DimRange], box: Mapping[str, DimRange], dims: Mapping[str, int]) -> None:
    """Narrow ranges so that they leave out a box in which these dims do not lie."""
    outside = [n for n, r in box.items() if not r.low <= dims[n] <= r.high]
    if any(name not in ranges for name in outside):
        return
    name = outside[0]
    r, low, high = ranges[name], box[name].low, box[name].high
    ends = (max(r.low, high + 1), r.high) if dims[name] > high else (r.low, min(r.high, low - 1))
    ranges[name] = DimRange(name, *ends, ())


def _unproved(ranges: dict[str, DimRange], gaps: Collection[Extent]) -> Iterator[Dim]:
    """Narrow ranges to where gaps of one dim are not negative; those of several that may be, remain."""
    several = []
    for gap in gaps:
        if isinstance(gap, Dim) and not _narrow(ranges, gap):
            several.append(gap)
    yield from (gap for gap in dict.fromkeys(several) if dim.bounds(gap, ranges)[0] < 0)


def _narrow(ranges: dict[str, DimRange], gap: Dim) -> bool:
    """Narrow the range of the one dim that a gap is linear in; False where there is no such dim."""
    (monomial, factor), *rest = gap.terms
    if len(monomial) != 1 or not isinstance(monomial[0], str) or any(m for m, _ in rest):
        return False
    r, constant = ranges[monomial[0]], sum(c for _, c in rest)
    low, high = (r.low, min(r.high, constant // -factor)) if factor < 0 else (-(constant // factor), r.high)
    ranges[r.name] = DimRange(r.name, max(r.low, low), high, ())
    return True
