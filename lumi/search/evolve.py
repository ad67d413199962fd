"""Goes on from local optima: perturbs or crosses them, then climbs again from there."""

from __future__ import annotations

import random
from collections.abc import Sequence

from lumi.search.climb import GAIN, Climb
from lumi.search.draft import InfeasibleError
from lumi.search.launch import Assembly
from lumi.search.planner import Planner
from lumi.search.space import Genome

KEPT = 4
"""Plans that descendants are made from."""

JUMPS = (2, 4)
"""Fewest and most changes of a perturbation."""

CLIMB = 60
"""Evaluations of one climb after a jump."""

PATIENCE = 12
"""Jumps without a gain after which evolution ends."""


def evolve(planner: Planner, optima: Sequence[Assembly], rng: random.Random, evaluations: int) -> Assembly:
    """The best plan after jumps from the optima, best first; ties keep the incumbent."""
    elite = sorted(optima, key=lambda a: a.seconds)[:KEPT]
    limit, idle = planner.evaluations + evaluations, 0
    while planner.evaluations < limit and idle < PATIENCE:
        idle += 1
        parent = rng.choice(elite)
        partner = rng.choice(elite)
        genome = _crossed(parent, partner, rng) if partner is not parent else _mutated(planner, parent, rng)
        try:
            start = planner.assemble(planner.draft(genome))
        except InfeasibleError:
            continue
        climb = Climb(planner, start, near=parent)
        climb.run(min(CLIMB, limit - planner.evaluations))
        if climb.best.seconds < elite[0].seconds * (1 - GAIN):
            idle = 0
        if all(abs(climb.best.seconds - e.seconds) > GAIN * e.seconds for e in elite):
            elite = sorted([*elite, climb.best], key=lambda a: a.seconds)[:KEPT]
    return elite[0]


def _mutated(planner: Planner, parent: Assembly, rng: random.Random) -> Genome:
    """Other nodes for some classes of the plan, or other cuts."""
    draft, space = parent.draft, planner.space
    choice, cuts = dict(draft.genome.choice), set(draft.genome.cuts)
    used = sorted(draft.bodies)
    free = [c for c in used if len(space.alternatives[c]) > 1]
    storable = [c for c in used if c not in space.outputs and space.is_storable(c)]
    storable = [c for c in storable if c in draft.genome.cuts or planner.is_worth(draft, c)]
    for _ in range(rng.randint(*JUMPS)):
        if storable and (not free or rng.random() < 0.5):
            cuts ^= {rng.choice(storable)}
        elif free:
            number = rng.choice(free)
            choice[number] = rng.randrange(len(space.alternatives[number]))
    return Genome(choice, frozenset(cuts))


def _crossed(parent: Assembly, partner: Assembly, rng: random.Random) -> Genome:
    """The parent with some kernels of the partner: their nodes and what they store and read."""
    draft = parent.draft
    choice, cuts = dict(draft.genome.choice), set(draft.genome.cuts)
    for piece in partner.pieces:
        if rng.random() < 0.5:
            continue
        for number in partner.draft.members([c for c, _ in piece.outs]):
            choice[number] = partner.draft.genome.choice.get(number, 0)
            if number in partner.draft.genome.cuts:
                cuts.add(number)
            else:
                cuts.discard(number)
    return Genome(choice, frozenset(cuts))
