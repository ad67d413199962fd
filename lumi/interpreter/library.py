"""The standard library as a scope: indexed once a process, a definition parsed when it is first used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from lumi import paths
from lumi.errors import LumiError, Source
from lumi.hlir.builder import Builder
from lumi.interpreter import axes, declare, define, host, lists, primitive, special, view
from lumi.interpreter.builtin import BUILTINS
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.scope import Scope
from lumi.syntax import reader

REGISTERED = (axes, declare, define, host, lists, primitive, special, view)
"""The modules whose import registers special forms and builtins."""

TRANSPARENT = ("prelude.lumi", "math.lumi")
"""Files of elementwise functions, as good as built in: their errors are reported where they are called."""

_TOP = re.compile(r"^\(", re.MULTILINE)
_DEFINITION = re.compile(r"\((?:def|defn|deflayer|defmacro)\s+([^\s()\[\]]+)")
_VISIBLE = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start` up to `stop` of a file: one definition and the comment after it."""

    file: str
    start: int
    stop: int


class Library(Scope):
    """The names of the stdlib, around them the builtins.

    A definition begins with a bracket at the start of a line.  That gives an index without parsing, so
    that a model pays only for the part of the library that it uses.
    """

    __slots__ = ("_places", "texts")

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__(Scope(names={**host.NAMES, **BUILTINS}))
        self.texts = texts
        self._places: dict[str, Place] = {}
        for file, text in texts.items():
            starts = [match.start() for match in _TOP.finditer(text)]
            for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
                self._add(file, text, start, stop)

    def _add(self, file: str, text: str, start: int, stop: int) -> None:
        found = _DEFINITION.match(text, start)
        if found is None:
            raise LumiError("form error", f"{file} holds more than definitions: {text[start:stop].strip()}")
        name = found.group(1)
        if name in self._places:
            raise LumiError("name error", f"`{name}` is defined in {self._places[name].file} and {file}")
        self._places[name] = Place(file, start, stop)

    def supply(self, name: str) -> bool:
        """Parse the definition of a library name."""
        if name not in self._places:
            return False
        self._define(self._places[name])
        return name in self.names

    def supply_all(self) -> None:
        """Parse every definition that nothing has used yet."""
        for name in self._places:
            self.find(name)

    def own_names(self) -> Iterator[str]:
        """Every name that a file defines."""
        yield from self._places

    def file_of(self, name: str) -> str | None:
        """The file that defines `name`."""
        return self._places[name].file if name in self._places else None

    def _define(self, place: Place) -> None:
        interpreter = Interpreter(Builder(), self)
        interpreter.top, interpreter.in_file = self, True
        interpreter.transparent = place.file in TRANSPARENT
        # blanks before the definition keep its lines and columns
        text = self.texts[place.file]
        blank = _VISIBLE.sub(" ", text[: place.start])
        for form in reader.read(Source(f"stdlib/{place.file}", blank + text[place.start : place.stop])):
            interpreter.evaluate(form, self)


@cache
def library() -> Library:
    """The library of this process."""
    files = sorted(paths.data("stdlib").glob("*.lumi"))
    return Library({f.name: f.read_text(encoding="utf-8") for f in files})
