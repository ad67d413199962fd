"""Rules without bound, in a child process with limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from lumi.egraph import dump, encode, rules
from lumi.egraph.explore import Limits, Task
from lumi.egraph.guard import Cage, explore_guarded
from lumi.egraph.rules import RuleBook
from lumi.egraph.saturate import saturate
from lumi.errors import LumiError
from lumi.field.term import Term
from tests.egraph.folders import with_file
from tests.egraph.test_saturate import WORKLOADS, region
from tests.workloads import add, read

GROWING = """
(rule ((= ?e (Bin "add" ?x ?y))) ((union ?e (Bin "add" ?y ?x))) :ruleset rs-exact :name "commute")
(rule ((= ?e (Bin "add" (Bin "add" ?x ?y) ?z))) ((union ?e (Bin "add" ?x (Bin "add" ?y ?z))))
      :ruleset rs-exact :name "associate")
"""


def chain(length: int) -> Term:
    term = read("x0", "i j")
    for k in range(1, length):
        term = add(term, read(f"x{k}", "i j"))
    return term


def task(book: RuleBook, term: Term) -> Task:
    chosen = [r for r in book.rules if not r.unites or not r.is_built_in]
    return Task.of(book, chosen, encode.encode(region(term)))


@pytest.fixture
def growing(tmp_path: Path) -> RuleBook:
    return with_file(tmp_path, "growing.egg", GROWING)


def test_child_finds_what_this_process_finds() -> None:
    work = WORKLOADS["variance"].region()
    assert dump.canonical(saturate(work, guarded=True)) == dump.canonical(saturate(work))


def test_rules_of_other_files_run_in_a_child(growing: RuleBook, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    def watched(task: Task, limits: Limits) -> object:
        used.append(task)
        return explore_guarded(task, limits)

    monkeypatch.setattr("lumi.egraph.saturate.explore_guarded", watched)
    saturate(region(chain(3)), book=growing)
    assert len(used) == 1
    saturate(region(chain(3)))
    assert len(used) == 1


def test_size_limit_stops_growth_and_names_the_rule(growing: RuleBook) -> None:
    egraph = saturate(region(chain(12)), book=growing, limits=Limits(tuples=5_000))
    assert not egraph.saturated
    assert egraph.busiest is not None and egraph.busiest.name in ("commute", "associate")


def test_memory_limit_returns_the_rounds_before(growing: RuleBook) -> None:
    limits = Limits(tuples=10**9, seconds=600.0)
    found = explore_guarded(task(growing, chain(14)), limits, Cage(memory=100 << 20, seconds=300.0))
    assert not found.saturated and found.rounds >= 1
    assert len(found.tables.classes) > 50


def test_time_limit_without_a_round_is_an_error(growing: RuleBook) -> None:
    with pytest.raises(LumiError, match="in its first rounds"):
        explore_guarded(task(growing, chain(3)), Limits(), Cage(seconds=0.01))


def test_error_of_the_child_is_its_own(tmp_path: Path) -> None:
    book = with_file(tmp_path, "zz.egg", '(rule ((Nonsense ?x)) () :ruleset rs-exact :name "nonsense")')
    with pytest.raises(LumiError, match="Nonsense"):
        explore_guarded(task(book, chain(2)), Limits())


def test_broken_rule_does_not_spoil_the_next_run(tmp_path: Path) -> None:
    book = with_file(tmp_path, "zz.egg", '(rule ((Nonsense ?x)) () :ruleset rs-exact :name "nonsense")')
    with pytest.raises(LumiError, match="Nonsense"):
        saturate(region(chain(2)), book=book, guarded=False)
    assert saturate(region(chain(2)), book=rules.book()).saturated


@pytest.mark.parametrize("guarded", [False, True])
def test_broken_rule_is_shown_at_its_place(tmp_path: Path, guarded: bool) -> None:
    query = '((= ?e (Un "abs" ?x))\n       (Nonneg ?x))'
    text = f'(rule {query}\n  ((union ?e ?x)) :ruleset rs-exact :name "mistyped")'
    book = with_file(tmp_path, "zz.egg", text)
    with pytest.raises(LumiError) as caught:
        saturate(region(chain(2)), book=book, guarded=guarded)
    assert caught.value.message == "egglog refuses the rule mistyped: Unbound function Nonneg"
    assert caught.value.hint.startswith("the nearest name is NonNeg; ")
    span = caught.value.span
    assert span is not None and (span.source.name, span.text) == (str(tmp_path / "zz.egg"), "(Nonneg ?x)")
