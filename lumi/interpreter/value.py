"""What an expression can be while a model is traced: host values, dims, tensors, functions.

Tensors are HLIR nodes; everything else lives only in the interpreter.  Lists are tuples.  A keyword is
its own value.  Forms are values too, inside macros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from lumi.dim import Dim
from lumi.dtype import DType
from lumi.errors import LumiError, Span
from lumi.hlir.graph import Node
from lumi.interpreter.scope import Scope
from lumi.interpreter.signature import Signature
from lumi.syntax import printer
from lumi.syntax.form import Float, Form, Int, Keyword, List, Str, Symbol, Vector

_WIDTH = 60
"""Characters of a host value that a message shows."""


class Kind(Enum):
    """What a function may do and what a call of it opens."""

    FUNCTION = "function"
    LAYER = "layer"
    MODEL = "model"
    MACRO = "macro"


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A `defn`, `deflayer`, `defmodel`, `defmacro` or `fn`, with the scope it was written in.

    An error inside a `transparent` function is reported at the call: the arithmetic of the prelude is
    as good as built in.  `inputs` are the typed parameters of a model.
    """

    name: str
    kind: Kind
    signature: Signature
    body: tuple[Form, ...]
    scope: Scope
    doc: str
    span: Span | None
    transparent: bool
    inputs: tuple[ModelInput, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelInput:
    """`(name dtype [dims] :max n)`: all but the name is evaluated once the configuration is known."""

    name: Symbol
    dtype: Form
    shape: Form
    most: Form | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Builtin:
    """A primitive or a host function; `run` takes the interpreter first."""

    name: str
    signature: Signature
    run: Callable[..., Any]
    doc: str


@dataclass(frozen=True, slots=True)
class Outputs:
    """The named results of a model."""

    nodes: Mapping[str, Node]


@dataclass(slots=True, eq=False)
class Cell:
    """A param or a state: reads see `node`, at first `first`, which `set!` replaces."""

    kind: str
    key: str
    first: Node
    node: Node


Value: TypeAlias = (
    "int | float | bool | str | Dim | DType | Node | Function | Builtin | Outputs | Form"
    " | tuple[Any, ...] | None"
)


def as_value(form: Form) -> Value:
    """A form as macros see it: a literal is its value, everything else itself."""
    return form.value if isinstance(form, Int | Float | Str) else form


def as_form(value: Value, span: Span | None) -> Form:
    """A value as code: what a macro returns."""
    match value:
        case Symbol() | Keyword() | Int() | Float() | Str() | List() | Vector():
            return value
        case None | True | False:
            return Symbol(written(value), span)
        case int():
            return Int(value, span)
        case float():
            return Float(value, span)
        case str():
            return Str(value, span)
        case tuple():
            return Vector(tuple(as_form(item, span) for item in value), span)
        case DType():
            return Symbol(value.name, span)
        case _:
            raise LumiError("macro error", f"{describe(value)} is no code", span, hint="use quasiquote")


def items_of(value: Value | Cell) -> tuple[Value, ...] | None:
    """The items of a list, also of a form that is one; None for anything else."""
    if isinstance(value, List | Vector):
        return tuple([as_value(item) for item in value.items])
    return value if isinstance(value, tuple) else None


def truth(value: Value) -> bool:
    """Whether a host value counts as true: everything but nil and false does."""
    return value is not None and value is not False


def describe(value: Value | Cell) -> str:
    """A value in an error message: a tensor by its type, anything else as it is written."""
    match value:
        case Node():
            return str(value.type)
        case Cell():
            return f"{value.kind} {value.key}"
        case Function() | Builtin():
            return f"the {kind_of(value)} {value.name}"
        case Outputs():
            return f"outputs {' '.join(value.nodes)}"
        case _:
            text = written(value)
            return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 2]} …"


def written(value: Value) -> str:
    """A host value as source text; what has none is shown by its type or name."""
    match value:
        case None:
            return "nil"
        case True | False:
            return str(value).lower()
        case str():
            return printer.show_string(value)
        case float():
            return printer.show(Float(value))
        case tuple():
            return f"[{' '.join(map(written, value))}]"
        case Symbol() | Keyword() | Int() | Float() | Str() | List() | Vector():
            return printer.show(value)
        case Node() | Outputs():
            return describe(value)
        case Function() | Builtin():
            return value.name
        case _:
            return str(value)


def a_kind_of(value: Value) -> str:
    """The kind of a value with its article: "an integer", but "nil"."""
    kind = kind_of(value)
    if value is None or isinstance(value, Outputs):
        return kind
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def kind_of(value: Value) -> str:
    """The kind of a value, as a noun of the language."""
    match value:
        case None:
            return "nil"
        case bool():
            return "bool"
        case int():
            return "integer"
        case float():
            return "float"
        case str():
            return "string"
        case tuple():
            return "list"
        case Dim():
            return "dim"
        case DType():
            return "dtype"
        case Node():
            return "tensor"
        case Function():
            return value.kind.value
        case Builtin():
            return "function"
        case Outputs():
            return "outputs"
        case _:
            return "form"
