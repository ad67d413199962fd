"""Dims behave as the integers they stand for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumi import dim
from lumi.dim import Dim, DimRange, Extent
from lumi.errors import Source
from lumi.syntax import expect
from lumi.syntax.reader import read_one

RANGES = {"past": DimRange("past", 0, 20, (3,)), "seq": DimRange("seq", 1, 9, (1,))}


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> Extent:
    if depth == 0 or draw(st.booleans()):
        return draw(st.one_of(st.integers(-5, 5), st.sampled_from(["past", "seq"]).map(dim.var)))
    a, b = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    match draw(st.sampled_from("+-*/%")):
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a // draw(st.integers(1, 5))
        case _:
            return a % draw(st.integers(1, 5))


VALUES = st.fixed_dictionaries({"past": st.integers(0, 20), "seq": st.integers(1, 9)})


@given(expressions(), expressions(), VALUES)
def test_arithmetic_commutes_with_binding(a: Extent, b: Extent, values: dict[str, int]) -> None:
    x, y = dim.value(a, values), dim.value(b, values)
    assert dim.value(a + b, values) == x + y
    assert dim.value(a - b, values) == x - y
    assert dim.value(a * b, values) == x * y


@given(expressions(), st.integers(1, 7), VALUES)
def test_division_commutes_with_binding(a: Extent, divisor: int, values: dict[str, int]) -> None:
    x = dim.value(a, values)
    assert dim.value(a // divisor, values) == x // divisor
    assert dim.value(a % divisor, values) == x % divisor


@given(expressions(), VALUES)
def test_bounds_hold_on_the_whole_range(a: Extent, values: dict[str, int]) -> None:
    low, high = dim.bounds(a, RANGES)
    assert low <= dim.value(a, values) <= high


@given(expressions())
def test_text_reads_back(a: Extent) -> None:
    assert expect.extent(read_one(Source("dim", str(a)))) == a


@given(expressions(), st.integers(1, 5), VALUES)
def test_exact_division_is_exact(a: Extent, factor: int, values: dict[str, int]) -> None:
    scaled = a * factor * dim.var("seq")
    quotient = dim.divide(scaled, factor * dim.var("seq"))
    assert quotient is not None
    assert dim.value(quotient, values) == dim.value(a, values)


def test_equal_sums_are_equal_dims() -> None:
    past, seq = dim.var("past"), dim.var("seq")
    assert past + seq == seq + past
    assert (past + seq) - past == seq
    assert seq - seq == 0
    assert dim.divide(seq + 1, 2) is None
    assert str(past + seq) == "(+ past seq)"


def test_blocks_and_what_fills_the_last_one_add_up() -> None:
    seq, past = dim.var("seq"), dim.var("past")
    for n, size in ((seq, 4), (past + seq, 128), (3 * seq + 1, 32)):
        filled = n + (-1 * n) % size
        assert filled == (n + (size - 1)) // size * size
        assert filled // size == (n + (size - 1)) // size and filled % size == 0
        assert n == n // size * size + n % size


def test_a_quotient_is_written_one_way() -> None:
    seq = dim.var("seq")
    assert (2 * seq + 5) // 4 == seq // 2 + 1
    assert seq // 2 // 3 == seq // 6 and (seq // 2 + 1) // 3 == (seq + 2) // 6
    assert (-1 * seq) // 4 == -1 * ((seq + 3) // 4)
    assert (5 * seq + 7) // 4 == seq + 1 + (seq + 3) // 4


def test_bounds_of_a_remainder_are_its_own() -> None:
    past, seq = dim.var("past"), dim.var("seq")
    assert dim.bounds(past % 7, RANGES) == (0, 6)
    assert dim.bounds((-1 * seq) % 4, RANGES) == (0, 3)
    assert dim.bounds((past + seq + 7) // 8 * 8 - past - seq, RANGES) == (0, 7)
    assert dim.bounds((past + 3) // 4 * 4, RANGES) == (0, 20)
    assert dim.bounds(past % 3 * seq, RANGES) == (0, 18)


def test_a_missing_dim_is_named() -> None:
    with pytest.raises(KeyError, match="past"):
        dim.value(dim.var("past") + 1, {"seq": 1})


@pytest.mark.parametrize("divisor", [0, -2])
def test_division_by_a_nonpositive_number_is_an_error(divisor: int) -> None:
    seq: Any = dim.var("seq")
    assert isinstance(seq, Dim)
    with pytest.raises(ValueError, match="not by a positive integer"):
        seq // divisor
