"""The numpy meaning of the elementwise operators that terms and kernels name.

Operands are arrays of one type: bool, an integer type (which wraps), or floats of any width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from lumi.dtype import round_to_tf32
from lumi.hlir.reference import trunc_divide

Array: TypeAlias = "np.ndarray[Any, Any]"

UNARY: dict[str, Callable[[Array], Array]] = {
    "exp2": np.exp2,
    "log2": np.log2,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "recip": np.reciprocal,
    "floor": np.floor,
    "tf32": round_to_tf32,
    "abs": np.abs,
    "recipz": lambda a: np.where(
        a == 0, a.dtype.type(0), np.reciprocal(np.where(a == 0, a.dtype.type(1), a))
    ),
    "not": np.logical_not,
}

COMPARISONS = ("lt", "le", "eq", "and", "or")
"""Operators that give bool whatever they take."""


def floor_mod(a: Array, b: Array) -> Array:
    """a - b·⌊a/b⌋, which has the sign of b; a where an integer b is 0."""
    quotient = np.floor(a / b) if a.dtype.kind == "f" else np.floor_divide(a, b)
    return np.asarray(a - quotient * b)


def trunc_remainder(a: Array, b: Array) -> Array:
    """a - b·trunc(a/b), which has the sign of a; a where an integer b is 0."""
    return np.asarray(np.fmod(a, b)) if a.dtype.kind == "f" else a - trunc_divide(a, b) * b


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "mod": floor_mod,
    "div": trunc_divide,
    "rem": trunc_remainder,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "subni": lambda a, b: np.where(a == -np.inf, a, a - b),
    "mulz": lambda a, b: np.where(a == 0, np.zeros_like(a * b), a * b),
    "shr": np.right_shift,
    "bitand": np.bitwise_and,
}
