"""Elementwise operators as C expressions of held values, one element or eight lanes at a time."""

from __future__ import annotations

from lumi.backends.cpu.ctype import conversion, register, rounded
from lumi.dtype import BOOL, DType

_INFIX = {"add": "+", "sub": "-", "mul": "*", "lt": "<", "le": "<=", "eq": "==", "bitand": "&"}
_COMPARE = ("lt", "le", "eq")
_EXACT_IN_NARROW = ("max", "bitand", "floor", "sel", "rem", "mod", "shr")
"""Operators whose result fits a narrow integer when the operands do."""

_TRUTH = {
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "mul": "({0} & {1})",
    "add": "({0} | {1})",
    "max": "({0} | {1})",
    "bitand": "({0} & {1})",
}


def apply(op: str, args: list[str], operand: DType, result: DType, vector: bool) -> str:
    """C for `op` (no cast or bitcast) of operands of one type; for `sel` the branches' type."""
    if op == "sel":
        return _select(args, operand, vector)
    if operand == BOOL:
        return _truth(op, args, vector)
    text = _plain(op, args, operand, vector)
    narrow = op in _EXACT_IN_NARROW and not operand.is_float
    return text if op in _COMPARE or narrow else rounded(text, result, vector)


def _plain(op: str, args: list[str], operand: DType, vector: bool) -> str:
    held = register(operand)
    if op == "floor" and not operand.is_float:
        return args[0]
    if op == "subni" and not operand.is_float:
        op = "sub"
    if op == "mulz" and not operand.is_float:
        op = "mul"
    if op in _INFIX:
        text = f"({args[0]} {_INFIX[op]} {args[1]})"
        wide = vector and op in _COMPARE and operand.size == 8
        return f"narrow_mask{text}" if wide else text
    return f"{op}_{held.name}{'x8' if vector else ''}({', '.join(args)})"


def _select(args: list[str], operand: DType, vector: bool) -> str:
    if not vector:
        return f"({args[0]} ? {args[1]} : {args[2]})"
    return f"select_{_lanes(operand)}({', '.join(args)})"


def _lanes(dtype: DType) -> str:
    return register(dtype).vector


def _truth(op: str, args: list[str], vector: bool) -> str:
    negated = f"(~{args[0]})" if vector else f"(!{args[0]})"
    match op:
        case "not":
            return negated
        case "lt":
            return f"({negated} & {args[1]})"
        case "le":
            return f"({negated} | {args[1]})"
        case "eq":
            return f"(~({args[0]} ^ {args[1]}))" if vector else f"({args[0]} == {args[1]})"
        case _:
            return _TRUTH[op].format(*args)


def shift(text: str, count: str, dtype: DType) -> str:
    """C for eight lanes shifted right by the same count, which is one instruction."""
    return f"shift_{register(dtype).vector}({text}, {count})"


def splat(text: str, dtype: DType) -> str:
    """C for eight lanes of one held value."""
    return f"splat_{register(dtype).name}({text})"


def combine(op: str, accumulator: str, value: str, dtype: DType, vector: bool) -> str:
    """C for an accumulator after it takes in a value; narrow ints wrap and halves round only at the end."""
    if dtype == BOOL:
        return f"({accumulator} {'&' if op == 'mul' else '|'} {value})"
    if op == "max":
        return f"max_{register(dtype).name}{'x8' if vector else ''}({accumulator}, {value})"
    return f"({accumulator} {'+' if op == 'sum' else '*'} {value})"


def multiply_add(a: str, b: str, accumulator: str, dtype: DType, vector: bool) -> str:
    """C for accumulator + a · b, contracted where the machine can."""
    if dtype == BOOL:
        return f"({accumulator} | ({a} & {b}))"
    return f"fma_{register(dtype).name}{'x8' if vector else ''}({a}, {b}, {accumulator})"


def across(op: str, vector: str, dtype: DType) -> str:
    """C for the combination of the eight lanes of an accumulator."""
    if dtype == BOOL:
        return f"{'all' if op == 'mul' else 'any'}_bool({vector})"
    return f"{ {'sum': 'sum', 'max': 'top', 'mul': 'prod'}[op] }_{register(dtype).name}({vector})"


def bitcast(text: str, source: DType, target: DType, vector: bool) -> str:
    """C that reads the bytes of a held value as another dtype of the same size."""
    a, b = register(source), register(target)
    if source.is_narrow and target.is_narrow:
        if source == target:
            return text
        return _each_half(text, source, target) if vector else f"from_{target}(to_{source}({text}))"
    if source.size == 1:
        return conversion(text, source, target, vector)
    if a == b:
        return text
    return f"(({b.vector}){text})" if vector else f"bits_{a.name}_to_{b.name}({text})"


def _each_half(text: str, source: DType, target: DType) -> str:
    return f"{source}_as_{target}x8({text})"
