"""A page: sections one below another, in one file that names no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from lumi.errors import LumiError


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: `name` is where links lead, `parts` are HTML."""

    name: str
    title: str
    parts: tuple[str, ...]


def page(title: str, sections: Sequence[Section]) -> str:
    """The page as a document."""
    links = " · ".join(f'<a href="#{s.name}">{escape(s.title)}</a>' for s in sections)
    body = "\n".join(_section(s) for s in sections)
    head = f'<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n'
        f"<h1>{escape(title)}</h1>\n<nav>{links}</nav>\n{body}\n</body>\n</html>\n"
    )


def listing(text: str, summary: str = "") -> str:
    """A text as it stands; with a `summary` it is folded away behind it."""
    whole = f"<pre>{escape(text)}</pre>"
    return f"<details><summary>{escape(summary)}</summary>{whole}</details>" if summary else whole


def heading(text: str) -> str:
    """A heading within a section."""
    return f"<h3>{escape(text)}</h3>"


def write(text: str, path: Path) -> None:
    """Write a page to a file.  Raises `LumiError` where that cannot be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LumiError("file error", f"{path} cannot be written: {error.strerror}") from None


def _section(section: Section) -> str:
    parts = "\n".join(section.parts)
    return f'<section id="{section.name}">\n<h2>{escape(section.title)}</h2>\n{parts}\n</section>'


_STYLE = """\
:root { color-scheme: light dark; --line: #8888; --faint: #8883; --input: #7cb342; --output: #fb8c00;
  --temporary: #5c6bc0; --mark: #d32f2f; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1.5em; }
h1 { font-size: 1.5em; } h2 { border-top: 1px solid var(--line); font-size: 1.2em; padding-top: .8em; }
h3 { font-size: 1em; margin-bottom: .3em; }
pre, td, th, svg { font-family: ui-monospace, monospace; font-size: 12px; }
pre { background: var(--faint); overflow-x: auto; padding: .8em; }
b.input { color: var(--input); } b.output { color: var(--output); } b.temporary { color: var(--temporary); }
table { border-collapse: collapse; } .wide { overflow-x: auto; }
td, th { border-bottom: 1px solid var(--faint); padding: .2em .8em; text-align: right; white-space: nowrap; }
td.text, th.text { text-align: left; }
svg text { fill: currentColor; } svg .axis { fill: none; stroke: var(--line); }
svg .box { stroke: currentColor; stroke-opacity: .4; stroke-width: .5; fill-opacity: .55; }
svg .box:hover { fill-opacity: 1; }
svg .input { fill: var(--input); } svg .output { fill: var(--output); }
svg .temporary { fill: var(--temporary); }
svg .live { fill: none; stroke: currentColor; }
svg .peak { fill: none; stroke: var(--mark); stroke-dasharray: 5 3; }
svg text.peak { fill: var(--mark); stroke: none; }
"""
