"""From a graph to regions: views become axes, and equal parts of the graph become equal regions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lumi.dim import DimRange
from lumi.field.axis import LIMIT
from lumi.field.region import Note, Region
from lumi.field.text import show_body
from lumi.hlir.graph import Graph, Node
from lumi.lower.factor import Factors
from lumi.lower.order import order
from lumi.lower.part import Part
from lumi.lower.partition import Partition
from lumi.lower.reading import Reader
from lumi.lower.requests import Requests
from lumi.lower.space import AxisLimitError, Space
from lumi.lower.terms import Terms
from lumi.lower.varying import varying

SPARE = 3
"""Axes that a region leaves free, for the chunks that a search may split others into."""


def lower(graph: Graph) -> list[Region]:
    """The regions of a graph, in an order they can run in.

    Buffers are called by the name or key of inputs, params and states, and `%id` for a node's value:
    every output and every new value of a state that is not a leaf, and not written in its state's place
    (see `order.results`), is left in its `%id`.  Raises `LumiError` when one operation needs more axes
    than a region may have.
    """
    partition = Partition(graph, order(graph))
    done: dict[int, _Lowered] = {}
    while True:
        large = None
        for part, kind in partition.parts:
            try:
                if kind not in done:
                    done[kind] = _lower(part, graph.dims, LIMIT - SPARE)
            except AxisLimitError:
                large = part
                break
        if large is None:
            return [done[kind].region_of(part) for part, kind in partition.parts]
        if not partition.halve(large.number):
            done[kind] = _lower(large, graph.dims, LIMIT + 1)


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A region, the part it was made of, and what its buffers hold in terms of that part."""

    region: Region
    part: Part
    origins: tuple[tuple[Node, bool], ...]

    def region_of(self, part: Part) -> Region:
        """The same region for an equal part."""
        twin = {a.id: b for a, b in zip(self.part.nodes, part.nodes, strict=True)}
        names = {f"%{a.id}": f"%{b.id}" for a, b in zip(self.part.nodes, part.nodes, strict=True)}
        return replace(
            self.region,
            scope=part.scope,
            buffers=tuple(part.buffer(twin[node.id], copy) for node, copy in self.origins),
            notes=tuple(replace(n, node=names[n.node]) for n in self.region.notes),
        )


def _lower(part: Part, dims: Mapping[str, DimRange], limit: int) -> _Lowered:
    varies = varying(part.nodes, part.memory)
    factors = Factors(part.nodes, varies)
    space = Space(factors, dims, limit)
    requests = Requests(part, space, Reader(space, varies), varies)
    terms = Terms(requests)
    dead = [
        Note("reshape", f"%{n.id}", f"{_shape(n.inputs[0])} and {_shape(n)} share no axes")
        for n in factors.dead
    ]
    region = Region(
        scope=part.scope,
        axes=space.axes,
        accesses=terms.accesses,
        stores=terms.stores,
        buffers=tuple(part.buffer(*origin) for origin in terms.origins),
        produced=terms.produced,
        notes=(*dead, *requests.notes),
        key="",
    )
    return _Lowered(replace(region, key=show_body(region)), part, tuple(terms.origins))


def _shape(node: Node) -> str:
    return f"[{' '.join(map(str, node.shape))}]"
