"""The Python in the documents runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lumi.search.seed import CUTS, Weights, families

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SNIPPETS = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    )
]


def test_every_word_for_where_a_search_begins_is_explained() -> None:
    page = (ROOT / "docs" / "debugging.md").read_text()
    section = page.partition("## Where a search begins")[2].partition("\n## ")[0]
    explained = {
        word for cell in re.findall(r"^\|([^|]*)\|", section, re.MULTILINE) for word in _quoted(cell)
    }
    styles = {word for weights in families(True, True) + families(False, False) for word in _words(weights)}
    assert explained == {*CUTS, *styles}


def _quoted(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


def _words(weights: Weights) -> list[str]:
    return str(weights).strip("()").split(", ")


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 3


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "snippet", "exec"), {"__name__": "__main__"})
