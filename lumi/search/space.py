"""The space of plans of a region: which nodes a class can be computed by, and which classes can be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lumi.dtype import F32, DType
from lumi.egraph.graph import EGraph, ENode
from lumi.field.access import Access
from lumi.field.region import Region

REDUCTION = "Red"
"""The one node that no kernel executes as it stands: `Fin` of an accumulator is its executable form."""

NO_TERMS = frozenset({"Acc", "Full", "Chunk", "Mask"})

COMPUTE = frozenset({REDUCTION, "Un", "Bin", "Sel"})


@dataclass(frozen=True, slots=True)
class Genome:
    """A choice of node (its index among the alternatives) per class, and the classes stored in between.

    Classes absent from `choice` are computed by their first alternative.
    """

    choice: Mapping[int, int]
    cuts: frozenset[int]


@dataclass(slots=True)
class Space:
    """A region and its e-graph, with the facts that plans are made from.

    `alternatives`: the executable nodes of each class.  `varying`: classes that depend on data.
    `terms`: classes that are terms, not accumulators or domains.  `outputs`: where each root is stored.
    `readable`: the access under which other kernels may read a root.  `producers`: the class that is
    stored to a buffer which the region reads again.  `earlier`: the roots that must be stored before a
    root, because it overwrites part of the same buffer.
    """

    region: Region
    egraph: EGraph
    alternatives: dict[int, tuple[ENode, ...]] = field(init=False)
    varying: frozenset[int] = field(init=False)
    terms: frozenset[int] = field(init=False)
    outputs: dict[int, tuple[Access, ...]] = field(init=False)
    readable: dict[int, Access] = field(init=False)
    producers: dict[str, int] = field(init=False)
    earlier: dict[int, frozenset[int]] = field(init=False)
    _spans: dict[int, int] = field(init=False, default_factory=dict)
    _names: dict[int, tuple[str, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        classes, roots = self.egraph.classes, self.egraph.roots
        self.alternatives = {c: tuple(n for n in ns if n.op != REDUCTION) for c, ns in classes.items()}
        self.varying = _varying(self.alternatives)
        self.terms = frozenset(c for c, ns in classes.items() if ns[0].op not in NO_TERMS)
        self.outputs = {}
        for root, store in zip(roots, self.region.stores, strict=True):
            self.outputs[root] = (*self.outputs.get(root, ()), store.access)
        for root, accesses in self.outputs.items():
            for access in accesses:
                self._spans[root] = self._spans.get(root, 0) | self.region.axes.mask(access.axes())
        self.earlier = self._overwritten()
        self.producers = {b: roots[k] for b, k in self.region.produced.items()}
        self.readable = {}
        for root, accesses in self.outputs.items():
            for access in accesses:
                if self._holds(root, access):
                    self.readable.setdefault(root, access)

    def spanned(self, number: int) -> int:
        """The axes over which a class is written (a mask); a value that is broadcast lacks some of them."""
        return self._spans.get(number, 0)

    def _overwritten(self) -> dict[int, frozenset[int]]:
        found: dict[int, frozenset[int]] = {}
        writers: dict[str, set[int]] = {}
        for root, store in zip(self.egraph.roots, self.region.stores, strict=True):
            before = writers.setdefault(store.access.buffer, set())
            found[root] = found.get(root, frozenset()) | (before - {root})
            before.add(root)
        return found

    def _holds(self, root: int, access: Access) -> bool:
        """Whether reading the access gives back the root: no later store, no rounding, no axis too many."""
        writers = sum(s.access.buffer == access.buffer for s in self.region.stores)
        exact = access.dtype in (self.dtype(root), self.storage(root))
        broadcast = self.region.axes.mask(access.axes()) & ~self.egraph.free.get(root, 0)
        decided = access.data() or access.looks()
        return writers == 1 and exact and not decided and not broadcast

    def names(self, mask: int) -> tuple[str, ...]:
        """The axes of a mask, in memory order."""
        known = self._names.get(mask)
        if known is None:
            known = self._names[mask] = self.region.axes.names(mask)
        return known

    def dtype(self, number: int) -> DType:
        """The element type of a class; f32 when it is made of constants alone."""
        return self.egraph.dtype.get(number, F32)

    def storage(self, number: int) -> DType:
        """The type a class is stored in without loss."""
        return self.egraph.storage.get(number, self.dtype(number))

    def is_narrow(self, number: int) -> bool:
        """Whether every value of the class is one of a narrow float, whatever type it has."""
        widened = (
            n.op == "Un" and str(n.attrs[0]).startswith("cast.") and self.dtype(n.children[0]).is_narrow
            for n in self.alternatives.get(number, ())
        )
        return self.storage(number).is_narrow or any(widened)

    def is_storable(self, number: int) -> bool:
        """Whether storing the class may save work: it depends on data and is no mere read."""
        return number in self.varying and any(n.op in COMPUTE for n in self.egraph.classes[number])

    def is_contraction(self, number: int) -> bool:
        """Whether the class is a sum of products of two data, not itself reduced by a maximum."""
        maxima = self._maxima()
        return (
            any(
                n.op == REDUCTION and n.attrs[0] == "sum" and self._multiplies(n.children[1])
                for n in self.egraph.classes[number]
            )
            and not self.egraph.free.get(number, 0) & maxima
        )

    def _multiplies(self, body: int) -> bool:
        return any(
            n.op == "Bin"
            and n.attrs[0] == "mul"
            and n.children[0] != n.children[1]
            and all(c in self.varying for c in n.children)
            for n in self.egraph.classes[body]
        )

    def _maxima(self) -> int:
        """The axes along which some maximum is taken."""
        mask = 0
        for nodes in self.egraph.classes.values():
            for node in nodes:
                if node.op == REDUCTION and node.attrs[0] == "max":
                    mask |= self.domain_axes(node.children[0])
        return mask

    def domain_axes(self, number: int) -> int:
        """The axes of a domain class."""
        node = self.egraph.classes[number][0]
        return self.domain_axes(node.children[0]) if node.op == "Mask" else int(node.attrs[0])

    def domain_kinds(self, number: int) -> tuple[str, ...]:
        """What a domain class is made of, outermost first: `Mask` …, then `Full` or `Chunk`."""
        node = self.egraph.classes[number][0]
        return (node.op, *(self.domain_kinds(node.children[0]) if node.op == "Mask" else ()))


def _varying(alternatives: Mapping[int, tuple[ENode, ...]]) -> frozenset[int]:
    """Classes that read a buffer, directly or below; dims and positions do not count."""
    found: set[int] = set()
    grew = True
    while grew:
        grew = False
        for number, nodes in alternatives.items():
            if number in found:
                continue
            if any(_reads(n) or any(c in found for c in n.children) for n in nodes):
                found.add(number)
                grew = True
    return frozenset(found)


def _reads(node: ENode) -> bool:
    return node.op in ("In", "Gat") and not str(node.attrs[0]).startswith("$")
