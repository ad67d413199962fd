"""What a graph asks of its dims: that slices, windows and updates stay inside the tensors they are of.

The ranges of the dims prove most of it.  The rest holds for some values only (`(slice x :stop n)` of eight
elements while n may be nine), and is for every call to check: a kernel may compute such elements from
others, so its accesses alone do not show that one of them does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.hlir.graph import Graph, Node, starts
from lumi.hlir.op import Affine, Update, View


@dataclass(frozen=True, slots=True)
class Reach:
    """The elements from `first` up to `stop` that `node` reads or writes along `axis` of its first input."""

    node: Node
    axis: int
    first: Extent
    stop: Extent

    def gaps(self) -> tuple[Extent, Extent]:
        """The room before and behind them; neither may be negative."""
        return self.first, self.node.inputs[0].shape[self.axis] - self.stop

    def __str__(self) -> str:
        """`a view reads 2 … (+ n 2) along axis 0 of f32 [8]`."""
        verb = "update-slice writes" if isinstance(self.node.op, Update) else "a view reads"
        return f"{verb} {self.first} … {self.stop} along axis {self.axis} of {self.node.inputs[0].type}"


def unproved(graph: Graph, ranges: Mapping[str, DimRange]) -> dict[Extent, Reach]:
    """The gaps that may be negative for dims inside `ranges`, and the first reach that has each."""
    found: dict[Extent, Reach] = {}
    for node in graph.nodes:
        for reach in reaches(node):
            for gap in reach.gaps():
                if gap not in found and dim.bounds(gap, ranges)[0] < 0:
                    found[gap] = reach
    return found


def impossible(node: Node, ranges: Mapping[str, DimRange]) -> Reach | None:
    """What a node reads or writes outside of its input, whatever values the dims have."""
    for reach in reaches(node):
        if any(dim.bounds(gap, ranges)[1] < 0 for gap in reach.gaps()):
            return reach
    return None


def reaches(node: Node) -> Iterator[Reach]:
    """What a slice, another view that must stay inside its input, or an update touches, axis by axis."""
    match node.op:
        case Update(_, _, True):
            pass
        case Update(axis, start):
            last = starts(node) - 1 if len(node.inputs) > 2 else start
            yield Reach(node, axis, start, last + node.inputs[1].shape[axis])
        case View(Affine(rows, None)):
            for axis, row in enumerate(rows):
                first = last = row.offset
                for output, coefficient in row.terms:
                    reach = (node.shape[output] - 1) * coefficient
                    first, last = (first, last + reach) if coefficient > 0 else (first + reach, last)
                yield Reach(node, axis, first, last + 1)
        case _:
            pass
