"""The standard library as a scope: read once a process, a file when one of its names is first used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lumi import paths
from lumi.errors import LumiError, Source
from lumi.hlir.builder import Builder
from lumi.interpreter import axes, declare, define, host, primitive, special
from lumi.interpreter.builtin import BUILTINS
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.scope import MISSING, Scope
from lumi.syntax import reader

REGISTERED = (axes, declare, define, host, primitive, special)
"""The modules whose import registers special forms and builtins."""

TRANSPARENT = ("prelude.lumi", "math.lumi")
"""Files of elementwise functions, as good as built in: their errors are reported where they are called."""

_DEFINITION = re.compile(r"^\((?:def|defn|deflayer|defmacro)\s+([^\s()\[\]]+)", re.MULTILINE)


class Library(Scope):
    """The names of the stdlib, around them the builtins.

    An index of the definitions is made from their first lines; a file is parsed at the first use of one
    of its names, so that a small model does not pay for the whole library.
    """

    __slots__ = ("_files", "_read", "texts")

    def __init__(self, texts: dict[str, str]) -> None:
        super().__init__(Scope(names={**host.NAMES, **BUILTINS}))
        self.texts = texts
        self._files: dict[str, str] = {}
        self._read: set[str] = set()
        for file, text in texts.items():
            for name in _DEFINITION.findall(text):
                if name in self._files:
                    raise LumiError("name error", f"`{name}` is defined in {self._files[name]} and {file}")
                self._files[name] = file

    def own(self, name: str) -> Any:
        """The value of a library name, read from its file now if need be."""
        if name not in self.names and name in self._files:
            self.read(self._files[name])
        return self.names.get(name, MISSING)

    def own_names(self) -> Iterator[str]:
        """Every name that a file defines."""
        yield from self._files

    def file_of(self, name: str) -> str | None:
        """The file that defines `name`."""
        return self._files.get(name)

    def read(self, file: str) -> None:
        """Evaluate the definitions of a file, once."""
        if file in self._read:
            return
        self._read.add(file)
        interpreter = Interpreter(Builder(), self)
        interpreter.top, interpreter.in_file = self, True
        interpreter.transparent = file in TRANSPARENT
        for form in reader.read(Source(f"stdlib/{file}", self.texts[file])):
            interpreter.evaluate(form, self)


@cache
def library() -> Library:
    """The library of this process."""
    folder: Path = paths.data("stdlib")
    files = sorted(folder.glob("*.lumi"))
    return Library({f.name: f.read_text(encoding="utf-8") for f in files})
