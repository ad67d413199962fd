"""Climbs, jumps and tiles by the model: never worse, bounded, the same each time."""

from __future__ import annotations

import random

import pytest

from lumi.search.climb import Climb, Move
from lumi.search.evolve import evolve
from lumi.search.launch import Assembly
from lumi.search.planner import Planner
from lumi.search.seed import seeds
from lumi.search.space import Genome
from lumi.search.tune import tune, variants
from tests.search.plans import planner_of
from tests.workloads import WORKLOADS

NAMES = ("decode", "layernorm_matmul", "linear_cross_entropy")


def start(planner: Planner, cut: str = "everything") -> Assembly:
    first = next(seeds(planner, [cut]))
    return planner.assemble(planner.draft(first.genome))


def planner_for(name: str) -> Planner:
    planner = planner_of(WORKLOADS[name])
    planner.room.each = planner.room.whole = 1 << 60  # nothing is too large to store
    return planner


@pytest.mark.parametrize("name", NAMES)
def test_climb_gains_and_ends_where_no_change_helps(name: str) -> None:
    planner = planner_for(name)
    climb = Climb(planner, start(planner))
    before = climb.best.seconds
    assert climb.run(5000)
    assert climb.best.seconds < before
    found = climb.best
    again = Climb(planner, found)
    assert again.run(5000) and again.best is found


def test_climb_stops_at_its_budget() -> None:
    planner = planner_for("decode")
    climb = Climb(planner, start(planner))
    before = planner.evaluations
    assert not climb.run(10)
    assert planner.evaluations - before == 10


def test_what_a_climb_finds_is_a_plan_built_anew() -> None:
    planner = planner_for("layernorm_matmul")
    climb = Climb(planner, start(planner))
    climb.run(5000)
    anew = planner.assemble(planner.draft(climb.best.draft.genome))
    assert anew.seconds == pytest.approx(climb.best.seconds)
    assert [p.outs for p in anew.pieces] == [p.outs for p in climb.best.pieces]


def test_move_changes_nodes_and_cuts_only() -> None:
    genome = Genome({1: 0, 2: 1}, frozenset({5}))
    assert Move(((1, 3),)).apply(genome) == Genome({1: 3, 2: 1}, frozenset({5}))
    assert Move((), (5,)).apply(genome) == Genome({1: 0, 2: 1}, frozenset())
    assert Move((), (6,)).apply(genome).cuts == {5, 6}


def test_cuts_slide_to_what_is_made_of_them_and_go_together() -> None:
    """In a norm with a product behind: the sums of a kernel, and what the product is scaled to."""
    planner = planner_for("layernorm_matmul")
    climb = Climb(planner, start(planner, "reductions"))
    cuts, users = climb.best.draft.genome.cuts, climb.best.draft.users
    slides, together = set(), set()
    for number in climb.best.draft.bodies:
        for move in climb._cuts(number):
            assert not move.nodes
            if len(move.toggles) == 2 and not set(move.toggles) <= cuts:
                slides.add(move.toggles)
            elif len(move.toggles) > 1:
                together.add(frozenset(move.toggles))
    assert slides and all(a in cuts and b not in cuts and b in users[a] for a, b in slides)
    stored = {frozenset(c for c, _ in p.outs) for p in climb.best.pieces}
    assert together and together <= stored


@pytest.mark.parametrize("name", NAMES)
def test_evolution_never_loses_and_repeats(name: str) -> None:
    results = []
    for _ in range(2):
        planner = planner_for(name)
        first = start(planner, "reductions")
        best = evolve(planner, [first], random.Random(3), 200)
        assert best.seconds <= first.seconds
        results.append((best.seconds, tuple(p.outs for p in best.pieces), planner.evaluations))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", NAMES)
def test_tuned_tiles_are_no_worse_and_come_first_among_their_variants(name: str) -> None:
    planner = planner_for(name)
    for piece in start(planner, "reductions").pieces:
        tuned = tune(planner, piece)
        assert tuned.seconds <= piece.seconds
        found = variants(planner, tuned)
        assert found[0].seconds <= tuned.seconds * (1 + 1e-6)
        tiles = [tuple(v.kernel.tiles.items()) for v in found]
        assert len(set(tiles)) == len(tiles) and tuple(tuned.kernel.tiles.items()) in tiles
