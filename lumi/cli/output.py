"""What a command says: text for people, or one JSON object for programs.

With `--json` standard output carries the object and nothing else; all other text goes to standard error.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lumi.errors import LumiError

Report = Mapping[str, Any]

INTERRUPTED = 130
"""The exit status after Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command found, as plain values, and its exit status."""

    report: Report = field(default_factory=dict)
    status: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command writes."""

    as_json: bool

    def say(self, text: str, end: str = "\n") -> None:
        """A result for people; silent when the result is JSON."""
        if not self.as_json:
            _print(text, end)

    def note(self, text: str) -> None:
        """A remark that is no result."""
        print(text, file=sys.stderr, flush=True)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Meanwhile pass on what takes time the first time, such as kernels that are compiled."""
        logger, handler = logging.getLogger("lumi"), logging.StreamHandler(sys.stderr)
        before = logger.level
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.setLevel(before)
            logger.removeHandler(handler)

    def finish(self, report: Report) -> None:
        """The result for programs."""
        if self.as_json:
            _print(json.dumps(_finite(report), ensure_ascii=False, allow_nan=False))

    def fail(self, error: LumiError) -> None:
        """A mistake, in the form the caller reads."""
        if self.as_json:
            self.finish({"error": describe(error)})
        else:
            self.note(error.render())


def drop_output() -> None:
    """Let what is still to be flushed go nowhere, else Python complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(text: str, end: str = "\n") -> None:
    """Print at once.  Raises `LumiError` where a disk is full, `BrokenPipeError` where nobody reads."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise LumiError("file error", f"standard output cannot be written: {error.strerror}") from None


def describe(error: LumiError) -> dict[str, Any]:
    """The error as plain values; `text` is what a person would have seen."""
    found: dict[str, Any] = {"kind": error.kind, "message": error.message}
    if error.hint:
        found["hint"] = error.hint
    if error.span:
        span = error.span
        found |= {"file": span.source.name, "line": span.line, "column": span.column}
    return {**found, "text": error.render()}


def duration(seconds: float | None) -> str:
    """A time in words: `1.25 ms`."""
    if seconds is None:
        return "unknown"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def counted(number: int, noun: str) -> str:
    """`1 kernel`, `2 kernels`, `2 launches`."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def aligned(rows: Sequence[Sequence[str]], left: Collection[int]) -> list[str]:
    """Each row as a line, its cells in columns, of which those numbered in `left` are flush left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if n in left else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _finite(value: Any) -> Any:
    """The value as JSON has it: infinities and NaN, which it lacks, become strings."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
