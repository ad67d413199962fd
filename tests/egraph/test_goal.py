"""The terms of plans are looked for in e-graphs under other rules."""

from __future__ import annotations

import pytest

from lumi.egraph.encode import encode
from lumi.egraph.goal import Goal, is_found, known
from lumi.egraph.graph import ENode
from lumi.egraph.rules import book, select
from tests.search.plans import found, graph_of
from tests.workloads import WORKLOADS


def holds(name: str, *without: str) -> bool:
    work = WORKLOADS[name]
    terms = encode(graph_of(work)[0], work.splits)
    rules = select(book().rules, work.families, without)
    return is_found(found(work, evaluations=40).goal.whole(terms), book(), rules, terms)


@pytest.mark.parametrize("name", ["softmax", "attention_causal", "log_sum_exp_split", "layernorm"])
def test_a_plan_is_found_under_the_rules_it_came_from(name: str) -> None:
    assert holds(name)


@pytest.mark.parametrize(
    ("name", "missing"),
    [("softmax", "tile"), ("attention_causal", "pull-factor"), ("attention_causal", "online-sum")],
)
def test_a_plan_is_not_found_without_what_it_needs(name: str, missing: str) -> None:
    assert not holds(name, missing)


PAIR = Goal(
    nodes={
        1: ENode("In", ("x", 1, "f32"), ()),
        2: ENode("Un", ("neg", "f32"), (1,)),
        3: ENode("Un", ("abs", "f32"), (2,)),
        4: ENode("Un", ("sqrt", "f32"), (3,)),
        5: ENode("Un", ("exp2", "f32"), (4,)),
    },
    roots=(5,),
    cuts=frozenset({2, 3, 4}),
)
"""Four kernels in a row."""


def test_a_kernel_is_told_by_what_it_reads_and_stores() -> None:
    part = PAIR.part([3], {2: 20, 3: 30, 5: 50})
    assert part.wanted == ((3, 30),) and part.given == {2: 20, 5: 50}
    assert set(part.nodes) == {3}


def test_a_partial_result_is_told_by_the_kernels_that_read_it() -> None:
    for stored in ([3], [4]):
        part = PAIR.part(stored, {2: 20, 4: 40, 5: 50})
        assert part.wanted == ((4, 40),) and part.given == {2: 20, 5: 50}
        assert set(part.nodes) == {3, 4}
    assert PAIR.part([2], {5: 50}).wanted == ((5, 50),)


@pytest.mark.parametrize("name", ["rmsnorm_matmul", "decode", "matmul_amax_rounded"])
def test_what_each_kernel_computes_follows(name: str) -> None:
    work = WORKLOADS[name]
    region = graph_of(work)[0]
    terms, rules = encode(region, work.splits), select(book().rules, work.families)
    made = found(work, evaluations=40)
    anchors = known(made.goal, book(), rules, terms)
    assert set(made.goal.roots) <= anchors.keys() <= {*made.goal.cuts, *made.goal.roots}
    assert {c for stored in made.stored for c in stored} >= set(made.goal.roots)
    for stored in made.stored:
        part = made.goal.part(stored, anchors)
        assert part.wanted and not {c for c, _ in part.wanted} & part.given.keys()
        assert is_found(part, book(), rules, terms)
