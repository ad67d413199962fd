"""Which variants dims ask for, and where each is searched."""

from __future__ import annotations

from lumi.dim import DimRange
from lumi.plan.box import Box, boxes

BATCH = DimRange("batch", 1, 8, ())
SEQ = DimRange("seq", 1, 2048, (1, 128))
PAST = DimRange("past", 0, 2047, (128, 1024))
DIMS = {r.name: r for r in (BATCH, SEQ, PAST)}


def test_a_dim_hinted_at_one_and_more_gets_a_box_of_its_own() -> None:
    special, general = boxes(DIMS, {})
    assert special == Box({"seq": 1}, {"batch": BATCH, "past": PAST})
    assert general.bind == {}
    assert general.free["seq"] == DimRange("seq", 1, 2048, (128,))


def test_one_hint_or_none_makes_no_box() -> None:
    assert boxes({"past": PAST, "batch": BATCH}, {}) == (Box({}, {"past": PAST, "batch": BATCH}),)
    assert len(boxes({"seq": DimRange("seq", 1, 9, (1,))}, {})) == 1


def test_bound_dims_and_plain_compilations_have_one_box() -> None:
    assert boxes(DIMS, {"seq": 4}) == (Box({"seq": 4}, {"batch": BATCH, "past": PAST}),)
    assert boxes(DIMS, {}, special=False) == (Box({}, DIMS),)


def test_bound_dims_stay_bound_in_every_box() -> None:
    assert [b.bind for b in boxes(DIMS, {"batch": 2})] == [{"batch": 2, "seq": 1}, {"batch": 2}]


def test_hints_go_together_and_the_last_one_stays() -> None:
    special, general = boxes(DIMS, {})
    assert special.hints() == ({"batch": 8, "past": 128}, {"batch": 8, "past": 1024})
    assert general.hints() == (
        {"batch": 8, "seq": 128, "past": 128},
        {"batch": 8, "seq": 128, "past": 1024},
    )


def test_a_box_without_dims_has_one_hint() -> None:
    assert Box({}, {}).hints() == ({},)


def test_ranges_cover_every_dim_of_the_plan() -> None:
    special, general = boxes(DIMS, {})
    assert special.ranges(DIMS)["seq"] == DimRange("seq", 1, 1, ())
    assert general.ranges(DIMS) == DIMS
