"""Bounds that hold for every value: what may be rounded to a type with few exponents."""

from __future__ import annotations

from collections.abc import Mapping

from lumi.llir.kernel import Map, Operand
from lumi.llir.program import Definition, Fold


def is_between_zero_and_one(table: Mapping[str, Definition], operand: Operand) -> bool:
    """Whether a value lies between 0 and 1 wherever it is a number."""
    if not isinstance(operand, str):
        return 0 <= operand <= 1
    match table[operand]:
        case Map(_, "exp2", (argument,)):
            return is_at_most_zero(table, argument)
        case Map(_, op, (argument,)) if op == "tf32" or op.startswith("cast."):
            return is_between_zero_and_one(table, argument)
        case Map(_, "sel", (_, a, b)) | Map(_, "mul", (a, b)) | Map(_, "max", (a, b)):
            return is_between_zero_and_one(table, a) and is_between_zero_and_one(table, b)
        case _:
            return False


def is_at_most_zero(table: Mapping[str, Definition], operand: Operand) -> bool:
    """Whether a value is never positive."""
    if not isinstance(operand, str):
        return operand <= 0
    match table[operand]:
        case Map(_, "subni" | "sub", (a, b)):
            return is_at_least(table, b, a)
        case Map(_, "mul", (a, float(c)) | (float(c), a)) if c >= 0:
            return is_at_most_zero(table, a)
        case Map(_, "sel", (_, a, b)) | Map(_, "max", (a, b)) | Map(_, "add", (a, b)):
            return is_at_most_zero(table, a) and is_at_most_zero(table, b)
        case _:
            return False


def is_at_least(table: Mapping[str, Definition], high: Operand, low: Operand) -> bool:
    """Whether a value is at least as large as another, being a maximum that the other went into."""
    if high == low:
        return True
    match table[high] if isinstance(high, str) else None:
        case Map(_, "max", (a, b)):
            return is_at_least(table, a, low) or is_at_least(table, b, low)
        case Fold(_, "max", _, (term,)):
            return is_at_least(table, term, low)
        case _:
            return False
