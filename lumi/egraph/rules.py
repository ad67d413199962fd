"""The rewrite rules, read from the `.egg` files of the rules folder without egglog.

A rules file is egglog text.  Above each rule stands a comment block: what the rule says, then a paragraph
that begins `Sound:` with the reason it holds.  A line `; family: <name>` puts the rules after it into a
family.  Files are read in the order of their names, `sorts.egg` before all others; a file added to the
folder is picked up.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lumi import paths
from lumi.errors import LumiError, Source, Span

_STEMS = ("sorts", "analysis", "structure", "mask", "rereference", "exact", "relaxed", "fast-math", "int8")

BUILT_IN = frozenset(f"{stem}.egg" for stem in _STEMS)
"""The files that come with Lumi; their rules are known to saturate."""

ANALYSIS = "analysis"
"""The family of the rules that only compute facts; it cannot be switched off."""

_NAME = re.compile(r':name\s+"([^"]*)"')
_RULESET = re.compile(r":ruleset\s+([^\s()]+)")
_RULE = re.compile(r"\((rule|rewrite|birewrite)\s")
_FAMILY = re.compile(r"^;\s*family:\s*(\S+)[^\S\n]*$", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|;[^\n]*|[()]|[^\s();"]+')


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rewrite rule: what it says (`doc`), why it holds (`soundness`), and its egglog text's place."""

    name: str
    family: str
    ruleset: str
    doc: str
    soundness: str
    span: Span

    @property
    def text(self) -> str:
        """The egglog command."""
        return self.span.text

    @property
    def unites(self) -> bool:
        """Whether it makes terms equal, rather than only deriving facts."""
        return not self.text.startswith("(rule") or "(union " in self.text

    @property
    def is_built_in(self) -> bool:
        """Whether it comes with Lumi."""
        return Path(self.span.source.name).name in BUILT_IN


@dataclass(frozen=True, slots=True)
class RuleBook:
    """Everything the rules folder says: declarations and facts first, then rules, both in file order."""

    declarations: tuple[str, ...]
    rules: tuple[Rule, ...]

    @property
    def rulesets(self) -> tuple[str, ...]:
        """The rulesets in order of declaration, which is the order of the phases of a round."""
        found = (re.fullmatch(r"\(ruleset\s+(\S+)\)", d) for d in self.declarations)
        return tuple(m.group(1) for m in found if m)


def load() -> tuple[Rule, ...]:
    """Every rule of the rules folder."""
    return book().rules


def book(folder: Path | None = None) -> RuleBook:
    """The contents of `folder`, by default the one that comes with Lumi.

    Raises `LumiError` when a file cannot be read, when a rule has no name, ruleset, comment or family, or
    when two have one name.
    """
    folder = folder or paths.data("rules")
    files = sorted(folder.glob("*.egg"), key=lambda p: (p.name != "sorts.egg", p.name))
    if not files:
        raise LumiError("rules error", f"no rules in {folder}", hint="reinstall lumi")
    return _book(tuple((str(f), f.stat().st_mtime_ns) for f in files))


@lru_cache(maxsize=4)
def _book(files: tuple[tuple[str, int], ...]) -> RuleBook:
    declarations: list[str] = []
    rules: dict[str, Rule] = {}
    for name, _ in files:
        source = Source(name, Path(name).read_text(encoding="utf-8"))
        for form in _forms(source):
            if not form.is_rule:
                declarations.append(form.span.text)
                continue
            rule = form.rule()
            if rule.name in rules:
                raise LumiError("rules error", f"two rules are named {rule.name}", rule.span)
            rules[rule.name] = rule
    return RuleBook(tuple(declarations), tuple(rules.values()))


@dataclass(frozen=True, slots=True)
class _Form:
    """A top-level command with the lines of the comment right above it and the family in force, if any."""

    span: Span
    comment: tuple[str, ...]
    family: str | None

    @property
    def is_rule(self) -> bool:
        return _RULE.match(self.span.text) is not None

    def rule(self) -> Rule:
        name, ruleset = _NAME.search(self.span.text), _RULESET.search(self.span.text)
        if not name or not ruleset:
            raise LumiError(
                "rules error",
                "a rule needs a :name and a :ruleset",
                self.span,
                hint='add :name "what-it-does"',
            )
        doc, _, soundness = "\n".join(self.comment).partition("Sound:")
        if not doc.strip() or not soundness.strip():
            raise LumiError(
                "rules error",
                f"the rule {name.group(1)} needs a comment right above it that gives a reason",
                self.span,
                hint="; what it says\n    ; Sound: why it holds",
            )
        if self.family is None:
            raise LumiError(
                "rules error",
                f"the rule {name.group(1)} is in no family",
                self.span,
                hint="put a line above it: ; family: exact",
            )
        return Rule(
            name.group(1),
            self.family,
            ruleset.group(1),
            " ".join(doc.split()),
            " ".join(soundness.split()),
            self.span,
        )


def _forms(source: Source) -> Iterator[_Form]:
    """The commands of a file."""
    families = [(m.start(), m.group(1)) for m in _FAMILY.finditer(source.text)]
    for span in _spans(source):
        family = next((f for start, f in reversed(families) if start < span.start), None)
        yield _Form(span, _comment_above(span), family)


def _spans(source: Source) -> Iterator[Span]:
    """The places of the top-level lists of a file."""
    depth = start = 0
    for token in _TOKEN.finditer(source.text):
        match token.group():
            case "(":
                start = start if depth else token.start()
                depth += 1
            case ")":
                depth -= 1
                if depth < 0:
                    raise LumiError("rules error", "unbalanced )", Span(source, token.start(), token.end()))
                if depth == 0:
                    yield Span(source, start, token.end())
            case _:
                pass
    if depth:
        raise LumiError("rules error", "unbalanced (", Span(source, start, start + 1))


def _comment_above(span: Span) -> tuple[str, ...]:
    """The lines of the comment that ends on the line before a command, without semicolons."""
    lines = span.source.text[: span.start].splitlines()
    above = itertools.takewhile(lambda line: line.startswith(";"), reversed(lines))
    return tuple(line.lstrip(";").strip() for line in above if not _FAMILY.match(line))[::-1]


def select(rules: Sequence[Rule], families: Iterable[str], without: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The rules of the analyses and of `families`, less those whose name or ruleset is in `without`.

    Raises `LumiError` for a family, name or ruleset that no rule has.
    """
    chosen, left_out = {ANALYSIS, *families}, frozenset(without)
    _require(chosen, {r.family for r in rules}, "family")
    _require(left_out, {n for r in rules for n in (r.name, r.ruleset)}, "rule or ruleset")
    return tuple(r for r in rules if r.family in chosen and not {r.name, r.ruleset} & left_out)


def _require(wanted: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise for the first name that is not known, with the nearest that is."""
    for name in sorted(set(wanted) - set(known)):
        near = difflib.get_close_matches(name, known, 1)
        hint = f"the nearest is {near[0]}" if near else f"known are {', '.join(sorted(known)[:8])}"
        raise LumiError("rules error", f"no {what} is called {name}", hint=hint)
