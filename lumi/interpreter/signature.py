"""Parameter lists: `[x [a b] & rest :axis -1]`: read from a form, shown in errors, matched with arguments.

Positional parameters are names or destructuring vectors.  `& rest` takes the remaining positional
arguments as a list.  A keyword parameter has a default, a form evaluated in the callee's scope after the
parameters before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lumi.errors import LumiError, Span
from lumi.interpreter.scope import nearest
from lumi.syntax import printer
from lumi.syntax.form import Form, Keyword, Symbol, Vector

REST = "&"

Pattern: TypeAlias = "Symbol | Vector"


@dataclass(frozen=True, slots=True)
class Signature:
    """Positional patterns, the name of the rest or "", keyword defaults by name."""

    positional: tuple[Pattern, ...]
    rest: str
    keywords: dict[str, Form] = field(default_factory=dict)
    span: Span | None = None

    def __str__(self) -> str:
        """As it is written: `[x & rest :axis -1]`."""
        parts = [printer.show(p) for p in self.positional]
        parts += [REST, self.rest] if self.rest else []
        parts += [f":{k} {printer.show(v)}" for k, v in self.keywords.items()]
        return f"[{' '.join(parts)}]"

    def names(self) -> Iterator[Symbol]:
        """Every name that a call binds."""
        for pattern in self.positional:
            yield from pattern_names(pattern)
        for name in [self.rest, *self.keywords]:
            if name:
                yield Symbol(name, self.span)

    def check(self, name: str, count: int, keywords: Iterable[str], extra: Sequence[str] = ()) -> None:
        """Raise unless `count` positional arguments and these keywords, or `extra` ones, fit."""
        least = len(self.positional)
        if count < least or (count > least and not self.rest):
            want = f"at least {least}" if self.rest else str(least)
            noun = "argument" if want == "1" else "arguments"
            raise LumiError(
                "call error", f"{name} takes {want} {noun}, not {count}", hint=f"its parameters are {self}"
            )
        for keyword in keywords:
            if keyword not in self.keywords and keyword not in extra:
                hint = nearest(f":{keyword}", [f":{k}" for k in (*self.keywords, *extra)])
                raise LumiError(
                    "call error",
                    f"{name} has no keyword :{keyword}",
                    hint=f"{hint} its parameters are {self}".strip(),
                )


def read_signature(form: Form, what: str) -> Signature:
    """The parameter list that `form` writes down."""
    if not isinstance(form, Vector):
        raise LumiError(
            "form error", f"{what} needs its parameters in [ ]", form.span, hint="write [x y :key default]"
        )
    positional: list[Pattern] = []
    keywords: dict[str, Form] = {}
    rest, items = "", list(form.items)
    while items:
        item = items.pop(0)
        match item:
            case Keyword(name):
                if not items:
                    raise LumiError("form error", f"keyword :{name} has no default", item.span)
                keywords[name] = items.pop(0)
            case Symbol(name) if name == REST:
                follows = items.pop(0) if items else item
                if not isinstance(follows, Symbol) or follows.name == REST or rest:
                    raise LumiError("form error", "one name must follow &", item.span)
                rest = follows.name
            case Symbol() | Vector() if not keywords and not rest:
                positional.append(read_pattern(item))
            case _:
                raise LumiError(
                    "form error",
                    f"{printer.show(item)} cannot stand here in a parameter list",
                    item.span,
                    hint="positional names first, then & rest, then :key default",
                )
    signature = Signature(tuple(positional), rest, keywords, form.span)
    _check_unique(signature, what)
    return signature


def _check_unique(signature: Signature, what: str) -> None:
    seen: set[str] = set()
    for symbol in signature.names():
        if symbol.name in seen and symbol.name != "_":
            raise LumiError("form error", f"{what} has two parameters {symbol.name}", symbol.span)
        seen.add(symbol.name)


def read_pattern(form: Form) -> Pattern:
    """A name, or a vector of patterns."""
    match form:
        case Symbol():
            return form
        case Vector(items):
            for item in items:
                read_pattern(item)
            return form
        case _:
            raise LumiError(
                "form error", f"{printer.show(form)} is no name", form.span, hint="bind a name or [a b]"
            )


def pattern_names(pattern: Form) -> Iterator[Symbol]:
    """Every name in a pattern."""
    match pattern:
        case Symbol(name) if name not in (REST, "_"):
            yield pattern
        case Vector(items):
            for item in items:
                yield from pattern_names(item)
        case _:
            pass
