"""The rewrite rules, read from the `.egg` files of the rules folder without egglog.

A rules file is egglog text.  Above each rule stands a comment block: what the rule says, then a paragraph
that begins `Sound:` with the reason it holds.  A line `; family: <name>` puts the rules after it into a
family.  Files are read in the order of their names, `sorts.egg` before all others; a file added to the
folder is picked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lumi import paths
from lumi.errors import LumiError, Source, Span

BUILT_IN = frozenset(
    f"{stem}.egg"
    for stem in (*("sorts", "analysis", "structure", "mask", "rereference", "exact", "relaxed", "fast-math"),)
)
"""The files that come with Lumi; their rules are known to saturate."""

ANALYSIS = "analysis"
"""The family of the rules that only compute facts; it cannot be switched off."""

_NAME = re.compile(r':name\s+"([^"]*)"')
_RULESET = re.compile(r":ruleset\s+([^\s()]+)")
_FAMILY = re.compile(r"^;\s*family:\s*(\S+)\s*$")
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
        return self.text.startswith("(rewrite") or "(union " in self.text

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

    Raises `LumiError` when a file cannot be read, a rule has no name, or two have the same.
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
    """A top-level command with the comment lines right above it and the family in force."""

    span: Span
    comment: tuple[str, ...]
    family: str

    @property
    def is_rule(self) -> bool:
        return self.span.text.startswith(("(rule", "(rewrite")) and not self.span.text.startswith("(ruleset")

    def rule(self) -> Rule:
        name, ruleset = _NAME.search(self.span.text), _RULESET.search(self.span.text)
        if not name or not ruleset:
            raise LumiError(
                "rules error",
                "a rule needs a :name and a :ruleset",
                self.span,
                hint='add :name "what-it-does"',
            )
        text = "\n".join(line.lstrip(";").strip() for line in self.comment)
        doc, _, soundness = text.partition("Sound:")
        return Rule(
            name.group(1),
            self.family,
            ruleset.group(1),
            " ".join(doc.split()),
            " ".join(soundness.split()),
            self.span,
        )


def _forms(source: Source) -> Iterator[_Form]:
    depth = start = 0
    family = "exact"
    comment: list[str] = []
    last_line = 0
    for token in _TOKEN.finditer(source.text):
        text = token.group()
        if text.startswith(";"):
            if depth == 0:
                named = _FAMILY.match(text)
                family = named.group(1) if named else family
                line = source.text.count("\n", 0, token.start())
                comment = [*comment, text] if line == last_line + 1 and not named else [] if named else [text]
                last_line = line
        elif text == "(":
            start = token.start() if depth == 0 else start
            depth += 1
        elif text == ")":
            depth -= 1
            if depth < 0:
                raise LumiError("rules error", "unbalanced )", Span(source, token.start(), token.end()))
            if depth == 0:
                first = source.text.count("\n", 0, start)
                above = tuple(comment) if first == last_line + 1 else ()
                yield _Form(Span(source, start, token.end()), above, family)
                comment = []
    if depth:
        raise LumiError("rules error", "unbalanced (", Span(source, start, start + 1))


def select(rules: Iterable[Rule], families: Iterable[str], without: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The rules of the analyses and of `families`, less those whose name or ruleset is in `without`."""
    chosen, left_out = {ANALYSIS, *families}, frozenset(without)
    return tuple(r for r in rules if r.family in chosen and not {r.name, r.ruleset} & left_out)
