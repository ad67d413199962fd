"""Where searches start: a greedy choice of nodes under weights, and a family of cuts.

A single change cannot reach an online loop, because several classes change together; each family of
weights prefers one coherent style of plan, each family of cuts one way to divide it into kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumi.egraph.graph import ENode
from lumi.search.dag import AXES, bits
from lumi.search.draft import ELEMENTWISE, Draft, InfeasibleError
from lumi.search.planner import Planner
from lumi.search.space import Genome, Space


@dataclass(frozen=True, slots=True)
class Weights:
    """What a node costs a greedy choice; every node not named here costs 1.

    `repass`: an accumulator whose body needs a finished reduction of its own axis, so a second pass.
    `wide`: a sum of products of other values than halves, which fewer devices are fast at.
    `masked` and `unmasked`: a loop that may skip tiles, and one that may not.  `chunked` and `whole`: a
    loop over chunks of an axis that may be split, and one over all of it.  `floats`: an axis of a sum of
    floats.  `joint`: a reduction over several axes whose body needs one over some of them, of rows say, that
    is finished: rows are then read again, where each could have been reduced at once to a single number.
    """

    repass: int
    masked: int
    chunked: int
    whole: int
    unmasked: int = 20
    accumulator: int = 3
    wide: int = 0
    floats: int = 0
    joint: int = 0

    def __str__(self) -> str:
        """The style that they prefer: `(one pass, skipping, split)`."""
        passes = "one pass" if self.repass else "passes"
        masks = "skipping" if self.masked < self.unmasked else "full loops"
        chunks = "split" if self.chunked < self.whole else "unsplit" if self.whole < self.chunked else ""
        kind = "halves" if self.wide else "integers" if self.floats else "rows" if self.joint else ""
        return f"({', '.join(filter(None, [passes, masks, chunks, kind]))})"


@dataclass(frozen=True, slots=True)
class Seed:
    """A starting genome and the families it came from."""

    genome: Genome
    weights: Weights
    cut: str


def families(splits: bool, rounds: bool) -> tuple[Weights, ...]:
    """Every combination of styles, the most promising first; integers where floats may be rounded to them."""
    chunkings = ((90, 0), (0, 300)) if splits else ((0, 0),)
    usual = (
        Weights(repass, masked, chunked, whole)
        for repass in (300, 0)
        for chunked, whole in chunkings
        for masked in (0, 60)
    )
    rows = (Weights(300, 0, chunked, whole, joint=1000) for chunked, whole in chunkings)
    halves = (Weights(300, 0, chunked, whole, wide=1000) for chunked, whole in chunkings)
    integers = (Weights(300, 0, chunked, whole, floats=1000) for chunked, whole in chunkings if rounds)
    return (*integers, *usual, *rows, *halves)


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
        finished = space.egraph.final.get(step, 0) & axes
        if finished:
            total += weights.repass if finished == axes else weights.repass + weights.joint
        if node.attrs[0] == "sum" and self._is_wide(step):
            total += weights.wide
        if node.attrs[0] == "sum" and weights.floats and space.egraph.dtype[step].is_float:
            total += weights.floats * axes.bit_count()
        if axes & self.splits:
            total += weights.chunked if "Chunk" in kinds else weights.whole
        return total

    def _is_wide(self, body: int) -> bool:
        """Whether a body multiplies, and in no form two halves."""
        products = [n for n in self.space.alternatives[body] if n.op == "Bin" and n.attrs[0] == "mul"]
        halves = any(all(self.space.is_narrow(c) for c in n.children) for n in products)
        return bool(products) and not halves


Cut = Callable[[Space, Draft], set[int]]
"""The classes of a draft without cuts that a family stores, as far as they can be stored."""


def _nothing(space: Space, draft: Draft) -> set[int]:
    return set()


def _reductions(space: Space, draft: Draft) -> set[int]:
    return {c for c in draft.bodies if draft.node(c).op == "Fin"}


def _contractions(space: Space, draft: Draft) -> set[int]:
    return {c for c in _reductions(space, draft) if space.is_contraction(c)}


def _operands(space: Space, draft: Draft) -> set[int]:
    """Contractions, and the factors of them."""
    found = _contractions(space, draft)
    bodies = [draft.node(_accumulator(draft, c).children[1]) for c in found]
    return found | {c for b in bodies if b.op == "Bin" and b.attrs[0] == "mul" for c in b.children}


def _factors(space: Space, draft: Draft) -> set[int]:
    """Contractions, and the factors of them that can be held as halves."""
    found = _contractions(space, draft)
    return found | {c for c in _operands(space, draft) - found if space.storage(c).is_narrow}


def _rounded(space: Space, draft: Draft) -> set[int]:
    """Floats that are rounded to bytes, what has no more axes than they, and results of whole sums."""
    found = {c for c in draft.bodies if is_rounding(space, draft.node(c))}
    if not found:
        return found
    free, reductions = space.egraph.free, _reductions(space, draft)
    parts = {c for r in reductions for c in _parts(space, draft, r)}
    beside = {c for c in reductions if any(not free[c] & ~free[r] for r in found)}
    return found | beside | (reductions - parts)


def _parts(space: Space, draft: Draft, number: int) -> Iterator[int]:
    """The reductions that a reduction is made from, one for each point of some axis of its own."""
    domain, step, *_ = _accumulator(draft, number).children
    axes, todo, seen = space.domain_axes(domain), [step], set[int]()
    while todo:
        below = todo.pop()
        if below in seen:
            continue
        seen.add(below)
        node = draft.node(below)
        if node.op == "Fin":
            if space.egraph.free[below] & axes:
                yield below
        elif node.op in ELEMENTWISE:
            todo.extend(node.children)


def is_rounding(space: Space, node: ENode) -> bool:
    """Whether a node rounds a float to a byte."""
    return node.op == "Un" and node.attrs[0] == "cast.i8" and space.egraph.dtype[node.children[0]].is_float


def _chunks(space: Space, draft: Draft) -> set[int]:
    def is_chunked(number: int) -> bool:
        return "Chunk" in space.domain_kinds(_accumulator(draft, number).children[0])

    return {c for c in _reductions(space, draft) if is_chunked(c)}


def _everything(space: Space, draft: Draft) -> set[int]:
    return {c for c in draft.bodies if draft.node(c).op in ("Fin", *ELEMENTWISE)}


def _accumulator(draft: Draft, number: int) -> ENode:
    """The accumulator that a reduction is the end of."""
    return draft.node(draft.node(number).children[0])


CUT_APART = "everything"
"""The family that stores all it can: many kernels, to be merged by a search that goes on from there."""

CUTS: Mapping[str, Cut] = {
    "reductions": _reductions,
    "contractions": _contractions,
    "operands": _operands,
    "factors": _factors,
    "none": _nothing,
    "chunks": _chunks,
    "rounded": _rounded,
    CUT_APART: _everything,
}
"""Families of cuts by name.  A contraction reduced by a maximum of its own axis is left to an online loop."""


def seeds(planner: Planner, cuts: Sequence[str]) -> Iterator[Seed]:
    """Distinct starting genomes with the cuts of some families (names of `CUTS`), in order."""
    space, splits = planner.space, planner.settings.splits
    greedy, seen = Greedy(space, space.region.axes.mask([a for a, _ in splits])), set[tuple[object, ...]]()
    rounds = any(is_rounding(space, n) for nodes in space.alternatives.values() for n in nodes)
    for weights in families(bool(splits), rounds):
        choice = greedy.choose(weights)
        try:
            draft = planner.draft(Genome(choice, frozenset()))
        except InfeasibleError:
            continue
        storable = [c for c, v in draft.bodies.items() if _may_store(planner, c, v)]
        worth = {c for c in storable if planner.is_worth(draft, c)}
        for name in cuts:
            cut = frozenset(CUTS[name](space, draft) & worth) | frozenset(space.readable)
            key = (tuple((c, choice[c]) for c in sorted(draft.bodies)), cut)
            if key not in seen:
                seen.add(key)
                yield Seed(Genome(choice, cut), weights, name)


def _may_store(planner: Planner, number: int, body: int) -> bool:
    space = planner.space
    if number in space.outputs or number not in space.terms or not space.is_storable(number):
        return False
    return not planner.dag.free[body] & ~AXES and planner.room.fits(number, body)
