"""CUDA types and literals: how a dtype is held in a register and in memory, one element or several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lumi.backends.clike.dtypes import HELD, finite
from lumi.dtype import BF16, BOOL, DType
from lumi.llir import arithmetic


@dataclass(frozen=True, slots=True)
class Register:
    """How values of a dtype are held: the suffix of the helpers in kernel.cuh, and the CUDA type."""

    name: str
    type: str


_REGISTERS = {
    r.name: r
    for r in (
        Register("f32", "float"),
        Register("f64", "double"),
        Register("i32", "int"),
        Register("i64", "i64"),
        Register("bool", "int"),
    )
}

_MEMORY = {
    "f16": "u16",
    "bf16": "u16",
    "f8e4m3": "u8",
    "f8e5m2": "u8",
    "f32": "float",
    "f64": "double",
    "i8": "i8",
    "u8": "u8",
    "i32": "int",
    "i64": "i64",
    "bool": "u8",
}

_WIDE = {16: "uint4", 8: "uint2", 4: "u32"}
"""The vector type that moves so many bytes at once."""

_PARTS = {
    "f16": "from_f16((u16)({word} >> {shift}))",
    "bf16": "from_bf16((u16)({word} >> {shift}))",
    "f8e4m3": "from_f8e4m3((u8)({word} >> {shift}))",
    "f8e5m2": "from_f8e5m2((u8)({word} >> {shift}))",
    "f32": "__uint_as_float({word})",
    "i32": "(int){word}",
    "i8": "(int)(i8)({word} >> {shift})",
    "u8": "(int)(u8)({word} >> {shift})",
    "bool": "(int)(({word} >> {shift} & 255) != 0)",
}


def register(dtype: DType) -> Register:
    """How values of `dtype` are held in registers."""
    return _REGISTERS[HELD[dtype.name]]


def memory(dtype: DType) -> str:
    """The CUDA type of an element in memory."""
    return _MEMORY[dtype.name]


def literal(value: float, dtype: DType) -> str:
    """A weak constant in the type it meets; floats keep every bit."""
    held = arithmetic.number(value, dtype)
    if not dtype.is_float:
        return _integer(int(held), dtype)
    number = float(held)
    cast = "(double)" if dtype.name == "f64" else ""
    if math.isnan(number):
        return f"{cast}__int_as_float(0x7fc00000)"
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}{cast}INFINITY"
    return finite(number, dtype)


def _integer(value: int, dtype: DType) -> str:
    if dtype.size < 8:
        return str(value) if value > -(2**31) else "INT32_MIN"
    return f"{value}LL" if value > -(2**63) else "INT64_MIN"


def conversion(text: str, source: DType, target: DType) -> str:
    """CUDA for the cast of a held value (see `hlir.op`): saturating to integers, wrapping between them."""
    a, b = register(source), register(target)
    if source == target:
        return text
    if target == BOOL:
        return f"(int)({text} != 0)"
    if source.is_float and not target.is_float:
        return f"{a.name}_to_{target.name}({text})"
    if a.type != b.type:
        text = f"({b.type})({text})"
    return text if source == BOOL else rounded(text, target)


def rounded(text: str, dtype: DType) -> str:
    """CUDA that brings the result of register arithmetic back: narrow floats round, integers wrap."""
    if dtype.is_narrow:
        return f"round_{dtype.name}({text})"
    if dtype.name in ("u8", "i8"):
        return f"(int)({dtype.name})({text})"
    return text


def load(pointer: str, dtype: DType) -> str:
    """CUDA that reads one element at `pointer` and holds it."""
    element = f"*({pointer})"
    if dtype.is_narrow:
        return f"from_{dtype.name}({element})"
    return f"(int)({element} != 0)" if dtype == BOOL else element


def store(pointer: str, text: str, dtype: DType) -> str:
    """CUDA statement that writes one held value at `pointer`."""
    return f"*({pointer}) = {raw(text, dtype)};"


def raw(text: str, dtype: DType) -> str:
    """CUDA for what memory holds of a held value, which is rounded already."""
    if not dtype.is_narrow:
        return text
    return f"{'held' if dtype == BF16 else 'to'}_{dtype.name}({text})"


def wide_load(pointer: str, dtype: DType, count: int, passing: bool) -> str:
    """CUDA that reads `count` neighbours, 4, 8 or 16 bytes, as `words`; `passing` ones are read once."""
    return f"wide_{'pass' if passing else 'load'}((const {_WIDE[count * dtype.size]} *)({pointer}))"


def part(words: str, number: int, dtype: DType) -> str:
    """CUDA for the held value of one of the elements that `wide_load` read."""
    if dtype.size == 8:
        joined = f"join({words}.w[{2 * number}], {words}.w[{2 * number + 1}])"
        return f"__longlong_as_double({joined})" if dtype.is_float else joined
    place = number * dtype.size
    return _PARTS[dtype.name].format(word=f"{words}.w[{place // 4}]", shift=8 * (place % 4))


def wide_store(pointer: str, texts: Sequence[str], dtype: DType, rounds: bool = False) -> str:
    """CUDA statement that writes neighbours, 4, 8 or 16 bytes of them; it `rounds` f32 to halves."""
    words: list[str] = []
    if dtype.size == 8:
        for text in texts:
            whole = f"(u64)__double_as_longlong({text})" if dtype.is_float else f"(u64){text}"
            words += [f"(u32)({whole})", f"(u32)({whole} >> 32)"]
    elif dtype.size == 4:
        words = [f"__float_as_uint({t})" if dtype.is_float else f"(u32){t}" for t in texts]
    elif dtype.size == 2:
        two = f"two_{dtype.name}" if rounds else "two"
        halves = texts if rounds else [raw(t, dtype) for t in texts]
        words = [f"{two}({a}, {b})" for a, b in zip(halves[::2], halves[1::2], strict=True)]
    else:
        texts = [raw(t, dtype) for t in texts]
        words = [f"four({', '.join(texts[k : k + 4])})" for k in range(0, len(texts), 4)]
    size = len(texts) * dtype.size
    return f"wide_store(({_WIDE[size]} *)({pointer}), {', '.join(words)});"
