"""Which variants dims ask for, and where each is searched."""

from __future__ import annotations

from dataclasses import replace

from lumi import dim
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


def test_hints_far_from_each_other_get_boxes_of_their_own() -> None:
    seq = DimRange("seq", 1, 9000, (1, 16, 100, 1600, 8192, 9000))
    special, *others = boxes({"seq": seq, "past": PAST}, {"batch": 2})
    assert special == Box({"batch": 2, "seq": 1}, {"past": PAST})
    assert [b.free["seq"] for b in others] == [
        DimRange("seq", 1, 400, (16, 100)),
        DimRange("seq", 1, 9000, (1600, 8192, 9000)),
    ]
    assert {b.free["past"] for b in others} == {PAST} and {b.bind["batch"] for b in others} == {2}


def test_hints_part_boxes_in_any_order() -> None:
    ordered = boxes({"seq": DimRange("seq", 0, 2048, (1, 32, 128, 2048))}, {})
    assert [str(b) for b in ordered] == ["seq = 1", "seq 0…512", "seq 0…2048"]
    mixed = DimRange("seq", 0, 2048, (2048, 32, 1, 128, 32))
    assert boxes({"seq": mixed}, {}) == ordered


def test_boxes_of_two_dims_end_with_the_general_one() -> None:
    dims = {n: DimRange(n, 1, 2048, (1, 16, 1024)) for n in ("a", "b")}
    special, *others = boxes(dims, {})
    assert special == Box({"a": 1, "b": 1}, {})
    ends = [(b.free["a"].high, b.free["b"].high) for b in others]
    assert ends == [(128, 128), (128, 2048), (2048, 128), (2048, 2048)]


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
    assert general.ranges(DIMS) == DIMS | {"seq": replace(SEQ, hints=(128,))}
    _, few, _ = boxes({"seq": replace(SEQ, hints=(1, 8, 128))}, {})
    assert few.ranges(DIMS) == DIMS | {"seq": DimRange("seq", 1, 32, (8,))}


def test_hints_leave_the_room_that_a_call_must_find() -> None:
    """A cache of 1,040 positions has no room for 128 behind 1,024; one of 100 none for 128 at all."""
    seq, past = dim.var("seq"), dim.var("past")
    (box,) = boxes({"seq": replace(SEQ, hints=(128,)), "past": PAST}, {})
    assert box.hints() == ({"seq": 128, "past": 128}, {"seq": 128, "past": 1024})
    assert box.hints([past, 1040 - past - seq]) == ({"seq": 128, "past": 128}, {"seq": 128, "past": 912})
    assert box.hints([100 - past - seq]) == ({"seq": 100, "past": 0},)


def test_hints_are_not_lowered_where_that_leaves_less_room() -> None:
    box = Box({}, {"past": PAST})
    assert box.hints([dim.var("past") - 500]) == box.hints()
