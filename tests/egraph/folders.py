"""Copies of the rules folder with something added or changed."""

from __future__ import annotations

import re
from pathlib import Path

from lumi import paths
from lumi.egraph.rules import RuleBook, book


def with_file(folder: Path, name: str, text: str) -> RuleBook:
    """The rules that come with Lumi, and one more file, `explained` unless it names a family."""
    _copy(folder)
    (folder / name).write_text(text if "; family:" in text else explained(text))
    return book(folder)


def explained(text: str) -> str:
    """Rules with a family, and above each a comment that says nothing."""
    comment = "; Planted by a test.\n; Sound: that is what the test asks.\n"
    return "; family: exact\n\n" + re.sub(
        r"^(?=\((?:rule|rewrite|birewrite)\s)", comment, text, flags=re.MULTILINE
    )


def with_change(folder: Path, old: str, new: str) -> RuleBook:
    """The rules that come with Lumi with one text, which must occur, replaced by another."""
    _copy(folder)
    found = 0
    for path in folder.glob("*.egg"):
        text = path.read_text()
        found += text.count(old)
        path.write_text(text.replace(old, new))
    assert found, f"no rule says {old}"
    return book(folder)


def _copy(folder: Path) -> None:
    for path in paths.data("rules").glob("*.egg"):
        (folder / path.name).write_text(path.read_text())
