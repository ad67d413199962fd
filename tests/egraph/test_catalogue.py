"""The table in docs/rules.md is made from the rules files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lumi.egraph import rules
from lumi.egraph.catalogue import catalogue
from tests.egraph.folders import with_file
from tests.rules import examine
from tests.rules.seeds import Seed, X
from tests.workloads import mul, top

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
MARK = "<!-- made from the rules files: pytest tests/egraph/test_catalogue.py --update-golden -->\n"


def test_table_of_rules_is_current(request: pytest.FixtureRequest) -> None:
    text, mark, table = PAGE.read_text().partition(MARK)
    assert mark
    current = "\n" + catalogue(rules.load())
    if request.config.getoption("--update-golden"):
        PAGE.write_text(text + mark + current)
        return
    assert table == current, "docs/rules.md is old: pytest tests/egraph/test_catalogue.py --update-golden"


def test_every_rule_has_a_row() -> None:
    table = catalogue(rules.load())
    for rule in rules.load():
        assert f"| `{rule.name}` | {rule.family} |" in table


def test_example_of_the_page_is_a_sound_rule(tmp_path: Path) -> None:
    block = re.search(r"```\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block
    book = with_file(tmp_path, "example.egg", block.group(1))
    seed = Seed(top("j", mul(X, 0.5)), "i j")
    (rule,) = (r for r in book.rules if not r.is_built_in)
    region, egraph = examine.explored(book, rule.name, seed, 2)
    assert rule.soundness and examine.fired(egraph, rule.name) > 0
    assert max(examine.worst(region, egraph, seed, number, 6) for number in range(10)) <= 1e-9
