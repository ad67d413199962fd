"""Which values are known to lie between 0 and 1."""

from __future__ import annotations

import pytest

from lumi.backends.cuda.mma.bound import is_at_least, is_at_most_zero, is_between_zero_and_one
from lumi.dtype import F32
from lumi.llir.kernel import Map, Operand, Reduce
from lumi.llir.program import Definition, fold

TABLE: dict[str, Definition] = {
    d.var: d
    for d in (
        Map("x", "neg", ("u",), ("i", "j"), F32),
        fold(Reduce("top", "max", ("j",), "x", ("i",), F32)),
        Map("best", "max", ("before", "top"), ("i",), F32),
        Map("before", "neg", ("u",), ("i",), F32),
        Map("less", "subni", ("x", "best"), ("i", "j"), F32),
        Map("scaled", "mul", ("less", 1.5), ("i", "j"), F32),
        Map("turned", "mul", ("less", -1.5), ("i", "j"), F32),
        Map("weight", "exp2", ("scaled",), ("i", "j"), F32),
        Map("other", "exp2", ("turned",), ("i", "j"), F32),
        Map("kept", "sel", ("u", "weight", 0.0), ("i", "j"), F32),
        Map("half", "cast.f16", ("kept",), ("i", "j"), F32),
        Map("sum", "add", ("weight", "weight"), ("i", "j"), F32),
    )
}


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("weight", True),
        ("kept", True),
        ("half", True),
        ("other", False),
        ("sum", False),
        (0.5, True),
        (2.0, False),
    ],
)
def test_power_of_what_a_maximum_was_taken_off_is_at_most_one(value: Operand, known: bool) -> None:
    assert is_between_zero_and_one(TABLE, value) == known


def test_differences_to_a_maximum_are_never_positive() -> None:
    assert is_at_most_zero(TABLE, "scaled")
    assert not is_at_most_zero(TABLE, "turned")


def test_maximum_is_at_least_what_went_into_it() -> None:
    assert is_at_least(TABLE, "best", "x")
    assert is_at_least(TABLE, "best", "before")
    assert not is_at_least(TABLE, "top", "before")
