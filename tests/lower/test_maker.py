"""Terms are made once and as simple as what is known allows."""

from __future__ import annotations

import pytest

from lumi import dim
from lumi.dtype import BF16, F16, F32, I32, I64
from lumi.field.evaluate import evaluate_term
from lumi.field.term import Bin, Const, Sel, Un
from lumi.lower.maker import Maker


def test_equal_terms_are_one_object() -> None:
    make = Maker()
    a, b = (make.binary("add", make.read("r", ("i",), F32), make.number(1.0)) for _ in range(2))
    assert a is b
    assert make.number(0.0) is not make.number(-0.0)


def test_choice_inside_a_choice_by_the_same_condition_is_known() -> None:
    make = Maker()
    c = make.read("c", ("i",), F32)
    x, y, z = (make.read(n, ("i",), F32) for n in "xyz")
    inner = make.select(c, x, y)
    assert make.select(c, inner, z) == Sel(c, x, z)
    assert make.select(c, z, inner) == Sel(c, z, y)


def test_bounds_of_an_integer_exclude_each_other() -> None:
    make = Maker()
    i, x, y, z = make.position("i"), *(make.read(n, ("i",), F32) for n in "xyz")
    below = make.binary("lt", i, make.number(4))
    above = make.binary("lt", make.number(3), i)
    assert make.select(below, x, make.select(above, y, z)) == Sel(below, x, y)
    further = make.binary("lt", make.number(4), i)
    assert make.select(below, x, make.select(further, y, z)) == Sel(below, x, Sel(further, y, z))


def test_bounds_of_a_float_do_not_exclude_each_other() -> None:
    make = Maker()
    f, x, y, z = (make.read(n, ("i",), F32) for n in "fxyz")
    below, above = make.binary("lt", f, make.number(4)), make.binary("lt", make.number(3), f)
    assert make.select(below, x, make.select(above, y, z)) == Sel(below, x, Sel(above, y, z))


def test_guards_with_one_alternative_are_one_guard() -> None:
    make = Maker()
    p, q, x, y = (make.read(n, ("i",), F32) for n in "pqxy")
    once = make.select(make.binary("and", p, q), x, y)
    assert make.select(p, once, y) is once
    assert make.select(q, make.select(p, x, y), y) == Sel(Bin("and", q, p), x, y)


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 12345678901234567])
def test_wide_integers_are_put_together_exactly(value: int) -> None:
    term = Maker().const(value, I64)
    assert int(evaluate_term(term, {}, {})[0]) == value


def test_half_constants_are_rounded() -> None:
    make = Maker()
    assert make.const(0.1, F16) == Const(0.0999755859375)
    assert make.const(1.005, BF16) == Const(1.0078125)
    assert make.const(0.1, F32) == Const(0.1)
    assert make.const(1e9, F16) == Const(float("inf"))


def test_lone_constants_get_their_type() -> None:
    make = Maker()
    assert make.typed(make.number(1), I32) == Un("cast.i32", Const(1.0))
    assert make.typed(make.position("i"), I32) == make.position("i")


@pytest.mark.parametrize("past", [0, 5, 6])
def test_dim_expressions_are_computed_in_i32(past: int) -> None:
    seq = dim.var("seq")
    for extent in (seq, seq * 3 - 7, seq * seq, (seq - 9) // 4, (seq - 9) % 4, dim.var("past") * seq + 1):
        dims = {"seq": 6, "past": past}
        term = Maker().extent(extent)
        assert int(evaluate_term(term, {}, {}, dims=dims)[0]) == dim.value(extent, dims)


@pytest.mark.parametrize("starts", [False, True])
def test_quotients_floor(starts: bool) -> None:
    make = Maker()
    x = make.plus(make.position("i"), make.number(0 if starts else -5))
    got = evaluate_term(make.quotient(x, 3, starts), {"i": 8}, {})[0]
    assert got.tolist() == [(i - (0 if starts else 5)) // 3 for i in range(8)]
