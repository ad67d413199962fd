"""Any plan is right: random e-nodes, cuts and tiles, whatever they cost, equal the reference."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lumi.field.term import Pos, Term
from lumi.llir.kernel import Step
from lumi.search.dag import AXES
from lumi.search.draft import InfeasibleError
from lumi.search.finish import finish
from lumi.search.launch import Assembly, alone
from lumi.search.planner import Planner
from lumi.search.seed import seeds
from lumi.search.space import Genome
from tests.search.plans import assert_equal, planner_of, reference, run
from tests.workloads import (
    ATTENTION,
    CAUSAL,
    LAYER_NORMED,
    NORMED,
    VARIANCE,
    WEIGHT,
    Fill,
    Workload,
    X,
    Y,
    add,
    attention,
    bin_,
    both,
    exp2,
    mul,
    norm_fill,
    read,
    recip,
    sub,
    top,
    total,
    un,
    window,
)

HEADS = {"b": 1, "hk": 1, "g": 2, "i": 7, "j": 11, "d": 4, "v": 4}
NORM = {"i": 5, "k": 13, "n": 3}
ROWS = {"i": 5, "j": 11, "v": 3}
NORM_INPUTS = {"x": "i k", "gain": "k", "w": "k n"}
ROW_INPUTS = {"x": "i j", "y": "i j", "z": "j v"}
Z = read("z", "j v")


def work(
    name: str,
    term: Term,
    sizes: dict[str, int],
    inputs: dict[str, str],
    split: str = "",
    fill: Fill | None = None,
) -> Workload:
    """A workload of fixed extents in f64; with `split`, that axis may be cut into three chunks."""
    used = {**sizes, **({"c": 3} if split else {})}
    pair = (split, "c") if split else None
    return Workload(
        name, term, used, used, "", inputs, split=pair, fill=fill, families=("exact", "relaxed", "fast-math")
    )


def cascades() -> Iterator[Workload]:
    """What no one would write a special case for."""
    m, my = top("j", X), top("j", Y)
    yield work(
        "temperatures",
        mul(
            total("j", mul(exp2(add(mul(sub(X, m), 0.5), sub(Y, my))), Z)),
            recip(total("j", exp2(sub(Y, my)))),
        ),
        ROWS,
        ROW_INPUTS,
    )
    inner = top("j", sub(X, my))
    yield work("maximum_of_maximum", total("j", mul(exp2(sub(sub(X, my), inner)), Z)), ROWS, ROW_INPUTS, "j")
    scale, weights = top("j", un("abs", X)), exp2(sub(Y, my))
    yield work(
        "scales_and_weights",
        total("j", mul(mul(mul(X, recip(scale)), mul(weights, recip(total("j", weights)))), Z)),
        ROWS,
        ROW_INPUTS,
    )
    e = exp2(sub(X, m))
    yield work("entropy", total("j", mul(mul(e, recip(total("j", e))), sub(X, m))), ROWS, {"x": "i j"})
    s = total("v", mul(Z, read("u", "i v")))
    yield work(
        "linear_then_softmax",
        total("j", mul(exp2(sub(s, top("j", s))), total("v", mul(Z, exp2(sub(s, top("j", s))))))),
        ROWS,
        {"z": "j v", "u": "i v"},
    )
    both_axes = top("i j", X)
    yield work(
        "softmax_over_a_set",
        mul(exp2(sub(X, both_axes)), recip(total("i j", exp2(sub(X, both_axes))))),
        ROWS,
        {"x": "i j"},
        "j",
    )


def graphs() -> Iterator[Workload]:
    square = {**HEADS, "i": 11}
    yield work("attention", attention(width=4), HEADS, ATTENTION)
    yield work("attention_causal", attention(CAUSAL, 4), square, ATTENTION)
    yield work("attention_split", attention(width=4), HEADS, ATTENTION, "j")
    yield work("attention_window_split", attention(window(5), 4), square, ATTENTION, "j")
    masked = both(CAUSAL, bin_("le", 4.0, Pos("i")))
    yield work("attention_masked_split", attention(masked, 4), square, ATTENTION, "j")
    yield work("rmsnorm_matmul", total("k", mul(NORMED, WEIGHT)), NORM, NORM_INPUTS, fill=norm_fill())
    yield work(
        "layernorm_matmul_split", total("k", mul(LAYER_NORMED, WEIGHT)), NORM, NORM_INPUTS, "k", norm_fill()
    )
    yield work("variance_split", VARIANCE, NORM, {"x": "i k"}, "k", norm_fill())
    yield from cascades()


GRAPHS = {w.name: w for w in graphs()}
QUICK, MANY = 11, 145
"""Plans of each graph in the normal and in the slow suite: about 150 and 2,000 in all."""


@dataclass
class Walker:
    """Wanders through the genomes of a planner, a few changes at a time."""

    planner: Planner
    rng: random.Random

    def __post_init__(self) -> None:
        self.starts = [s.genome for s in seeds(self.planner, ["none", "reductions"])]
        self.genome = self.starts[0]

    def step(self) -> Genome:
        space, genome = self.planner.space, self.genome
        if self.rng.random() < 0.03:
            genome = self.rng.choice(self.starts)
        choice, cuts = dict(genome.choice), set(genome.cuts)
        used = sorted(self.planner.draft(genome).bodies)
        for _ in range(self.rng.randint(1, 3)):
            number = self.rng.choice(used)
            choice[number] = self.rng.randrange(len(space.alternatives[number]))
        if self.rng.random() < 0.4:
            storable = [c for c in used if c not in space.outputs and space.is_storable(c)]
            cuts ^= {self.rng.choice(storable)} if storable else set()
        return Genome(choice, frozenset(cuts))

    def plans(self, count: int) -> Iterator[Assembly]:
        """Distinct plans; gives up when chance no longer finds new ones."""
        seen: set[object] = set()
        for _ in range(count * 60):
            if len(seen) == count:
                return
            try:
                genome = self.step()
                plan = self.planner.assemble(self.planner.draft(genome))
                plan = self.retiled(plan)
            except InfeasibleError:
                continue
            self.genome = genome
            key = tuple((p.outs, tuple(p.kernel.tiles.items())) for p in plan.pieces)
            if key not in seen:
                seen.add(key)
                yield plan

    def retiled(self, plan: Assembly) -> Assembly:
        """The plan with random tiles."""
        pieces = []
        for piece in plan.pieces:
            tiles = {a: self.rng.choice([1, 2, 3, 4, 16]) for a in piece.kernel.axes}
            pieces.append(self.planner.piece(piece.outs, tiles))
        return Assembly(plan.draft, tuple(map(alone, pieces)), plan.seconds)


def check(name: str, count: int) -> None:
    made = GRAPHS[name]
    planner = planner_of(made)
    region = planner.space.region
    buffers = made.arrays(region, {})
    want = reference(region, buffers, {})
    out = region.stores[0].access.buffer
    walker = Walker(planner, random.Random(name))
    ran = 0
    for plan in walker.plans(count):
        graph = finish([Step(p.kernel, p.schedule) for p in plan.pieces], frozenset([out]))
        assert all(not v & ~AXES for v in (planner.dag.free[b] for p in plan.pieces for _, b in p.outs))
        assert_equal(run(graph, region, buffers, {})[out], want[out], 5e-5)
        ran += 1
    assert ran == count


@pytest.mark.parametrize("name", GRAPHS)
def test_random_plan_equals_the_reference(name: str) -> None:
    check(name, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_many_random_plans_equal_the_reference(name: str) -> None:
    check(name, MANY)
