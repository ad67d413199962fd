"""Seeds: distinct, coherent, and between them able to reach the known plans."""

from __future__ import annotations

import math

import pytest

from lumi.compiler import Options, Stage, compile_model
from lumi.dtype import BF16, F32, I8
from lumi.errors import Source
from lumi.llir.bytedot import find
from lumi.llir.kernel import Dot, accesses, walk
from lumi.search.draft import InfeasibleError
from lumi.search.model import estimate
from lumi.search.planner import Planner
from lumi.search.seed import CUTS, Greedy, Seed, Weights, families, seeds
from lumi.search.settings import Settings
from lumi.search.space import Genome, Space
from tests.search.plans import DEFAULT, MACHINE, loops, planner_of
from tests.workloads import WORKLOADS

NORMED_PRODUCT = """
(defmodel product [(x bf16 [64 256]) (w bf16 [512 256])]
  "A norm of halves, then a product."
  (einsum (rms-norm x :name "norm") [m k] w [n k] -> [m n]))
"""


def made(planner: Planner, *cuts: str) -> list[Seed]:
    return list(seeds(planner, cuts or list(CUTS)))


def test_families_cover_every_style_once() -> None:
    counts = [len(set(families(splits, rounds))) for splits in (True, False) for rounds in (True, False)]
    assert counts == [14, 12, 7, 6]


def test_every_style_has_a_name_of_its_own() -> None:
    for splits in (False, True):
        found = families(splits, True)
        assert len({str(weights) for weights in found}) == len(found)
    assert str(families(True, False)[0]) == "(one pass, skipping, unsplit)"
    assert str(families(False, True)[0]) == "(one pass, skipping, integers)"


def test_seeds_are_distinct() -> None:
    found = made(planner_of(WORKLOADS["decode"]))
    assert len({(tuple(sorted(s.genome.choice.items())), s.genome.cuts) for s in found}) == len(found) > 4


def test_seed_without_cuts_is_the_online_loop() -> None:
    planner = planner_of(WORKLOADS["attention_causal"])
    first = made(planner, "none")[0]
    (piece,) = planner.assemble(planner.draft(first.genome)).pieces
    (loop,) = loops(piece.kernel)
    assert len(loop.carries) == 3 and loop.guards


def test_penalty_for_a_second_pass_avoids_it() -> None:
    planner = planner_of(WORKLOADS["softmax_entropy"])
    greedy = Greedy(planner.space, 0)
    passes = []
    for repass in (300, 0):
        choice = greedy.choose(Weights(repass, 0, 0, 0))
        plan = planner.assemble(planner.draft(Genome(choice, frozenset())))
        passes.append(sum(len(loops(p.kernel)) for p in plan.pieces))
    assert passes[0] == 1 < passes[1]


@pytest.mark.parametrize("name", WORKLOADS)
def test_some_seed_of_every_workload_is_a_plan(name: str) -> None:
    planner = planner_of(WORKLOADS[name])
    plans = 0
    for seed in made(planner):
        try:
            plans += len(planner.assemble(planner.draft(seed.genome)).pieces) > 0
        except InfeasibleError:
            continue
    assert plans > 0


def test_cut_families_store_what_their_names_say() -> None:
    planner = planner_of(WORKLOADS["decode"])
    space = planner.space
    by_cut = {s.cut: s.genome.cuts - set(space.readable) for s in made(planner)}
    assert by_cut["none"] == frozenset() and by_cut["chunks"]
    assert by_cut["contractions"] <= by_cut["reductions"] <= by_cut["everything"]


def test_factors_that_are_halves_are_stored_as_such() -> None:
    """Between norm and product, and not the sum that a rule takes the norm's last factor out of."""
    work = compile_model(Source("product", NORMED_PRODUCT), until=Stage.EGRAPH)
    ((key, (_, region)),) = work.distinct().items()
    space = Space(region, work.egraphs[key])
    planner = Planner(space, Settings(), lambda k: (estimate(k, {}, MACHINE).seconds, DEFAULT))
    stored = {}
    for seed in seeds(planner, ["factors"]):
        plan = planner.assemble(planner.draft(seed.genome))
        (dot,) = [p.kernel for p in plan.pieces if any(isinstance(s, Dot) for s in walk(p.kernel.body))]
        stored[seed.weights.wide] = {a.dtype for a, writes in accesses(dot) if not writes}
    assert stored[1000] == {BF16}
    assert F32 in stored[0]


LOSS = """
(defmodel loss [(x f32 [64 256])]
  "The mean distance of elements from the mean of their row."
  (mean (abs (- x (mean x :keepdims true))) :axis nil))
"""


def test_rows_are_reduced_to_a_number_each_before_these_are() -> None:
    work = compile_model(Source("loss", LOSS), until=Stage.EGRAPH)
    ((key, (_, region)),) = work.distinct().items()
    planner = Planner(
        Space(region, work.egraphs[key]), Settings(), lambda k: (estimate(k, {}, MACHINE).seconds, DEFAULT)
    )
    results: dict[int, set[object]] = {}
    for seed in seeds(planner, ["reductions"]):
        kernels = [p.kernel for p in planner.assemble(planner.draft(seed.genome)).pieces]
        sizes = [[(math.prod(a.shape), writes) for a, writes in accesses(k)] for k in kernels]
        of_rows = [found for found in sizes if (64 * 256, False) in found]
        results[seed.weights.joint] = {size for found in of_rows for size, writes in found if writes}
    assert results[1000] == {64}
    assert 1 in results[0]


QUANTISED_PRODUCT = """
(defmodel product [(x f32 [256]) (w i8 [512 8 32])]
  "Weights in bytes, summed in blocks."
  (einsum (reshape x [8 32]) [b c] (cast w f32) [r b c] -> [r]))
"""


def test_rounded_activations_are_stored_before_sums_of_integers() -> None:
    """Only the kernel of the integer sums reads the weights, and it finds the activations as bytes."""
    source = Source("product", QUANTISED_PRODUCT)
    work = compile_model(source, Options(families=("exact", "int8")), until=Stage.EGRAPH)
    ((key, (_, region)),) = work.distinct().items()
    planner = Planner(
        Space(region, work.egraphs[key]), Settings(), lambda k: (estimate(k, {}, MACHINE).seconds, DEFAULT)
    )
    seed = next(s for s in seeds(planner, ["rounded"]) if s.weights.floats)
    plan = planner.assemble(planner.draft(seed.genome))
    kernels = [p.kernel for p in plan.pieces]
    (product,) = [k for k in kernels if find(k.body).sums]
    assert {a.dtype for a, writes in accesses(product) if not writes} <= {I8, F32}
    readers = [k for k in kernels if any(math.prod(a.shape) == 512 * 256 for a, _ in accesses(k))]
    assert readers == [product]
