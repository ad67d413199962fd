"""Builtins on host values: what a value is, lists, text, and the types of tensors."""

from __future__ import annotations

import math

from lumi import dim
from lumi.dim import Dim
from lumi.dtype import BOOL, DTYPES, I32, DType
from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.interpreter.builtin import builtin, dtype, extent, integer, number, tensor, text, type_error
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.registry import CONSTANTS
from lumi.interpreter.value import Builtin, Function, Value, describe, truth, written
from lumi.syntax.form import Symbol

NAMES: dict[str, Value] = {**CONSTANTS, **DTYPES, "pi": math.pi}
"""Host values that every file sees beside the builtins."""

# -- what a value is


@builtin("tensor?")
def is_tensor(interpreter: Interpreter, *values: Value) -> bool:
    """Whether any of the values is a tensor."""
    return any(isinstance(v, Node) for v in values)


@builtin("dim?")
def is_dim(interpreter: Interpreter, x: Value) -> bool:
    """Whether x is a size known only when the model runs."""
    return isinstance(x, Dim)


@builtin("number?")
def is_number(interpreter: Interpreter, x: Value) -> bool:
    """Whether x is a host integer or float."""
    return isinstance(x, int | float) and not isinstance(x, bool)


@builtin("string?")
def is_string(interpreter: Interpreter, x: Value) -> bool:
    """Whether x is a string."""
    return isinstance(x, str)


@builtin("list?")
def is_list(interpreter: Interpreter, x: Value) -> bool:
    """Whether x is a list."""
    return isinstance(x, tuple)


@builtin("nil?")
def is_nil(interpreter: Interpreter, x: Value) -> bool:
    """Whether x is nil."""
    return x is None


@builtin("fn?")
def is_function(interpreter: Interpreter, x: Value) -> bool:
    """Whether x can be called."""
    return isinstance(x, Function | Builtin)


@builtin("symbol?")
def is_symbol(interpreter: Interpreter, x: Value) -> bool:
    """Whether a form is a name."""
    return isinstance(x, Symbol)


@builtin("equal?")
def equal(interpreter: Interpreter, a: Value, b: Value) -> bool:
    """Whether two host values are the same; dims, when it is so on their whole range."""
    if isinstance(a, Node) or isinstance(b, Node):
        raise LumiError("type error", "equal? compares host values", hint="(= a b) compares tensors")
    if isinstance(a, Dim) or isinstance(b, Dim):
        return a == b or _equal_dims(interpreter, a, b)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return bool(a == b)


def _equal_dims(interpreter: Interpreter, a: Value, b: Value) -> bool:
    if not all(isinstance(v, int | Dim) for v in (a, b)):
        return False
    low, high = dim.bounds(extent(a) - extent(b), interpreter.builder.dims)
    if low > 0 or high < 0:
        return False
    raise LumiError(
        "dim error",
        f"whether {describe(a)} = {describe(b)} depends on the call",
        hint="choose between tensors with where, or narrow the range of the dim",
    )


@builtin("at-most?")
def at_most(interpreter: Interpreter, a: Value, b: Value) -> bool:
    """Whether a <= b is certain: for dims, whether it holds on their whole range."""
    return dim.bounds(extent(b) - extent(a), interpreter.builder.dims)[0] >= 0


@builtin("quotient")
def quotient(interpreter: Interpreter, a: Value, b: Value) -> Value:
    """a / b of host values: an integer or dim when it divides exactly, else a float."""
    if isinstance(a, Dim) or isinstance(b, Dim):
        exact = dim.divide(extent(a), extent(b))
        if exact is None:
            raise LumiError(
                "dim error",
                f"{describe(a)} does not always divide by {describe(b)}",
                hint="round down with trunc-div, or cast one of them to f32",
            )
        return exact
    x, y = number(a), number(b)
    if isinstance(x, int) and isinstance(y, int) and y and x % y == 0:
        return x // y
    if y == 0:
        return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1.0, y)
    return x / y


# -- tensors as types


@builtin("shape")
def shape_of(interpreter: Interpreter, x: Value) -> Value:
    """The list of sizes of x."""
    return tensor(interpreter, x).shape


@builtin("dim")
def dim_of(interpreter: Interpreter, x: Value, axis: Value) -> Value:
    """The size of x along an axis, counted from the end when negative."""
    node = tensor(interpreter, x)
    return node.shape[interpreter.builder.axis(node, integer(axis, "an axis"))]


@builtin("rank")
def rank_of(interpreter: Interpreter, x: Value) -> Value:
    """How many axes x has."""
    return tensor(interpreter, x).type.rank


@builtin("dtype-of")
def dtype_of(interpreter: Interpreter, x: Value) -> Value:
    """The dtype of x; of a number or dim, the one it has as a tensor."""
    return tensor(interpreter, x).dtype


@builtin("float?")
def is_float(interpreter: Interpreter, x: Value) -> bool:
    """Whether a dtype, or that of a tensor or number, is a float's."""
    return isinstance(x, float) or _dtype_of(x).is_float


@builtin("half?")
def is_half(interpreter: Interpreter, x: Value) -> bool:
    """Whether a dtype, or that of a tensor, is a float of fewer than four bytes; no number's is."""
    return not isinstance(x, float) and _dtype_of(x).is_narrow


def _dtype_of(x: Value) -> DType:
    match x:
        case DType():
            return x
        case Node():
            return x.dtype
        case bool():
            return BOOL
        case int() | Dim():
            return I32
        case _:
            raise type_error("a tensor, a number or a dtype", x)


@builtin("least")
def least(interpreter: Interpreter, of: Value) -> Value:
    """The least value of a dtype: -inf for floats."""
    return -math.inf if dtype(of).is_float else dtype(of).bounds[0]


@builtin("greatest")
def greatest(interpreter: Interpreter, of: Value) -> Value:
    """The greatest value of a dtype: inf for floats."""
    return math.inf if dtype(of).is_float else dtype(of).bounds[1]


# -- text, errors, results


@builtin("str")
def str_(interpreter: Interpreter, *values: Value) -> str:
    """The values as one string."""
    return "".join(v if isinstance(v, str) else written(v) for v in values)


@builtin("error")
def error(interpreter: Interpreter, *values: Value) -> Value:
    """Stop with a message."""
    raise LumiError("error", "".join(v if isinstance(v, str) else describe(v) for v in values))


@builtin("assert")
def assert_(interpreter: Interpreter, condition: Value, message: Value) -> Value:
    """Stop with a message unless a host condition holds."""
    if isinstance(condition, Node):
        raise type_error("a host condition", condition, "a tensor is known only when the model runs")
    if not truth(condition):
        raise LumiError("error", text(message))
    return None
