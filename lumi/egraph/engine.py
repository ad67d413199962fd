"""An egglog e-graph driven by text; the only module that talks to egglog."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import egglog.bindings

from lumi.errors import LumiError


class Engine:
    """One e-graph.  After an error it must be thrown away: a program is not atomic."""

    def __init__(self) -> None:
        self._graph = egglog.bindings.EGraph()

    def parse(self, text: str) -> list[Any]:
        """The commands of a program.  Raises `LumiError` on a syntax error."""
        return list(self._call(self._graph.parse_program, text, text))

    def run(self, text: str) -> list[Any]:
        """Run a program and return what its commands report."""
        return self.execute(self.parse(text), text)

    def load(self, commands: Iterable[str]) -> None:
        """Run many commands, each parsed alone: egglog 13 copies the text for every span of it."""
        parsed = [p for command in commands for p in self.parse(command)]
        self.execute(parsed, "a program")

    def execute(self, commands: list[Any], text: str) -> list[Any]:
        """Run parsed commands; `text` is shown when one fails."""
        return list(self._call(self._graph.run_program, text, *commands))

    def freeze(self) -> Any:
        """The tables of the e-graph."""
        return self._graph.freeze()

    def plain(self, sort: str, value: Any) -> int | float | str:
        """A primitive as a Python value; the converter of another sort would return garbage."""
        convert: dict[str, Callable[[Any], int | float | str]] = {
            "i64": self._graph.value_to_i64,
            "f64": self._graph.value_to_f64,
            "String": self._graph.value_to_string,
        }
        return convert[sort](value)

    def size(self) -> int:
        """Number of tuples in all tables."""
        (sizes,) = self.run("(print-size)")
        return sum(count for _, count in sizes.sizes)

    @staticmethod
    def _call(function: Any, text: str, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as error:  # egglog 13 panics with a BaseException
            if isinstance(error, Exception) or type(error).__name__ == "PanicException":
                shown = text if len(text) < 400 else text[:400] + " …"
                raise LumiError("rules error", f"egglog refuses {shown}\n{error}") from error
            raise


@dataclass(slots=True)
class _Kept:
    """An e-graph in which a program was run, and whether something else was run in it since."""

    program: tuple[str, ...]
    engine: Engine
    is_used: bool = False


_PREPARED = threading.local()  # egglog 13 lets only the thread that made an e-graph touch it


@contextmanager
def prepared(program: tuple[str, ...]) -> Iterator[Engine]:
    """An e-graph in which nothing but `program` was run.

    Rules take longer to load than a region to saturate, so the last e-graph of a thread is kept.
    """
    kept: _Kept | None = getattr(_PREPARED, "kept", None)
    if kept is None or kept.program != program:
        kept = _Kept(program, Engine())
        kept.engine.load(program)
        kept.engine.run("(push)")
    _restore(kept)
    kept.is_used, _PREPARED.kept = True, None
    yield kept.engine
    _PREPARED.kept = kept


def restore() -> None:
    """Undo what was done to this thread's e-graph, while there is time: the next region would wait for it."""
    kept: _Kept | None = getattr(_PREPARED, "kept", None)
    if kept is not None:
        _restore(kept)


def _restore(kept: _Kept) -> None:
    if kept.is_used:
        kept.engine.run("(pop)")
        kept.engine.run("(push)")
        kept.is_used = False
