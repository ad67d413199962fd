"""Every rule fires on its seed, and whatever it makes equal computes the same numbers."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumi.egraph import rules
from lumi.egraph.graph import EGraph
from lumi.errors import LumiError
from lumi.field.region import Region
from tests.egraph.folders import with_file
from tests.rules import examine
from tests.rules.seeds import SEEDS, Seed, X, all_rules, mul, total

BOOK = rules.book()
VARIANTS = 6


@cache
def explored(name: str, extra: int) -> tuple[Region, EGraph]:
    return examine.explored(BOOK, name, SEEDS[name], extra)


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_rule_keeps_the_value_of_its_seed(name: str) -> None:
    @settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(extra=st.integers(0, 3), number=st.integers(0, 2**32))
    def examined(extra: int, number: int) -> None:
        region, egraph = explored(name, extra)
        assert egraph.saturated
        assert examine.fired(egraph, name) > 0, f"{name} does not fire with {extra} batch axes"
        assert examine.worst(region, egraph, SEEDS[name], number, VARIANTS) <= SEEDS[name].tolerance

    examined()


def test_every_rule_has_a_seed() -> None:
    assert {rule.name for rule in BOOK.rules} == set(SEEDS)


UNSOUND = {
    "square-of-sum": (
        '(rule ((= ?e (Red "sum" ?d (Bin "mul" ?x ?x))))'
        ' ((union ?e (Bin "mul" (Red "sum" ?d ?x) (Red "sum" ?d ?x))))'
        ' :ruleset rs-use :name "square-of-sum")',
        Seed(total("j", mul(X, X)), "i j"),
    ),
    "sum-as-max": (
        '(rule ((= ?e (Red "sum" ?d ?x))) ((union ?e (Red "max" ?d ?x))) :ruleset rs-use :name "sum-as-max")',
        Seed(total("j", X), "i j"),
    ),
    "carry-without-rescaling": (
        '(rule ((= ?e (Red "sum" ?d ?b)) (Char (Online ?d) ?b ?bn ?bo ?p) (!= ?p (Const 1.0)))'
        ' ((union ?e (Fin (Acc "sum" ?d ?bn (Const 1.0) (Const 0.0)))))'
        ' :ruleset rs-use :name "carry-without-rescaling")',
        all_rules(SEEDS["online-sum"].term),
    ),
}


@pytest.mark.parametrize("name", sorted(UNSOUND))
def test_unsound_rule_is_found(tmp_path: Path, name: str) -> None:
    text, seed = UNSOUND[name]
    book = with_file(tmp_path, "planted.egg", text)
    region, egraph = examine.explored(book, name, seed, 0)
    assert examine.fired(egraph, name) > 0
    assert max(examine.worst(region, egraph, seed, number, VARIANTS) for number in range(20)) > 1e-3


def test_rule_that_drops_an_axis_is_blamed(tmp_path: Path) -> None:
    text = (
        '(rule ((= ?e (Red "sum" ?d (Bin "mul" ?x ?y)))) ((union ?e (Red "sum" ?d ?y)))'
        ' :ruleset rs-use :name "forget-a-factor")'
    )
    seed = Seed(total("j", mul(X, SEEDS["pull-factor"].leaves["t"])), "i j")
    with pytest.raises(LumiError, match="united unequal terms") as caught:
        examine.explored(with_file(tmp_path, "planted.egg", text), "forget-a-factor", seed, 1)
    told = r"a rule united unequal terms: Red sum varies over \[.*\] in a class over \[.*\]"
    assert re.fullmatch(told, caught.value.message)
    assert "forget-a-factor" in caught.value.hint
    assert caught.value.span is not None and caught.value.span.source.name.endswith("planted.egg")
