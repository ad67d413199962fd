"""What the kernels of a region come from, kept beside a plan so that it can be asked how they came about."""

from __future__ import annotations

from dataclasses import dataclass

from lumi.egraph.goal import Goal
from lumi.egraph.graph import ENode
from lumi.errors import Source
from lumi.field import text
from lumi.field.region import Region
from lumi.search.search import Found
from lumi.search.settings import Settings


@dataclass(frozen=True, slots=True)
class Origin:
    """A region as text, what its search was told, and the terms that it chose, as `Goal` has them.

    `stored[k]` are the classes of those terms that the k-th kernel stores.
    """

    text: str
    settings: Settings
    nodes: tuple[tuple[int, ENode], ...]
    roots: tuple[int, ...]
    cuts: tuple[int, ...]
    stored: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(region: Region, settings: Settings, found: Found) -> Origin:
        """That of the kernels that a search found."""
        goal = found.goal
        nodes, cuts = tuple(sorted(goal.nodes.items())), tuple(sorted(goal.cuts))
        return Origin(text.show(region), settings, nodes, goal.roots, cuts, found.stored)

    @property
    def region(self) -> Region:
        """The region.  Raises `LumiError` where the text is damaged."""
        return text.parse(Source("region", self.text))

    @property
    def goal(self) -> Goal:
        """The terms that were chosen."""
        return Goal(dict(self.nodes), self.roots, frozenset(self.cuts))
