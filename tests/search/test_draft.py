"""Values of genomes: what is reused between neighbours is what would have been built anew."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from lumi.dtype import F32
from lumi.egraph.graph import EGraph, ENode
from lumi.egraph.saturate import saturate
from lumi.field.term import Term
from lumi.search.draft import Draft, InfeasibleError
from lumi.search.planner import Planner
from lumi.search.settings import Settings
from lumi.search.space import Genome, Space
from tests.search.plans import DEFAULT, planner_of
from tests.search.test_random_plans import GRAPHS, Walker
from tests.workloads import Workload, mul, read, recip, top, total


def fresh(planner: Planner, genome: Genome) -> Draft | str:
    try:
        return planner.draft(genome)
    except InfeasibleError as error:
        return str(error)


def derived(base: Draft, genome: Genome, changed: list[int], toggled: list[int]) -> Draft | str:
    try:
        return base.derive(genome, changed, toggled)
    except InfeasibleError as error:
        return str(error)


def seen(planner: Planner, draft: Draft | str) -> object:
    """What a plan is made of: the values of its outputs and of everything stored that they need."""
    if isinstance(draft, str):
        return "infeasible"
    found: dict[int, int] = {}
    stack = list(planner.space.outputs)
    while stack:
        number = stack.pop()
        if number not in found:
            found[number] = draft.bodies[number]
            stack.extend(planner.dag.reads[found[number]])
    return found


@pytest.mark.parametrize("name", ["attention_split", "layernorm_matmul_split", "linear_then_softmax"])
def test_derived_draft_equals_one_built_anew(name: str) -> None:
    planner = planner_of(GRAPHS[name])
    walker = Walker(planner, random.Random(name))
    rng, space, compared = random.Random(1), planner.space, 0
    for _ in range(150):
        genome = walker.step()
        base = fresh(planner, genome)
        if isinstance(base, str):
            continue
        walker.genome = genome
        number = rng.choice(sorted(base.bodies))
        if rng.random() < 0.5:
            node = rng.randrange(len(space.alternatives[number]))
            after = Genome({**genome.choice, number: node}, genome.cuts)
            made = derived(base, after, [number], [])
        elif space.is_storable(number) and number not in space.outputs:
            after = Genome(genome.choice, genome.cuts ^ {number})
            made = derived(base, after, [], [number])
        else:
            continue
        assert seen(planner, made) == seen(planner, fresh(planner, after))
        compared += 1
    assert compared > 50


def by_hand(*classes: tuple[ENode, ...]) -> Planner:
    """A planner for the e-graph of these classes, the last of which is stored over axis i."""
    region = Workload("hand", read("x", "i"), {"i": 4}, {}, "", {"x": "i"}).region()
    numbers = range(len(classes))
    egraph = EGraph(
        dict(enumerate(classes)),
        (numbers[-1],),
        dict.fromkeys(numbers, 1),
        {},
        dict.fromkeys(numbers, F32),
        {},
        True,
        0.0,
        (),
    )
    return Planner(Space(region, egraph), Settings(), lambda k: (1.0, DEFAULT))


READ = ENode("In", ("x", 1, "f32"), ())


def test_value_that_needs_itself_is_refused() -> None:
    planner = by_hand((READ, ENode("Un", ("abs",), (1,))), (ENode("Un", ("sqrt",), (0,)),))
    planner.draft(Genome({0: 0}, frozenset()))
    with pytest.raises(InfeasibleError, match="needs itself"):
        planner.draft(Genome({0: 1}, frozenset()))
    with pytest.raises(InfeasibleError, match="needs itself"):
        planner.draft(Genome({0: 1}, frozenset({0, 1})))


def test_class_without_an_executable_node_is_refused() -> None:
    planner = by_hand((READ,), (ENode("Red", ("sum",), (0, 0)),), (ENode("Un", ("sqrt",), (1,)),))
    with pytest.raises(InfeasibleError, match="no executable node"):
        planner.draft(Genome({}, frozenset()))


def mirrored() -> Workload:
    """The same norm under two names of its axis: x xᵀ of normalised rows."""

    def normed(i: str, k: str) -> Term:
        x = read(f"x{i}", f"{i} {k}")
        return mul(x, recip(top(k, x)))

    term = total("k", mul(normed("i", "k"), normed("j", "k")))
    return Workload("mirror", term, {"i": 6, "j": 6, "k": 5}, {}, "", {"xi": "i k", "xj": "j k"})


def test_value_under_two_names_is_stored_once() -> None:
    """Both reads are of one buffer, so the row maxima under i and j are one value."""
    region = mirrored().region()
    region = replace(region, accesses={n: replace(a, buffer="B0") for n, a in region.accesses.items()})
    egraph = saturate(region)
    planner = Planner(Space(region, egraph), Settings(), lambda k: (1.0, DEFAULT))
    maxima = frozenset(
        c for c, ns in egraph.classes.items() if any(n.op == "Red" and n.attrs[0] == "max" for n in ns)
    )
    assert len(maxima) == 2
    draft = planner.draft(Genome({}, maxima))
    stored = [c for c in maxima if any(c in planner.dag.reads[v] for v in draft.bodies.values())]
    assert draft.aliased == maxima and len(stored) == 1
