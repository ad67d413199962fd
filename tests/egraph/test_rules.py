"""Reading rules files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lumi.egraph import rules
from lumi.egraph.rules import BUILT_IN
from lumi.errors import LumiError
from lumi.paths import data
from tests.egraph.folders import explained, with_file

RULE = '(rule ((= ?e (Un "abs" ?x))) ((NonNeg ?e)) :ruleset rs-sign :name "{name}")\n'


def test_every_rule_says_what_why_and_where() -> None:
    for rule in rules.load():
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.name), rule.name
        assert rule.doc.endswith(".") or re.search(r"[\w)]$", rule.doc), rule.name
        assert rule.soundness, rule.name
        assert rule.family in ("analysis", "exact", "relaxed", "fast-math", "int8"), rule.name
        assert rule.ruleset in rules.book().rulesets, rule.name
        assert rule.span.text == rule.text and rule.name in rule.text
        assert Path(rule.span.source.name).parent == data("rules")


def test_built_in_files_are_those_of_the_folder() -> None:
    assert {p.name for p in data("rules").glob("*.egg")} == BUILT_IN
    assert all(rule.is_built_in for rule in rules.load())


def test_added_file_is_picked_up(tmp_path: Path) -> None:
    text = "; family: mine\n\n; Says this\n; over two lines.\n; Sound: by\n; definition.\n" + RULE.format(
        name="extra"
    )
    book = with_file(tmp_path, "zz.egg", text)
    (rule,) = (r for r in book.rules if r.name == "extra")
    assert (rule.family, rule.doc, rule.soundness) == ("mine", "Says this over two lines.", "by definition.")
    assert rule.span.line == 7 and not rule.is_built_in and not rule.unites


def test_family_ends_with_its_file(tmp_path: Path) -> None:
    one, two = explained(RULE.format(name="one")), explained(RULE.format(name="two"))
    (tmp_path / "a.egg").write_text(one.replace("exact", "relaxed"))
    (tmp_path / "b.egg").write_text(two)
    assert [(r.name, r.family) for r in rules.book(tmp_path).rules] == [("one", "relaxed"), ("two", "exact")]
    (tmp_path / "b.egg").write_text(two.replace("; family: exact", ""))
    with pytest.raises(LumiError, match="the rule two is in no family"):
        rules.book(tmp_path)


@pytest.mark.parametrize(
    "comment", ["", "; It says this.\n", "; Sound: by definition.\n", "; A.\n; Sound: b.\n\n"]
)
def test_rule_without_a_reason_is_refused(tmp_path: Path, comment: str) -> None:
    with pytest.raises(LumiError, match="the rule bare needs a comment") as caught:
        with_file(tmp_path, "zz.egg", "; family: exact\n\n" + comment + RULE.format(name="bare"))
    assert caught.value.span is not None and caught.value.span.line == 3 + comment.count("\n")


def test_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.egg"
    path.write_text(explained(RULE.format(name="one")))
    assert [r.name for r in rules.book(tmp_path).rules] == ["one"]
    path.write_text(explained(RULE.format(name="another")))
    assert [r.name for r in rules.book(tmp_path).rules] == ["another"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '(rule ((= ?e (Un "abs" ?x))) ((NonNeg ?e)) :ruleset rs-sign)',
            "a rule needs a :name and a :ruleset",
        ),
        (
            '(rule ((= ?e (Un "abs" ?x))) ((NonNeg ?e)) :name "no-ruleset")',
            "a rule needs a :name and a :ruleset",
        ),
        (RULE.format(name="tile"), "two rules are named tile"),
        ("(ruleset rs-mine", "unbalanced ("),
        ("(ruleset rs-mine))", "unbalanced )"),
    ],
)
def test_wrong_file_is_an_error_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(LumiError) as caught:
        with_file(tmp_path, "zz.egg", text)
    assert caught.value.message == message
    assert caught.value.span is not None and caught.value.span.source.name.endswith("zz.egg")


def test_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LumiError, match="no rules in"):
        rules.book(tmp_path)


@pytest.mark.parametrize(
    ("families", "without", "message", "hint"),
    [
        (("exakt",), (), "no family is called exakt", "the nearest is exact"),
        (("exact",), ("onlin-sum",), "no rule or ruleset is called onlin-sum", "the nearest is online-sum"),
        (("exact",), ("rs-masks",), "no rule or ruleset is called rs-masks", "the nearest is rs-mask"),
    ],
)
def test_unknown_name_is_an_error(
    families: tuple[str, ...], without: tuple[str, ...], message: str, hint: str
) -> None:
    with pytest.raises(LumiError) as caught:
        rules.select(rules.load(), families, without)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_selection_keeps_the_analyses() -> None:
    chosen = rules.select(rules.load(), ())
    assert chosen and {r.family for r in chosen} == {"analysis"}
    assert "tile" not in {r.name for r in rules.select(rules.load(), ("exact",), ("tile",))}
    assert not [r for r in rules.select(rules.load(), ("exact",), ("rs-use",)) if r.ruleset == "rs-use"]


def test_both_directions_are_a_rule(tmp_path: Path) -> None:
    text = '(birewrite (Un "abs" ?x) (Un "abs" (Un "abs" ?x)) :ruleset rs-exact :name "abs-twice")'
    (rule,) = (r for r in with_file(tmp_path, "zz.egg", text).rules if not r.is_built_in)
    assert rule.unites and rule.text.startswith("(birewrite")
