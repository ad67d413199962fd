"""Sources, spans and the one exception a user sees.

A `LumiError` says what went wrong, where (file, line, column and a caret), what was expected, and how
the place was reached.  Every package raises it; nothing else is shown without a traceback.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Source:
    """A text and the name it is shown under: a path, or `<repl>`."""

    name: str
    text: str

    def line(self, number: int) -> str:
        """The text of the one-based line `number`, without its line end."""
        lines = self.text.splitlines()
        return lines[number - 1] if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` up to `stop` of a source."""

    source: Source
    start: int
    stop: int

    @property
    def line(self) -> int:
        """One-based line of the first character."""
        return self.source.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """One-based column of the first character."""
        return self.start - (self.source.text.rfind("\n", 0, self.start) + 1) + 1

    @property
    def text(self) -> str:
        """The characters themselves."""
        return self.source.text[self.start : self.stop]

    def __str__(self) -> str:
        """`file:line:column`."""
        return f"{self.source.name}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        """The same as `str`: a span never prints its whole source."""
        return f"Span({self})"


@dataclass(frozen=True, slots=True)
class Frame:
    """One call on the way to an error: the callee's name and the place of the call."""

    name: str
    span: Span | None


@dataclass
class LumiError(Exception):
    """A mistake in the user's input or surroundings, with everything needed to mend it.

    `kind` names the class of mistake ("shape error", "weights error"), `message` what is wrong,
    `label` stands behind the caret (usually a type), `hint` says what to do, `trace` is innermost first.
    """

    kind: str
    message: str
    span: Span | None = None
    label: str = ""
    hint: str = ""
    trace: tuple[Frame, ...] = field(default=())

    def __post_init__(self) -> None:
        """Give `Exception` its text, so that a plain traceback reads well too."""
        super().__init__(self.message)

    def at(self, span: Span | None) -> LumiError:
        """The same error, placed at `span` unless it already has a place."""
        if self.span is None:
            self.span = span
        return self

    def called(self, name: str, span: Span | None) -> LumiError:
        """The same error, seen from one call further out."""
        self.trace = (*self.trace, Frame(name, span))
        return self

    def render(self) -> str:
        """The message as a user sees it: place, text line, caret, hint, calls."""
        place = f"{self.span}: " if self.span else ""
        lines = [f"{place}{self.kind}: {self.message}"]
        if self.span:
            lines += self._excerpt(self.span)
        if self.hint:
            lines.append(f"  = {self.hint}")
        for frame in self.trace:
            where = f", called at {frame.span}" if frame.span else ""
            lines.append(f"  = in {frame.name}{where}")
        return "\n".join(lines)

    def _excerpt(self, span: Span) -> list[str]:
        text = span.source.line(span.line)
        number = f"{span.line} | "
        width = max(1, min(span.stop - span.start, len(text) - span.column + 1))
        pad = " " * (len(number) + span.column - 1)
        return [number + text, f"{pad}{'^' * width} {self.label}".rstrip()]

    def __str__(self) -> str:
        """The rendered message."""
        return self.render()
