"""C types and literals: how a dtype is held in a register, in eight lanes, and in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lumi.backends.clike.dtypes import HELD, finite
from lumi.dtype import BOOL, DType
from lumi.llir import arithmetic

LANES = 8
"""Elements of a vector register: 32 bytes of f32, as in AVX2; wider or narrower machines split or join."""


@dataclass(frozen=True, slots=True)
class Register:
    """How values of a dtype are held: the suffix of the helpers in kernel.h, the C types of 1 and 8."""

    name: str
    scalar: str
    vector: str


_REGISTERS = {
    r.name: r
    for r in (
        Register("f32", "float", "f32x8"),
        Register("f64", "double", "f64x8"),
        Register("i32", "int32_t", "i32x8"),
        Register("i64", "int64_t", "i64x8"),
        Register("bool", "int32_t", "i32x8"),
    )
}

_MEMORY = {
    "f16": "uint16_t",
    "bf16": "uint16_t",
    "f8e4m3": "uint8_t",
    "f8e5m2": "uint8_t",
    "f32": "float",
    "f64": "double",
    "i8": "int8_t",
    "u8": "uint8_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "bool": "uint8_t",
}


def register(dtype: DType) -> Register:
    """How values of `dtype` are held in registers."""
    return _REGISTERS[HELD[dtype.name]]


def memory(dtype: DType) -> str:
    """The C type of an element in memory."""
    return _MEMORY[dtype.name]


def literal(value: float, dtype: DType) -> str:
    """A weak constant in the type it meets; floats keep every bit."""
    held = arithmetic.number(value, dtype)
    if not dtype.is_float:
        return _integer(int(held), dtype)
    number = float(held)
    suffix = "" if dtype.name == "f64" else "f"
    if math.isnan(number):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
    return finite(number, dtype)


def _integer(value: int, dtype: DType) -> str:
    if dtype.size < 8:
        return str(value) if value > -(2**31) else "INT32_MIN"
    return f"INT64_C({value})" if value > -(2**63) else "INT64_MIN"


def conversion(text: str, source: DType, target: DType, vector: bool) -> str:
    """C for the cast of a held value (see `hlir.op`): saturating to integers, wrapping between them."""
    a, b, lanes = register(source), register(target), "x8" if vector else ""
    if source == target:
        return text
    if target == BOOL:
        test = f"({text} != 0)"
        return f"narrow_mask{test}" if vector and a.name in ("f64", "i64") else test
    if source == BOOL:
        text = f"({text} & 1)" if vector else text
        a = _REGISTERS["i32"]
    if source.is_float and not target.is_float:
        return f"{a.name}{lanes}_to_{target.name}({text})"
    if a != b:
        text = f"__builtin_convertvector({text}, {b.vector})" if vector else f"(({b.scalar}){text})"
    return rounded(text, target, vector)


def rounded(text: str, dtype: DType, vector: bool) -> str:
    """C that brings the result of register arithmetic back into `dtype`: narrow floats round, ints wrap."""
    if dtype.is_narrow:
        return f"round_{dtype.name}{'x8' if vector else ''}({text})"
    if dtype.name == "u8":
        return f"({text} & 255)"
    if dtype.name == "i8":
        return f"(({text} << 24) >> 24)" if vector else f"((int8_t){text})"
    return text


def load(pointer: str, dtype: DType, vector: bool) -> str:
    """C that reads one element, or eight in a row, at `pointer` and holds it."""
    if vector:
        return f"ld_{dtype.name}({pointer})"
    raw = f"*({pointer})"
    if dtype.is_narrow:
        return f"from_{dtype.name}({raw})"
    return f"({raw} != 0)" if dtype == BOOL else raw


def store(pointer: str, text: str, dtype: DType, vector: bool) -> str:
    """C statement that writes one held value, or eight, at `pointer`."""
    if vector:
        return f"st_{dtype.name}({pointer}, {text});"
    if dtype.is_narrow:
        text = f"to_{dtype.name}({text})"
    return f"*({pointer}) = {text};"
