"""HTML read strictly: every element is closed where it must be, and what it holds is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "link", "img"}


@dataclass
class Element:
    """An element with its attributes, the text directly in it, and the elements in it."""

    tag: str
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str, kind: str = "") -> list[Element]:
        """Every element of a tag below, in order; with `kind`, those of that class."""
        found = []
        for child in self.children:
            if child.tag == tag and (not kind or kind in child.attributes.get("class", "").split()):
                found.append(child)
            found += child.all(tag, kind)
        return found

    def every(self) -> list[Element]:
        """Every element below."""
        return [e for child in self.children for e in (child, *child.every())]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"{tag} has an attribute twice"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes {self.open[-1].tag}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data


def parse(text: str) -> Element:
    """The document, as an element that holds all others."""
    parser = _Parser()
    parser.feed(text)
    parser.close()
    assert len(parser.open) == 1, f"{parser.open[-1].tag} is never closed"
    return parser.open[0]
