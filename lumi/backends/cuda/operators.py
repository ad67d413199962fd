"""Elementwise operators as CUDA expressions of held values."""

from __future__ import annotations

from lumi.backends.cuda.ctype import conversion, register, rounded
from lumi.dtype import BOOL, DType

_INFIX = {"add": "+", "sub": "-", "mul": "*"}
_COMPARE = {"lt": "<", "le": "<=", "eq": "=="}
_EXACT_IN_NARROW = ("max", "bitand", "rem", "mod", "shr")
"""Operators whose result fits a narrow integer when the operands do."""

_TRUTH = {
    "not": "(!{0})",
    "lt": "(!{0} & {1})",
    "le": "(!{0} | {1})",
    "eq": "({0} == {1})",
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "mul": "({0} & {1})",
    "add": "({0} | {1})",
    "max": "({0} | {1})",
    "bitand": "({0} & {1})",
}

_SAME_IN_INTEGERS = {"subni": "sub", "mulz": "mul"}


def apply(op: str, args: list[str], operand: DType, result: DType) -> str:
    """CUDA for `op` (no cast or bitcast) of operands of one type; for `sel` the branches' type."""
    if op == "sel":
        return f"({args[0]} ? {args[1]} : {args[2]})"
    if operand == BOOL:
        return _TRUTH[op].format(*args)
    if op in _COMPARE:
        return f"(int)({args[0]} {_COMPARE[op]} {args[1]})"
    if operand.is_float:
        text = f"({args[0]} {_INFIX[op]} {args[1]})" if op in _INFIX else _call(op, args, operand)
        return rounded(text, result)
    return _integer(_SAME_IN_INTEGERS.get(op, op), args, operand, result)


def _integer(op: str, args: list[str], operand: DType, result: DType) -> str:
    if op == "floor":
        return args[0]
    text = f"({args[0]} & {args[1]})" if op == "bitand" else _call(op, args, operand)
    return text if op in _EXACT_IN_NARROW else rounded(text, result)


def _call(op: str, args: list[str], operand: DType) -> str:
    return f"{op}_{register(operand).name}({', '.join(args)})"


def combine(op: str, accumulator: str, value: str, dtype: DType) -> str:
    """CUDA for an accumulator after it takes in a value; narrow ints wrap and halves round at the end.

    Which zero is the larger is as open here as the order in which values come.
    """
    kind = register(dtype).name
    return f"{'most' if (op, kind) == ('max', 'f32') else f'{op}_{kind}'}({accumulator}, {value})"


def multiply_add(a: str, b: str, accumulator: str, dtype: DType) -> str:
    """CUDA for accumulator + a · b, rounded once."""
    if dtype == BOOL:
        return f"({accumulator} | ({a} & {b}))"
    return f"fma_{register(dtype).name}({a}, {b}, {accumulator})"


def bitcast(text: str, source: DType, target: DType) -> str:
    """CUDA that reads the bytes of a held value as another dtype of the same size."""
    a, b = register(source), register(target)
    if source.is_narrow and target.is_narrow:
        return text if source == target else f"from_{target}(to_{source}({text}))"
    if source.size == 1:
        return conversion(text, source, target)
    return text if a == b else f"bits_{a.name}_to_{b.name}({text})"
