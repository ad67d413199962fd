"""Every operator on every type it may meet, compiled and in numpy, against the meaning of field terms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.dtype import BF16, BOOL, DTYPES, F8E4M3, F8E5M2, F16, F32, F64, I32, I64, DType
from lumi.field.evaluate import evaluate_term
from lumi.field.term import Bin, In, Sel, Term, Un
from lumi.llir.arithmetic import from_memory, to_memory
from lumi.llir.kernel import Step
from tests.backends.cpu.kernels import Array, C, Compiled, elementwise

FLOATS = (F16, BF16, F32, F64, F8E4M3, F8E5M2)
INTS = tuple(d for d in DTYPES.values() if d.kind in ("int", "uint"))
FLOAT_UNARY = ("exp2", "log2", "sin", "sqrt", "recip", "floor", "abs", "recipz")
COMPARE = ("lt", "le", "eq")
FLOAT_BINARY = ("add", "sub", "mul", "max", "mod", "rem", "subni", "mulz")
INT_BINARY = ("add", "sub", "mul", "max", "mod", "div", "rem", "shr", "bitand")
INEXACT = ("exp2", "log2", "sin")
SPACING = {F8E5M2: 0.25, F8E4M3: 0.125, F16: 2.0**-10, BF16: 2.0**-7, F32: 2.0**-22, F64: 2.0**-50}

SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, 80.0, -80.0, 127.0, 127.5, 128.0, -128.0, -129.0),
    *(255.0, 256.0, 1e-30, -1e-30, 1e-41, 2.0**24, 2.0**24 + 1, -(2.0**31), 2.0**31, 2.0**63, -(2.0**63)),
    *(65504.0, 65520.0, 1e30, np.inf, -np.inf, np.nan, 1 / 3, np.pi),
    *(1 + 2.0**-11, -1 - 2.0**-11, 1 + 2.0**-12),
)


def cases() -> Iterator[tuple[str, DType, DType, int]]:
    """Operator, operand type, result type, number of arguments."""
    for dtype in FLOATS:
        yield from ((op, dtype, dtype, 1) for op in FLOAT_UNARY)
        yield from ((op, dtype, dtype, 2) for op in FLOAT_BINARY)
    yield ("tf32", F32, F32, 1)
    for dtype in INTS:
        yield from ((op, dtype, dtype, 2) for op in INT_BINARY)
        yield ("abs", dtype, dtype, 1)
    for dtype in (*FLOATS, *INTS):
        yield from ((op, dtype, BOOL, 2) for op in COMPARE)
    for dtype in DTYPES.values():
        yield ("sel", dtype, dtype, 3)
        yield from ((f"cast.{target}", dtype, target, 1) for target in DTYPES.values())
    yield from ((op, BOOL, BOOL, 2) for op in ("and", "or", "add", "mul", "max"))
    yield ("not", BOOL, BOOL, 1)
    for a, b in (
        (F32, I32),
        (I32, F32),
        (F64, I64),
        (I64, F64),
        (F16, BF16),
        (BF16, F16),
        (F8E4M3, F8E5M2),
        (F8E5M2, F8E4M3),
    ):
        yield (f"bits.{b}", a, b, 1)
    yield from ((f"bits.{b}", DTYPES[a], DTYPES[b], 1) for a, b in (("i8", "u8"), ("u8", "i8")))


CASES = tuple(cases())
NAMES = [f"{op}-{operand}" for op, operand, _, _ in CASES]


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return Compiled([Step(elementwise(op, a, r, n), C) for op, a, r, n in CASES])


def samples(dtype: DType) -> Array:
    """Raw values of a type: its ends, small and special ones."""
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return to_memory(np.array(SPECIAL, np.float64 if dtype == F64 else np.float32), dtype)
    if dtype == BOOL:
        return np.array([False, True])
    low, high = dtype.bounds
    values = [v for v in range(-9, 10) if low <= v <= high]
    return np.array([low, low + 1, *values, 55, 110, high - 1, high], dtype.storage)


def operands(op: str, operand: DType, count: int) -> list[Array]:
    """All combinations of the samples, one array an argument."""
    types = [BOOL, operand, operand] if op == "sel" else [operand] * count
    lists = [samples(t) for t in types]
    if op == "shr":
        lists[1] = np.arange(8 * operand.size).astype(operand.storage)
    rows = list(itertools.product(*(range(len(x)) for x in lists)))
    return [np.array([x[row[k]] for row in rows], x.dtype) for k, x in enumerate(lists)]


def term(op: str, operand: DType, count: int) -> Term:
    leaves = [In("ABC"[k], ("i",), BOOL if op == "sel" and k == 0 else operand) for k in range(count)]
    return Sel(*leaves) if op == "sel" else Un(op, *leaves) if count == 1 else Bin(op, *leaves)


def expected(op: str, operand: DType, result: DType, arrays: list[Array]) -> Array:
    """The reference's values, rounded to the type they are stored in."""
    named = dict(zip("ABC", arrays, strict=False))
    value, _ = evaluate_term(term(op, operand, len(arrays)), {"i": len(arrays[0])}, named, wide=False)
    with np.errstate(all="ignore"):
        return to_memory(value, result)


def check(got: Array, want: Array, dtype: DType, op: str) -> None:
    if not dtype.is_float:
        np.testing.assert_array_equal(got, want)
        return
    x, y = from_memory(got, dtype), from_memory(want, dtype)
    if op in INEXACT:
        spacing = SPACING[dtype]
        np.testing.assert_allclose(x, y, rtol=spacing, atol=1e-6 if op == "sin" else 1e-38)
    else:
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_compiled_operator_equals_the_reference(number: int, compiled: Compiled) -> None:
    op, operand, result, count = CASES[number]
    arrays = operands(op, operand, count)
    length = len(arrays[0])
    held = dict(zip("ABC", arrays, strict=False)) | {"R": np.zeros(length, result.storage)}
    compiled.run(number, held, {"n": length})
    check(held["R"], expected(op, operand, result, arrays), result, op)


@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_numpy_operator_equals_the_reference(number: int) -> None:
    op, operand, result, count = CASES[number]
    arrays = operands(op, operand, count)
    held = dict(zip("ABC", arrays, strict=False)) | {"R": np.zeros(len(arrays[0]), result.storage)}
    interpret.run(elementwise(op, operand, result, count), held, {"n": len(arrays[0])})
    check(held["R"], expected(op, operand, result, arrays), result, op)
