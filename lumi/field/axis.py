"""Named axes of a region, and the masks that stand for sets of them in the e-graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from lumi.dim import Extent
from lumi.errors import LumiError

LIMIT = 31
"""Axes a region may have: axis k is bit k of an i64 mask, and bit k + LIMIT is its loop time."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its name, its extent (symbolic when bound at run time), its bit in a mask."""

    name: str
    extent: Extent
    bit: int

    @property
    def is_symbolic(self) -> bool:
        """Whether the extent is known only at run time; such an axis is never held whole in a tile."""
        return not isinstance(self.extent, int)


@dataclass(slots=True)
class AxisTable:
    """The axes of one region in creation order, which is their memory order: outermost first."""

    axes: dict[str, Axis] = field(default_factory=dict)

    def add(self, name: str, extent: Extent) -> Axis:
        """A new axis.  Raises `LumiError` when the region has too many."""
        if len(self.axes) >= LIMIT:
            raise LumiError(
                "limit error", f"a region has more than {LIMIT} axes", hint="split it into scopes"
            )
        made = Axis(name, extent, 1 << len(self.axes))
        self.axes[name] = made
        return made

    def __getitem__(self, name: str) -> Axis:
        return self.axes[name]

    def __contains__(self, name: str) -> bool:
        return name in self.axes

    def __iter__(self) -> Iterator[Axis]:
        return iter(self.axes.values())

    def __len__(self) -> int:
        return len(self.axes)

    def mask(self, names: Iterable[str]) -> int:
        """The set of axes as a mask."""
        total = 0
        for name in names:
            total |= self.axes[name].bit
        return total

    def names(self, mask: int) -> tuple[str, ...]:
        """The axes of a mask, in memory order; loop-time bits are ignored."""
        return tuple(a.name for a in self if a.bit & mask)
