"""Atoms: the indivisible factors of dimensions, so that `[b s (h d)]` and `[b h s d]` name the same axes.

Dimensions that run together are joined: of elementwise operands, of kept axes, of identity rows of views.
A reshape links groups of dimensions with equal products: both sides must be cut at the same places, so
cuts are exchanged until nothing changes.  `[b s 12]` seen as (2 6) and as (6 2) becomes the atoms 2 3 2.
A reshape without a common factorisation, or one that would cut a dimension at a symbolic size, is left
out; who reads it finds the element by division, or in memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from lumi import dim
from lumi.dim import Extent
from lumi.hlir.graph import Node
from lumi.hlir.op import (
    Affine,
    Binary,
    Bitcast,
    Cast,
    Gather,
    Reduce,
    Reshape,
    Row,
    Scan,
    Scatter,
    Select,
    Unary,
    Update,
    View,
)
from lumi.lower.joined import Joined
from lumi.lower.reshape import groups

Place: TypeAlias = "tuple[int, int]"
"""A dimension: a node's id and the dimension's number."""

Atom: TypeAlias = "tuple[Place, int]"
"""A factor of joined dimensions, by its number from the major end."""


@dataclass(frozen=True, slots=True)
class Link:
    """Groups of dimensions with equal products, on the two sides of the reshape `node`."""

    node: Node
    before: tuple[Place, ...]
    after: tuple[Place, ...]


class Factors:
    """The atoms of every dimension of `nodes`; `dead` are the reshapes left out."""

    def __init__(self, nodes: Sequence[Node], varies: Mapping[int, frozenset[int]]) -> None:
        self.dead: list[Node] = []
        self._varies = varies
        self._joined: Joined[Place] = Joined()
        self._sizes = {(n.id, k): z for n in nodes for k, z in enumerate(n.shape)}
        self._links: list[Link] = []
        for node in nodes:
            for below in (i for i in node.inputs if i.id in varies):
                for k, o in _aligned(node, below):
                    self._join(below, k, node, o)
            if isinstance(node.op, View) and isinstance(node.op.map, Reshape):
                self._link(node)
        self._cuts: dict[Place, set[int]] = {}
        while (failed := self._exchange()) is not None:
            self._links.remove(failed)
            self.dead.append(failed.node)
        self._digits = self._cut()
        self._atoms = self._unite()

    def of(self, node: Node, k: int) -> list[tuple[Atom, Extent]]:
        """The atoms of a dimension and their sizes, major first; a dimension of 1 has none."""
        if node.shape[k] == 1:
            return []
        digits = self._digits[self._joined.find((node.id, k))]
        return [(self._atoms.find(atom), size) for atom, size in digits]

    # -- what belongs together

    def _join(self, below: Node, k: int, node: Node, o: int) -> None:
        """Join dimension k of an input with dimension o of a node, unless either is a broadcast there.

        A broadcast says nothing about the axis of the other side: joined through a hash-consed expand,
        the columns of two weights would become one axis, and a product of the two no contraction.
        """
        same = below.shape[k] == node.shape[o]
        if same and k in self._varies[below.id] and o in self._varies[node.id]:
            self._joined.join((below.id, k), (node.id, o))

    def _link(self, node: Node) -> None:
        below = node.inputs[0]
        for group in groups(below.shape, node.shape):
            if not group.keeps:
                before = tuple((below.id, k) for k in group.before)
                self._links.append(Link(node, before, tuple((node.id, k) for k in group.after)))

    # -- where dimensions are cut

    def _exchange(self) -> Link | None:
        """Exchange cuts across links until nothing changes; the link that cannot be, if there is one.

        A cut is the product of the sizes to its right inside a dimension.
        """
        self._cuts = defaultdict(set)
        changed = True
        while changed:
            changed = False
            for link in self._links:
                flat = {*self._flat_cuts(link.before), *self._flat_cuts(link.after)}
                if _chain(flat) is None:
                    return link
                for side in (link.before, link.after):
                    found = self._new_cuts(side, flat)
                    if found is None:
                        return link
                    changed |= bool(found)
        return None

    def _flat_cuts(self, side: Sequence[Place]) -> Iterator[Extent]:
        """The cuts of a group of dimensions as products of everything to their right in the group."""
        stride: Extent = 1
        for place in reversed(side):
            root = self._joined.find(place)
            yield stride
            yield from (stride * cut for cut in self._cuts[root])
            stride = stride * self._sizes[root]
        yield stride

    def _new_cuts(self, side: Sequence[Place], flat: Iterable[Extent]) -> int | None:
        """Give the dimensions of a group the cuts they lack: how many; None where one is impossible."""
        stride: Extent = 1
        made = 0
        for place in reversed(side):
            root = self._joined.find(place)
            size, cuts = self._sizes[root], self._cuts[root]
            for cut in (dim.divide(f, stride) for f in flat):
                if cut is None or cut in (1, size) or cut in cuts or dim.divide(size, cut) is None:
                    continue
                if not isinstance(cut, int):
                    return None
                cuts.add(cut)
                made += 1
            if _chain({1, size, *cuts}) is None:
                return None
            stride = stride * size
        return made

    def _cut(self) -> dict[Place, list[tuple[Atom, Extent]]]:
        """The factors of each set of joined dimensions, major first."""
        found: dict[Place, list[tuple[Atom, Extent]]] = {}
        for place in self._sizes:
            root = self._joined.find(place)
            if root not in found:
                ends = _chain({1, self._sizes[root], *self._cuts[root]}) or []
                sizes = [_ratio(high, low) for low, high in pairwise(ends)][::-1]
                found[root] = [((root, k), size) for k, size in enumerate(sizes)]
        return found

    def _unite(self) -> Joined[Atom]:
        """Join the factors that face each other across links."""
        atoms: Joined[Atom] = Joined()
        for link in self._links:
            sides = [
                [digit for place in side for digit in self._digits[self._joined.find(place)]]
                for side in (link.before, link.after)
            ]
            for (a, size), (b, other) in zip(*sides, strict=True):
                assert size == other, link
                atoms.join(a, b)
        return atoms


def _aligned(node: Node, below: Node) -> Iterator[tuple[int, int]]:
    """The dimensions of an input of a node that run with dimensions of the node: pairs (input's, node's)."""
    rank = below.type.rank
    match node.op:
        case Unary() | Binary() | Select() | Cast() | Scan():
            yield from ((k, k) for k in range(rank))
        case Bitcast():
            yield from ((k, k) for k in range(min(rank, node.type.rank)))
        case Reduce(_, axes):
            yield from ((k, o) for o, k in enumerate(k for k in range(rank) if k not in axes))
        case Gather(axis):
            table, index = node.inputs
            if below is table:
                moved = index.type.rank - 1
                yield from ((k, k if k < axis else k + moved) for k in range(rank) if k != axis)
            if below is index:
                yield from ((k, axis + k) for k in range(rank))
        case Scatter(axis):
            base, _, updates = node.inputs
            if below is base:
                yield from ((k, k) for k in range(rank))
            elif below is updates:
                yield from ((k, k) for k in range(rank) if k != axis)
        case Update(axis):
            base, part, *starts = node.inputs
            if below is base or below in starts:
                yield from ((k, k) for k in range(rank))
            if below is part:
                yield from ((k, k) for k in range(rank) if k != axis)
        case View(Affine(rows)):
            yield from ((k, o) for k, row in enumerate(rows) if (o := _identity(row)) is not None)
        case View(Reshape()):
            for group in groups(below.shape, node.shape):
                if group.keeps:
                    yield group.before[0], group.after[0]
        case _:
            pass


def _identity(row: Row) -> int | None:
    """The output coordinate that a row is, if it is exactly one."""
    if row.offset == 0 and len(row.terms) == 1 and row.terms[0][1] == 1:
        return row.terms[0][0]
    return None


def _chain(sizes: Iterable[Extent]) -> list[Extent] | None:
    """Sizes in the order in which each divides the next; None when there is no such order."""
    found = sorted(sizes, key=_weight)
    fits = all(dim.divide(b, a) is not None for a, b in pairwise(found))
    return found if fits else None


def _weight(size: Extent) -> tuple[int, int]:
    """Grows from a size to its proper multiples, of which 0 is one."""
    if isinstance(size, int):
        return (0, size) if size else (1 << 62, 0)
    return max(len(m) for m, _ in size.terms), sum(abs(c) for _, c in size.terms)


def _ratio(high: Extent, low: Extent) -> Extent:
    quotient = dim.divide(high, low)
    assert quotient is not None
    return quotient
