"""Forms: what the reader makes of a text.  Plain data; meaning comes later.

Two forms are equal when they read the same: spans are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from lumi.errors import Span


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name: `softmax`, `->`, `...`, `-inf`."""

    name: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Keyword:
    """The name of an argument, held without its colon: `:axis`."""

    name: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Int:
    """An integer of any size."""

    value: int
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Float:
    """A finite f64; infinities and NaN are symbols in text."""

    value: float
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Str:
    """A text, with its escapes resolved."""

    value: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class List:
    """`( )`: a call or a special form."""

    items: tuple[Form, ...]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Vector:
    """`[ ]`: a list of values, bindings, axes or a shape."""

    items: tuple[Form, ...]
    span: Span | None = field(default=None, compare=False)


Atom: TypeAlias = "Symbol | Keyword | Int | Float | Str"
Form: TypeAlias = "Atom | List | Vector"

PREFIXES = {"'": "quote", "`": "quasiquote", "~": "unquote", "~@": "unquote-splicing"}
"""Each prefix and the head of the two-item list that it stands for: `'x` reads as `(quote x)`."""
