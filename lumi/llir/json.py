"""Kernels as plain JSON values, and back with every value checked.

`encode` turns a noun into lists, strings and numbers: a dataclass becomes `[type name, field …]`, a type
of element its name, an enum its value, a number that JSON cannot write `["float", "-inf"]`.  `decode` reads
them back by the annotations of the dataclasses and raises `LumiError` for anything that does not fit, so
that a damaged file is found where it is read.  Plans use the same two functions for their own nouns.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from lumi import dim
from lumi.dtype import DTYPES, DType
from lumi.errors import LumiError
from lumi.field import access, index, term
from lumi.llir import kernel

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
T = TypeVar("T")


def encode(value: object) -> Json:
    """The JSON value of a noun: dataclass, tuple, mapping with string keys, dtype, number, string."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else ["float", repr(value)]
        case DType():
            return value.name
        case Enum():
            return encode(value.value)
        case tuple() | list():
            return [encode(v) for v in value]
        case Mapping():
            return {str(k): encode(v) for k, v in value.items()}
        case _ if dataclasses.is_dataclass(value):
            fields = (getattr(value, f.name) for f in dataclasses.fields(value))
            return [type(value).__name__, *map(encode, fields)]
        case _:
            raise TypeError(f"{type(value).__name__} is no noun")


def describe(value: object) -> Json:
    """Like `encode`, but for readers: a dataclass becomes an object of its fields, an infinity null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, DType | type):
        return {f.name: describe(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [describe(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): describe(v) for k, v in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else encode(value)


def decode(kind: type[T], value: Json, where: str = "") -> T:
    """The noun of type `kind` that `value` encodes.

    `where` names the value in messages.  Raises `LumiError` when the value is damaged.
    """
    result: T = _read(kind, value, where or kind.__name__)
    return result


def _fail(where: str, expected: str, value: Json) -> LumiError:
    found = repr(value)
    found = found if len(found) <= 60 else found[:57] + "..."
    return LumiError(
        "damaged data",
        f"{where}: expected {expected}, found {found}",
        hint="the file was truncated or edited, or another version of Lumi wrote it: write it again",
    )


def _read(kind: Any, value: Json, where: str) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _read_union(get_args(kind), value, where)
    if origin is tuple:
        return _read_tuple(get_args(kind), value, where)
    if origin is Literal:
        if value not in get_args(kind):
            raise _fail(where, f"one of {', '.join(map(str, get_args(kind)))}", value)
        return value
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _read_mapping(get_args(kind)[1], value, where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        if value not in [member.value for member in kind]:
            raise _fail(where, f"one of {', '.join(str(m.value) for m in kind)}", value)
        return kind(value)
    if kind is DType:
        if isinstance(value, str) and value in DTYPES:
            return DTYPES[value]
        raise _fail(where, "a dtype", value)
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(kind, value, where)
    return _read_scalar(kind, value, where)


def _read_scalar(kind: Any, value: Json, where: str) -> Any:
    if kind is float:
        return _read_float(value, where)
    if kind is type(None):
        kind = types.NoneType
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _fail(
            where, {str: "a string", int: "an integer", bool: "true or false"}.get(kind, "null"), value
        )
    return value


def _read_float(value: Json, where: str) -> float:
    match value:
        case ["float", "inf" | "-inf" | "nan" as text]:
            return float(text)
        case bool():
            raise _fail(where, "a number", value)
        case int() | float():
            return float(value)
        case _:
            raise _fail(where, "a number", value)


def _read_union(kinds: tuple[Any, ...], value: Json, where: str) -> Any:
    """The one alternative whose JSON form `value` has: alternatives differ in form or in type name."""
    for kind in kinds:
        if _looks_like(kind, value):
            return _read(kind, value, where)
    raise _fail(where, f"one of {', '.join(k.__name__ for k in kinds)}", value)


def _looks_like(kind: Any, value: Json) -> bool:
    if dataclasses.is_dataclass(kind) and kind is not DType:
        return isinstance(value, list) and value[:1] == [getattr(kind, "__name__", "")]
    if kind is float:
        is_special = isinstance(value, list) and value[:1] == ["float"]
        return is_special or (isinstance(value, int | float) and not isinstance(value, bool))
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str if kind in (str, DType) else kind)


def _read_tuple(kinds: tuple[Any, ...], value: Json, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _fail(where, "a list", value)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_read(kinds[0], v, f"{where}[{k}]") for k, v in enumerate(value))
    if len(value) != len(kinds):
        raise _fail(where, f"a list of {len(kinds)}", value)
    return tuple(_read(k, v, f"{where}[{n}]") for n, (k, v) in enumerate(zip(kinds, value, strict=True)))


def _read_mapping(kind: Any, value: Json, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _fail(where, "an object", value)
    return {k: _read(kind, v, f"{where}.{k}") for k, v in value.items()}


def _read_dataclass(kind: Any, value: Json, where: str) -> Any:
    fields = _fields(kind)
    if not isinstance(value, list) or value[:1] != [kind.__name__] or len(value) != len(fields) + 1:
        raise _fail(where, f"a {kind.__name__} of {len(fields)} fields", value)
    parts = [_read(t, v, f"{where}.{name}") for (name, t), v in zip(fields, value[1:], strict=True)]
    return kind(*parts)


@functools.cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Names and resolved types of a dataclass's fields."""
    aliases: dict[str, Any] = {}
    for module in (dim, access, index, term, kernel):
        aliases.update(vars(module))
    hints = get_type_hints(kind, localns=aliases)
    return tuple((f.name, hints[f.name]) for f in dataclasses.fields(kind))
