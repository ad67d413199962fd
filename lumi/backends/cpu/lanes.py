"""Choose the axis that becomes the lanes of vectors: the one that makes a value cheapest.

The estimate counts instructions an element: an eighth for vector arithmetic and loads of neighbours,
more for elements gathered from afar.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lumi.backends.cpu.ctype import LANES
from lumi.field.access import Access
from lumi.llir import spell
from lumi.llir.arrange import work
from lumi.llir.kernel import Load, Map, Operand
from lumi.llir.program import Fold, Program, Slot, arguments, axes_of

SOME = 64
"""Positions assumed of an axis whose extent is known only at run time."""

GATHERED = 1.5
"""Instructions to bring one element from afar into a vector."""

SCATTERED = 4.0
"""The same where its index is clamped or comes from data."""

CLAMPED = 0.25
"""The same of neighbours that are loaded at once after a test that they lie in their row."""


@dataclass(slots=True)
class LaneCosts:
    """What values of a program cost for each choice of lanes."""

    program: Program
    known: dict[tuple[str, str | None], float] = field(default_factory=dict)

    def best(self, candidates: Iterable[str], operands: Iterable[Operand]) -> str | None:
        """The lane axis under which the operands together are cheapest, or None for none."""
        named = [o for o in operands if isinstance(o, str)]
        chosen, least = None, sum(self.cost(v, None) for v in named)
        for axis in candidates:
            if self.length(axis) < LANES:
                continue
            cost = sum(self.cost(v, axis) for v in named)
            if cost < least:
                chosen, least = axis, cost
        return chosen

    def length(self, axis: str) -> int:
        """About how many positions an axis has in one loop over it."""
        extent = self.program.kernel.axes[axis]
        whole = extent if isinstance(extent, int) else SOME
        tiled = axis in self.program.kernel.grid
        return min(whole, self.program.tiles.get(axis, 1)) if tiled else whole

    def cost(self, var: str, lane: str | None) -> float:
        """Instructions for each element of a value."""
        key = (var, lane)
        if key not in self.known:
            self.known[key] = 0.0
            self.known[key] = self._cost(var, lane)
        return self.known[key]

    def fold_lane(self, definition: Fold) -> str | None:
        """The axis of a fold along which eight partial results are best kept."""
        return self.best(definition.over, definition.terms)

    def _cost(self, var: str, lane: str | None) -> float:
        definition = self.program.definitions[var]
        axes = axes_of(definition)
        if lane is not None and lane not in axes:
            return 0.0 if not isinstance(definition, Fold) else self._cost(var, None) / LANES
        share = 1.0 if lane is None else 1 / LANES
        if var in self.program.arrays or isinstance(definition, Slot):
            return share if lane is None or axes[-1] == lane else GATHERED
        return self.defined_cost(var, lane)

    def defined_cost(self, var: str, lane: str | None) -> float:
        """Instructions for each element of a value's definition, even if it has an array."""
        definition = self.program.definitions[var]
        share = 1.0 if lane is None else 1 / LANES
        inner = sum(self.cost(a, lane) for a in arguments(definition))
        match definition:
            case Load(_, access, _, _, _):
                return inner + access_cost(access, lane)
            case Map(_, op, _, _, _):
                return inner + work(op) * share
            case Fold():
                return self._fold_cost(definition, lane)
            case _:
                return share

    def _fold_cost(self, definition: Fold, lane: str | None) -> float:
        trips = 1
        for axis in definition.over:
            trips *= self.length(axis)
        own = self.fold_lane(definition) if lane is None else None
        inside = lane if own is None else own
        share = 1.0 if inside is None else 1 / LANES
        terms = [t for t in definition.terms if isinstance(t, str)]
        return trips * (share + sum(self.cost(t, inside) for t in terms))


def access_cost(access: Access, lane: str | None) -> float:
    """Instructions to move one element between memory and a register."""
    if lane is None:
        return 1.0
    step = spell.step(access, lane)
    if step is not None:
        return 1 / LANES if step in (0, 1) else GATHERED
    return CLAMPED if access.clamp and spell.is_row(access, lane) else SCATTERED
