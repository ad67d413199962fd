"""Which axes span the grid, and which are held whole."""

from __future__ import annotations

import pytest

from lumi.search.layout import Layout
from lumi.search.planner import Planner
from lumi.search.space import Genome
from tests.search.plans import planner_of
from tests.workloads import A, B, Workload, X, mul, top, total


def layout(planner: Planner) -> Layout:
    """The layout of the whole region as one kernel."""
    draft = planner.draft(Genome({}, frozenset()))
    return Layout(planner.dag, planner.space, [(c, draft.bodies[c]) for c in planner.space.outputs])


def product(dims: str = "") -> Planner:
    sizes = {"m": 40, "n": 300, "k": 96}
    return planner_of(
        Workload("product", total("k", mul(A, B)), sizes, sizes, dims, {"a": "m k", "b": "k n"})
    )


def test_result_axes_span_the_grid_and_reduced_ones_do_not() -> None:
    planner = product()
    made, names = layout(planner), planner.space.names
    assert names(made.grid) == ("m", "n") and names(made.reduced) == ("k",)
    assert made.sequential == 0 and made.used == made.grid | made.reduced


def test_default_tiles_are_wide_inside_and_never_longer_than_the_axis() -> None:
    planner = product()
    tiles = layout(planner).tiles(planner.sizes, {})
    assert tiles == {"m": 40, "n": 128, "k": 96}
    assert layout(planner).tiles(planner.sizes, {"n": 16, "other": 3}) == {"m": 40, "n": 16, "k": 96}


def test_default_tiles_leave_as_many_cells_as_are_asked_for() -> None:
    planner = product()
    tiles = layout(planner).tiles(planner.sizes, {}, cells=40)
    assert tiles == {"m": 10, "n": 16, "k": 96}
    assert layout(planner).tiles(planner.sizes, {"n": 128}, cells=40)["n"] == 128
    finest = layout(planner).tiles(planner.sizes, {}, cells=10**6)
    assert finest == {"m": 1, "n": 1, "k": 96}


@pytest.mark.parametrize(("dims", "tile", "held"), [("", 96, True), ("", 32, False), ("k", 96, False)])
def test_axis_is_held_whole_only_if_its_extent_is_known_and_one_tile(
    dims: str, tile: int, held: bool
) -> None:
    planner = product(dims)
    made = layout(planner)
    tiles = made.tiles(planner.sizes, {"k": tile})
    assert bool(made.resident(planner.sizes, tiles)) == held


def test_axis_that_is_both_stored_and_reduced_is_looped_over() -> None:
    sizes = {"i": 4, "j": 8}
    planner = planner_of(Workload("centred", mul(X, top("j", X)), sizes, sizes, "", {"x": "i j"}))
    made, names = layout(planner), planner.space.names
    assert names(made.grid) == ("i",) and names(made.sequential) == ("j",)
    assert made.resident(planner.sizes, made.tiles(planner.sizes, {})) == 0
