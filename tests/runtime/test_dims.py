"""Dims are taken from shapes and keywords, and every contradiction is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumi import dim
from lumi.dim import DimRange
from lumi.dtype import I32
from lumi.errors import LumiError
from lumi.plan.plan import Signature
from lumi.runtime.dims import Shaped, bind_dims

SEQ, PAST, BATCH = dim.var("seq"), dim.var("past"), dim.var("batch")
RANGES = {
    "batch": DimRange("batch", 1, 4, (1,)),
    "past": DimRange("past", 0, 64, (8,)),
    "seq": DimRange("seq", 1, 16, (1, 8)),
}
TOKENS = Signature("tokens", I32, (BATCH, SEQ))
MASK = Signature("mask", I32, (SEQ, PAST + SEQ))
PAIRS = Signature("pairs", I32, (SEQ * 2 + 1,))


def bind(given: dict[str, int], **shapes: tuple[int, ...]) -> dict[str, int]:
    signatures = {s.name: s for s in (TOKENS, MASK, PAIRS)}
    return bind_dims(RANGES, given, [Shaped(signatures[n], shape) for n, shape in shapes.items()])


def test_dims_come_from_shapes_in_any_order() -> None:
    assert bind({}, mask=(5, 12), tokens=(2, 5)) == {"batch": 2, "seq": 5, "past": 7}


def test_a_size_with_one_unknown_dim_is_solved() -> None:
    assert bind({"past": 0, "batch": 1}, pairs=(9,)) == {"past": 0, "batch": 1, "seq": 4}


def test_a_dim_of_one_value_need_not_be_given() -> None:
    ranges = RANGES | {"batch": DimRange("batch", 1, 1, (1,))}
    assert bind_dims(ranges, {"past": 3, "seq": 2}, []) == {"past": 3, "seq": 2, "batch": 1}


@pytest.mark.parametrize(
    ("given", "shapes", "message"),
    [
        ({}, {"tokens": (1, 5)}, "dim past is not given"),
        ({"past": 65}, {"tokens": (1, 5)}, "past is 65, outside of 0 … 64"),
        ({"past": -1}, {"tokens": (1, 5)}, "past is -1, outside of 0 … 64"),
        ({"past": 0}, {"tokens": (1, 17)}, "seq is 17, outside of 1 … 16"),
        ({"past": 0}, {"tokens": (1, 0)}, "seq is 0, outside of 1 … 16"),
        (
            {"past": 0, "seq": 4},
            {"tokens": (1, 5)},
            r"tokens is i32 \[1 5\], expected i32 \[batch seq\] with batch=1, seq=4",
        ),
        ({"past": 1}, {"tokens": (1, 5), "mask": (5, 5)}, r"mask is i32 \[5 5\]"),
        ({"past": 0, "batch": 1}, {"pairs": (8,)}, "dim seq is not given"),
    ],
)
def test_a_fault_is_named(given: dict[str, int], shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(LumiError, match=message):
        bind(given, **shapes)


SIZES = st.builds(
    lambda c, name, k: c * dim.var(name) + k, st.integers(1, 4), st.sampled_from([*RANGES]), st.integers(0, 5)
)


@settings(deadline=None)
@given(
    st.lists(SIZES, max_size=5),
    st.fixed_dictionaries({n: st.integers(r.low, r.high) for n, r in RANGES.items()}),
)
def test_what_shapes_show_and_callers_tell_is_what_was_meant(
    sizes: list[Any], values: dict[str, int]
) -> None:
    """Whatever the order; and no other shape is taken."""
    shown = {n for size in sizes for n in size.names()}
    told = {n: v for n, v in values.items() if n not in shown}
    signature = Signature("x", I32, tuple(sizes))
    shape = tuple(dim.value(size, values) for size in sizes)
    assert bind_dims(RANGES, told, [Shaped(signature, shape)]) == values
    for place in range(len(shape)):
        other = (*shape[:place], shape[place] + 1, *shape[place + 1 :])
        try:
            bound = bind_dims(RANGES, told, [Shaped(signature, other)])
        except LumiError:
            continue
        assert tuple(dim.value(size, bound) for size in sizes) == other
