"""How Python functions become builtins, and how their arguments are read.

A builtin takes the interpreter, then its arguments; keyword-only parameters are its keywords, with
`-` for `_`.  Numbers and dims lift to tensors here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from lumi.dim import Dim, Extent
from lumi.dtype import BOOL, F32, I32, DType
from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.signature import Signature
from lumi.interpreter.value import Builtin, Value, a_kind_of, as_form, describe
from lumi.syntax.form import Symbol

Run: TypeAlias = Callable[..., Any]

BUILTINS: dict[str, Builtin] = {}
"""Builtins by name, filled by the modules that define them."""


def builtin(name: str) -> Callable[[Run], Run]:
    """Register a Python function under `name`; its docstring and parameters are shown to users."""

    def register(run: Run) -> Run:
        BUILTINS[name] = Builtin(name, _signature(run), run, inspect.getdoc(run) or "")
        return run

    return register


def _signature(run: Run) -> Signature:
    positional: list[Symbol] = []
    keywords, rest = {}, ""
    for parameter in list(inspect.signature(run).parameters.values())[1:]:
        name = parameter.name.strip("_").replace("_", "-")
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            rest = name
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            keywords[name] = as_form(parameter.default, None)
        else:
            positional.append(Symbol(name))
    return Signature(tuple(positional), rest, keywords)


def type_error(what: str, value: Value, hint: str = "") -> LumiError:
    """The error of an argument of the wrong kind."""
    shown = describe(value)
    found = shown if isinstance(value, Node) else a_kind_of(value)
    return LumiError("type error", f"{what} is expected, not {found}", label=shown, hint=hint)


def tensor(interpreter: Interpreter, value: Value, like: DType | None = None) -> Node:
    """A value as a tensor: a number takes the dtype `like`, a dim becomes its runtime value."""
    builder = interpreter.builder
    match value:
        case Node():
            return value
        case bool():
            if like not in (None, BOOL):
                raise _no_element(value, like, "only bool tensors hold true and false")
            return builder.const(value, BOOL)
        case int():
            return builder.const(value, like or I32)
        case float():
            dtype = like or F32
            if not dtype.is_float and not value.is_integer():
                raise _no_element(value, dtype, "cast the tensor to a float dtype first")
            return builder.const(value, dtype)
        case Dim():
            symbol = builder.symbol(value)
            return builder.cast(symbol, like) if like else symbol
        case _:
            raise type_error("a tensor", value)


def _no_element(value: Value, of: DType | None, hint: str) -> LumiError:
    return LumiError("type error", f"{describe(value)} is no {of}", hint=hint)


def tensors(interpreter: Interpreter, *values: Value) -> list[Node]:
    """Operands of one dtype: numbers and dims lift to that of the first tensor among them."""
    like = next((v.dtype for v in values if isinstance(v, Node)), None)
    if like is None:
        like = F32 if any(isinstance(v, float) for v in values) else None
    return [tensor(interpreter, v, like) for v in values]


def integer(value: Value, what: str = "an integer") -> int:
    """A host integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    hint = "a dim is known only when the model runs" if isinstance(value, Dim) else ""
    raise type_error(what, value, hint)


def extent(value: Value) -> Extent:
    """A size: an integer or a dim."""
    if isinstance(value, Dim) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise type_error("a size", value, "sizes are integers and dims")


def shape(value: Value) -> tuple[Extent, ...]:
    """A list of nonnegative sizes."""
    if not isinstance(value, tuple):
        raise type_error("a shape", value, "a shape is a list: [batch 3]")
    sizes = tuple(extent(v) for v in value)
    for size in sizes:
        if isinstance(size, int) and size < 0:
            raise LumiError("shape error", f"a size is {size}", hint="sizes are not negative")
    return sizes


def axes(value: Value, rank: int) -> Sequence[int]:
    """An axis, a list of axes, or nil for all of `rank`."""
    if value is None:
        return range(rank)
    if isinstance(value, tuple):
        return [integer(v, "an axis") for v in value]
    return [integer(value, "an axis or a list of axes")]


def dtype(value: Value) -> DType:
    """A dtype."""
    if isinstance(value, DType):
        return value
    raise type_error("a dtype", value, "dtypes are written f32, bf16, i32 …")


def number(value: Value) -> float | int | bool:
    """A host number."""
    if isinstance(value, int | float):
        return value
    raise type_error("a number", value)


def flag(value: Value) -> bool:
    """A host truth value."""
    if isinstance(value, bool):
        return value
    raise type_error("true or false", value)


def text(value: Value) -> str:
    """A string."""
    if isinstance(value, str):
        return value
    raise type_error("a string", value)
