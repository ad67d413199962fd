"""How temporaries lie in memory, and which steps on the way to them are not worth one."""

from __future__ import annotations

import math

import pytest

from lumi.blocks import BLOCKS
from lumi.compiler import Options, Stage, compile_model
from lumi.dtype import F32
from lumi.errors import Source
from lumi.field.access import Access
from lumi.llir.spell import step
from lumi.search.dag import AXES
from lumi.search.draft import Draft
from lumi.search.model import estimate
from lumi.search.planner import Planner
from lumi.search.seed import seeds
from lumi.search.settings import Settings
from lumi.search.space import Space
from tests.search.plans import DEFAULT, MACHINE

ROWS, COLUMNS = 64, 512

PACKED = f"""
(defmodel packed [(x f32 [48 {COLUMNS}])]
  (outputs :y (linear x {ROWS} :name "p")))
"""

HEADS = """
(defdim n :min 1 :max 1024 :hint [256])
(defmodel heads [(q f32 [1 4 16 32]) (k f32 [1 2 n 32]) (v f32 [1 2 n 32])]
  (outputs :y (rearrange (sdpa q k v) [b h s d] -> [b s (h d)])))
"""


def started(text: str, cut: str, packing: tuple[tuple[str, str], ...] = ()) -> tuple[Planner, Draft]:
    """The plans of the one region of a model, and the values of its first seed with a family of cuts."""
    work = compile_model(Source("model.lumi", text), Options(packing=packing), until=Stage.EGRAPH)
    ((key, (variant, region)),) = work.distinct().items()
    settings = Settings(hints=variant.box.hints(), ranges=variant.box.free)
    planner = Planner(
        Space(region, work.egraphs[key]),
        settings,
        lambda k: (estimate(k, settings.hints[0], MACHINE).seconds, DEFAULT),
    )
    return planner, planner.draft(next(seeds(planner, [cut])).genome)


def elements(planner: Planner, draft: Draft, number: int) -> int:
    free = planner.dag.free[draft.bodies[number]] & AXES
    return math.prod(planner.sizes[a] for a in planner.space.names(free))


def strides(access: Access, order: tuple[str, ...]) -> list[int]:
    """How far each axis that an access moves with moves it."""
    return [s for a in order if a in access.axes() and isinstance(s := step(access, a), int)]


def unpacked(planner: Planner, draft: Draft) -> int:
    """The class of all weights of a packed matrix, which a product stores as its factor."""
    (found,) = (c for c in draft.genome.cuts if elements(planner, draft, c) == ROWS * COLUMNS)
    return found


@pytest.mark.parametrize("name", BLOCKS)
def test_unpacked_weights_lie_as_the_vector_they_are_multiplied_with(name: str) -> None:
    planner, draft = started(PACKED, "operands", packing=(("*", name),))
    order = planner.orders.of(draft.bodies[unpacked(planner, draft)])
    (vector,) = (a for a in planner.space.region.accesses.values() if a.dtype is F32)
    along = strides(vector, order)
    assert len(along) >= 2
    assert along == sorted(along, reverse=True)


def test_columns_of_what_is_weighed_stay_side_by_side() -> None:
    planner, draft = started(HEADS, "none")
    (root,) = planner.space.outputs
    order = planner.orders.of(draft.bodies[root])
    rows = next(a for a in planner.space.region.accesses.values() if a.shape[-2:] == (16, 32))
    along = strides(rows, order)
    assert along == sorted(along, reverse=True)
    assert [a in rows.axes() for a in order] == [True, True, True, False]


@pytest.mark.parametrize("name", ["q4_k", "q6_k"])
def test_steps_of_unpacking_are_not_worth_a_temporary(name: str) -> None:
    planner, draft = started(PACKED, "operands", packing=(("*", name),))
    whole = unpacked(planner, draft)
    below = [c for c in draft.members([whole]) if c != whole and planner.space.is_storable(c)]
    assert len(below) > 5
    assert planner.is_worth(draft, whole)
    assert not any(planner.is_worth(draft, c) for c in below)


def test_sums_and_what_is_smaller_than_its_operands_are_worth_a_temporary() -> None:
    planner, draft = started(PACKED, "operands", packing=(("*", "q4_k"),))
    sums = [c for c in draft.bodies if draft.node(c).op == "Fin"]
    assert sums and all(planner.is_worth(draft, c) for c in sums)
