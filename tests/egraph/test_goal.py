"""The terms of plans are looked for in e-graphs under other rules."""

from __future__ import annotations

import pytest

from lumi.egraph.encode import encode
from lumi.egraph.goal import is_found
from lumi.egraph.rules import book, select
from tests.search.plans import found, graph_of
from tests.workloads import WORKLOADS


def holds(name: str, *without: str) -> bool:
    work = WORKLOADS[name]
    terms = encode(graph_of(work)[0], work.splits)
    rules = select(book().rules, work.families, without)
    return is_found(found(work, evaluations=40).goal, book(), rules, terms)


@pytest.mark.parametrize("name", ["softmax", "attention_causal", "log_sum_exp_split", "layernorm"])
def test_a_plan_is_found_under_the_rules_it_came_from(name: str) -> None:
    assert holds(name)


@pytest.mark.parametrize(
    ("name", "missing"),
    [("softmax", "tile"), ("attention_causal", "pull-factor"), ("attention_causal", "online-sum")],
)
def test_a_plan_is_not_found_without_what_it_needs(name: str, missing: str) -> None:
    assert not holds(name, missing)
