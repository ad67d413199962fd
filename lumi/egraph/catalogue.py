"""The rules as a table for people, made from the comments of their files."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from lumi.egraph.rules import Rule


def catalogue(rules: Iterable[Rule]) -> str:
    """Markdown: a heading a file, a row a rule with its family, what it says and why it holds."""
    parts: list[str] = []
    for file, own in groupby(rules, key=lambda r: Path(r.span.source.name).name):
        parts += [f"### {file}", "", "| rule | family | what it says | sound |", "|---|---|---|---|"]
        parts += [f"| `{r.name}` | {r.family} | {_cell(r.doc)} | {_cell(r.soundness)} |" for r in own]
        parts.append("")
    return "\n".join(parts)


def _cell(text: str) -> str:
    """Text that does not end a table cell or begin markup."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
