"""Where searches start: a greedy choice of nodes under weights, and a family of cuts.

A single change cannot reach an online loop, because several classes change together; each family of
weights prefers one coherent style of plan, each family of cuts one way to divide it into kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumi.egraph.graph import ENode
from lumi.search.dag import AXES, bits
from lumi.search.draft import Draft, InfeasibleError
from lumi.search.planner import Planner
from lumi.search.space import Genome, Space


@dataclass(frozen=True, slots=True)
class Weights:
    """What a node costs a greedy choice; every node not named here costs 1.

    `repass`: an accumulator whose body needs a finished reduction of its own axis, so a second pass.
    `masked` and `unmasked`: a loop that may skip tiles, and one that may not.  `chunked` and `whole`: a
    loop over chunks of an axis that may be split, and one over all of it.
    """

    repass: int
    masked: int
    chunked: int
    whole: int
    unmasked: int = 20
    accumulator: int = 3


@dataclass(frozen=True, slots=True)
class Seed:
    """A starting genome and the families it came from."""

    genome: Genome
    weights: Weights
    cut: str


def families(splits: bool) -> tuple[Weights, ...]:
    """Every combination of styles, the most promising first."""
    chunkings = ((90, 0), (0, 300)) if splits else ((0, 0),)
    return tuple(
        Weights(repass, masked, chunked, whole)
        for repass in (300, 0)
        for chunked, whole in chunkings
        for masked in (0, 60)
    )


class Greedy:
    """Greedy choices on one space: each class by the node whose set of classes weighs least."""

    def __init__(self, space: Space, splits: int) -> None:
        """`splits` are the axes (a mask) that may be split."""
        self.space, self.splits = space, splits
        self.place = {c: k for k, c in enumerate(space.alternatives)}

    def choose(self, weights: Weights) -> dict[int, int]:
        """The node of every class that can be computed without a cycle."""
        best: dict[int, int] = {}
        cost: dict[int, int] = {}
        sets: dict[int, int] = {}
        extra: dict[int, int] = {}
        loops, grew = 0, True
        while grew:
            grew = False
            for number, nodes in self.space.alternatives.items():
                bit = 1 << self.place[number]
                for k, node in enumerate(nodes):
                    used = self._union(node, sets)
                    if used is None or used & bit:
                        continue
                    own = self._weight(node, weights) - 1
                    total = own + 1 + used.bit_count() + sum(extra[b] for b in bits(used & loops))
                    if number in cost and total >= cost[number]:
                        continue
                    best[number], cost[number], sets[number] = k, total, used | bit
                    if own:
                        extra[bit], loops = own, loops | bit
                    grew = True
        return best

    def _union(self, node: ENode, sets: Mapping[int, int]) -> int | None:
        """The classes below a node; None while one of them has no choice yet."""
        used = 0
        for child in node.children:
            below = sets.get(child)
            if below is None:
                return None
            used |= below
        return used

    def _weight(self, node: ENode, weights: Weights) -> int:
        if node.op != "Acc":
            return 1
        space, (domain, step, *_) = self.space, node.children
        axes, kinds = space.domain_axes(domain), space.domain_kinds(domain)
        total = weights.accumulator + (weights.masked if "Mask" in kinds else weights.unmasked)
        if space.egraph.final.get(step, 0) & axes:
            total += weights.repass
        if axes & self.splits:
            total += weights.chunked if "Chunk" in kinds else weights.whole
        return total


Cut = Callable[[Space, Draft, int], bool]
"""Whether a family stores a class, given the draft without cuts."""


def _never(space: Space, draft: Draft, number: int) -> bool:
    return False


def _reductions(space: Space, draft: Draft, number: int) -> bool:
    return draft.node(number).op == "Fin"


def _contractions(space: Space, draft: Draft, number: int) -> bool:
    return _reductions(space, draft, number) and space.is_contraction(number)


def _operands(space: Space, draft: Draft, number: int) -> bool:
    """A contraction, or a factor of one that is computed from what lies in memory."""
    if _contractions(space, draft, number):
        return True
    return any(
        _multiplies(draft, user) and _is_summed(space, draft, user) for user in draft.users.get(number, ())
    )


def _multiplies(draft: Draft, number: int) -> bool:
    node = draft.node(number)
    return node.op == "Bin" and node.attrs[0] == "mul"


def _is_summed(space: Space, draft: Draft, product: int) -> bool:
    """Whether a product is summed up by a contraction."""
    sums = [a for a in draft.users.get(product, ()) if draft.node(a).op == "Acc"]
    totals = (f for a in sums if draft.node(a).children[1] == product for f in draft.users.get(a, ()))
    return any(_contractions(space, draft, f) for f in totals)


def _chunks(space: Space, draft: Draft, number: int) -> bool:
    if not _reductions(space, draft, number):
        return False
    accumulator = draft.node(draft.node(number).children[0])
    return "Chunk" in space.domain_kinds(accumulator.children[0])


def _everything(space: Space, draft: Draft, number: int) -> bool:
    return draft.node(number).op in ("Fin", "Un", "Bin", "Sel")


CUTS: Mapping[str, Cut] = {
    "reductions": _reductions,
    "contractions": _contractions,
    "operands": _operands,
    "none": _never,
    "chunks": _chunks,
    "everything": _everything,
}
"""Families of cuts by name.  A contraction reduced by a maximum of its own axis is left to an online loop."""


def seeds(planner: Planner, cuts: Sequence[str]) -> Iterator[Seed]:
    """Distinct starting genomes with the cuts of some families (names of `CUTS`), in order."""
    space, splits = planner.space, planner.settings.splits
    greedy, seen = Greedy(space, space.region.axes.mask([a for a, _ in splits])), set[tuple[object, ...]]()
    for weights in families(bool(splits)):
        choice = greedy.choose(weights)
        try:
            draft = planner.draft(Genome(choice, frozenset()))
        except InfeasibleError:
            continue
        storable = [c for c, v in draft.bodies.items() if _may_store(planner, c, v)]
        for name in cuts:
            chosen = frozenset(c for c in storable if CUTS[name](space, draft, c))
            cut = chosen | frozenset(space.readable)
            key = (tuple((c, choice[c]) for c in sorted(draft.bodies)), cut)
            if key not in seen:
                seen.add(key)
                yield Seed(Genome(choice, cut), weights, name)


def _may_store(planner: Planner, number: int, body: int) -> bool:
    space = planner.space
    if number in space.outputs or number not in space.terms or not space.is_storable(number):
        return False
    return not planner.dag.free[body] & ~AXES and planner.fits(number, body)
