"""Warns of names that hide the standard library: one namespace means that `:mean` hides the function.

Reads forms only; nothing is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lumi.errors import LumiError
from lumi.interpreter.library import Library
from lumi.interpreter.scope import MISSING
from lumi.interpreter.signature import REST, pattern_names
from lumi.syntax.form import Form, Keyword, List, Symbol, Vector

_DEFINITIONS = ("def", "defn", "deflayer", "defmodel", "defmacro", "defdim")
_QUOTED = ("quote", "quasiquote")


def warnings(forms: Sequence[Form], library: Library) -> list[LumiError]:
    """One warning for each name bound in `forms` that the library, or a builtin, already has."""
    found: list[LumiError] = []
    for symbol in (s for form in forms for s in _bound(form)):
        if library.find(symbol.name) is MISSING:
            continue
        file = library.file_of(symbol.name)
        origin = f"stdlib/{file}" if file else "a builtin"
        found.append(
            LumiError("warning", f"`{symbol.name}` hides {origin}", symbol.span, hint="choose another name")
        )
    return found


def _bound(form: Form) -> Iterator[Symbol]:
    """Every symbol that a form binds, at any depth."""
    match form:
        case List((Symbol(head), *_)) if head in _QUOTED:
            return
        case List((Symbol(head), Symbol() as name, *rest)) if head in _DEFINITIONS:
            yield name
            if rest and isinstance(rest[0], Vector) and head not in ("def", "defdim"):
                yield from _parameters(rest[0])
            yield from _inside(rest)
        case List((Symbol("fn"), Vector() as parameters, *rest)):
            yield from _parameters(parameters)
            yield from _inside(rest)
        case List((Symbol("let" | "for"), Vector(bindings), *rest)):
            yield from _pairs(bindings)
            yield from _inside(rest)
        case List((Symbol("fold"), Vector(first), Vector(second), *rest)):
            yield from _pairs((*first, *second))
            yield from _inside(rest)
        case List(items) | Vector(items):
            yield from _inside(items)
        case _:
            return


def _inside(forms: Sequence[Form]) -> Iterator[Symbol]:
    for form in forms:
        yield from _bound(form)


def _pairs(bindings: Sequence[Form]) -> Iterator[Symbol]:
    for name, value in zip(bindings[::2], bindings[1::2], strict=False):
        yield from pattern_names(name)
        yield from _bound(value)


def _parameters(vector: Vector) -> Iterator[Symbol]:
    keyword: Keyword | None = None
    for item in vector.items:
        match item:
            case _ if keyword is not None:
                yield Symbol(keyword.name, keyword.span)
                yield from _bound(item)
                keyword = None
            case Keyword():
                keyword = item
            case List((Symbol() as name, *_)):
                yield name
            case Symbol(name) if name == REST:
                pass
            case _:
                yield from pattern_names(item)
