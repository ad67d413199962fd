"""Routes: what was found for one call holds for every other that takes its route, and for no more."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.errors import LumiError
from lumi.runtime import session as sessions
from lumi.runtime.model import Model
from lumi.runtime.route import route
from lumi.runtime.session import Session
from tests.plan.samples import Array, add_plan, counter_plan
from tests.runtime.numpy_device import NumpyDevice
from tests.runtime.test_session import W, ramp

WHOLE = {"a": DimRange("a", 0, 7, ()), "b": DimRange("b", 0, 7, ())}
A, B = dim.var("a"), dim.var("b")


def model(boxes: Sequence[Mapping[str, DimRange]], gaps: Sequence[Extent]) -> Model:
    """A model of two dims with variants on these boxes, whose calls need that no gap is negative."""
    needs = tuple(SimpleNamespace(gap=g, what="") for g in gaps)
    variants = tuple(SimpleNamespace(dims=box, needs=needs) for box in boxes)
    plan: Any = SimpleNamespace(name="m", dims=WHOLE, inputs=(), states=(), variants=variants)
    nothing: Any = None
    return Model(plan, nothing, nothing, {}, {}, tuple(() for _ in boxes))


RANGE = st.tuples(st.integers(0, 7), st.integers(0, 7)).map(sorted)
BOX = st.tuples(RANGE, RANGE).map(
    lambda r: {n: DimRange(n, *ends, ()) for n, ends in zip("ab", r, strict=True)}
)
FACTOR = st.integers(-3, 3)
GAP = st.builds(lambda c, x, y, z: c + x * A + y * B + z * A * B, st.integers(-5, 30), FACTOR, FACTOR, FACTOR)


@settings(max_examples=300, deadline=None)
@given(st.lists(BOX, max_size=3), st.lists(GAP, max_size=3), st.sampled_from(["", "a", "ab"]), *2 * [RANGE])
def test_calls_on_a_route_are_those_that_would_find_it(
    boxes: list[Any], gaps: list[Extent], told: str, first: list[int], held: list[int]
) -> None:
    found = model([*boxes, WHOLE], gaps)
    dims = {"a": first[0], "b": held[0]}
    try:
        number = found.choose(dims)
    except LumiError:
        return
    way = route(found, number, dims, told)
    assert way is not None and way.bind({n: dims[n] for n in told}) == dims
    for values in itertools.product(range(-1, 9), repeat=len(told)):
        given = dict(zip(told, values, strict=True))
        bound = way.bind(given)
        if bound is not None:
            assert bound == dims | given and found.choose(bound) == number


def test_one_dim_takes_the_whole_of_the_route() -> None:
    """What one dim decides is decided once, by its range: no gap is looked at again."""
    found = model([{**WHOLE, "a": DimRange("a", 2, 3, ())}, WHOLE], [12 - 2 * A, 3 * A - 1, 9 - A - B])
    way = route(found, 1, {"a": 5, "b": 1}, "a")
    assert way is not None and (way.ranges, way.gaps) == ((("a", 4, 6),), ())
    both = route(found, 1, {"a": 5, "b": 1}, "ab")
    assert both is not None and both.ranges == (("a", 4, 6), ("b", 0, 7)) and both.gaps == (9 - A - B,)


def test_later_calls_are_refused_as_the_first_would_be() -> None:
    session = Session(counter_plan(), None, NumpyDevice())
    session(x=ramp(3, 1), past=0)
    for dims, why in (
        ({"past": -1}, "past is -1, outside of 0 … 15"),
        ({"past": 14}, "with past=14, seq=3 the call needs 17 elements along axis 0 of cache, which has 16"),
        ({"past": 1.0}, "past is 1.0"),
        ({"past": True}, "past is True"),
        ({}, "dim past is not given"),
        ({"past": 0, "seq": 4}, r"x is f32 \[3\], expected f32 \[seq\] with seq=4"),
    ):
        with pytest.raises(LumiError, match=why):
            session.run({"x": ramp(3)}, dims)
    want: Array = session(x=ramp(3, 5), past=13)["y"]
    assert want[13:].tolist() == [5, 6, 7]


def test_a_route_does_not_outlast_what_states_hold() -> None:
    plan = add_plan()
    plan = replace(plan, states=(replace(plan.inputs[0], name="extra"),))
    session = Session(plan, W, NumpyDevice())
    session(x=ramp(2))
    session.reset()
    session(x=ramp(3))
    for length in (2, 3, 2):
        if length == 3:
            session(x=ramp(3))
            continue
        with pytest.raises(LumiError, match="seq is 2, but state extra holds seq=3"):
            session(x=ramp(2))


def test_no_more_routes_are_kept_than_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_ROUTES", 2)
    session = Session(add_plan(), W, NumpyDevice())
    for length in (1, 2, 3, 4, 1):
        assert session(x=ramp(length))["y"].tolist() == (2 * ramp(length) + 10).tolist()
        assert len(session._routes) <= 2
