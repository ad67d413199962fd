from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumi.egraph.groups import GROUPS, group, grouped
from lumi.egraph.rules import ANALYSIS, load, select
from lumi.egraph.saturate import saturate
from lumi.errors import Source
from lumi.field.text import parse
from tests.egraph.folders import with_file

ATTENTION = """
(region "attention"
  (buffers "s" "v" "out")
  (axes [c 8] [i 256] [j 256] [d 64])
  (accesses
    [r0 (B0 [i j] [256 256] f32)]
    [r1 (B1 [j d] [256 64] f32)])
  (let
    [%0 (select (le (position j) (position i)) r0 -inf)]
    [%1 (exp2 (sub %0 (max [j] %0)))])
  (stores
    [(B2 [i d] [256 64] f32) (sum [j] (mul (mul %1 (recip (sum [j] %1))) r1))])
  (notes))
"""
"""Weights of a causal attention, and what is weighed."""

FIRST_MADE = {"Acc": "structure", "Run": "online", "Mask": "masks", "Chunk": "splits"}
"""The first group with which an e-graph of it has such nodes."""


def ladder() -> Iterator[tuple[str, frozenset[str]]]:
    """Each group, and the kinds of nodes there are with it and those before."""
    rules = grouped(select(load(), ("exact",)))
    for number, name in enumerate(rules):
        without = [r.name for later in list(rules.values())[number + 1 :] for r in later]
        region = parse(Source("attention", ATTENTION))
        egraph = saturate(region, families=("exact",), splits=[("j", "c")], without=without)
        assert egraph.saturated
        yield name, frozenset(n.op for nodes in egraph.classes.values() for n in nodes)


def test_each_group_makes_something_possible() -> None:
    first: dict[str, str] = {}
    for name, ops in ladder():
        for op in ops & set(FIRST_MADE):
            first.setdefault(op, name)
    assert first == FIRST_MADE


def test_the_documents_explain_the_groups() -> None:
    page = (Path(__file__).parents[2] / "docs" / "rules.md").read_text()
    section = page.partition("## Groups")[2].partition("\n## ")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)) == dict(GROUPS)


def test_every_exact_rule_is_in_a_group_that_is_explained() -> None:
    found = grouped(load())
    assert list(found)[: len(GROUPS)] == list(GROUPS)
    assert {n for n in found if n not in GROUPS} == {r.family for r in load()} - {"exact", ANALYSIS}
    assert sum(map(len, found.values())) == sum(r.family != ANALYSIS for r in load())


@pytest.mark.parametrize(
    ("header", "ruleset", "want"), [("mine", "rs-exact", "mine"), ("exact", "rs-own", "rs-own")]
)
def test_groups_of_rules_that_do_not_come_with_lumi(
    tmp_path: Path, header: str, ruleset: str, want: str
) -> None:
    text = f"""; family: {header}

(ruleset rs-own)

; x is x.
; Sound: by definition.
(rule ((= ?e (Un "neg" ?x))) ((union ?e ?e)) :ruleset {ruleset} :name "itself")
"""
    (rule,) = (r for r in with_file(tmp_path, "mine.egg", text).rules if r.name == "itself")
    assert group(rule) == want
    assert grouped([rule]) == {want: (rule,)}
