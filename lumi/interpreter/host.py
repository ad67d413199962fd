"""Builtins on host values: what a value is, lists, text, and the types of tensors."""

from __future__ import annotations

import math

from lumi import dim
from lumi.dim import Dim
from lumi.dtype import DTYPES, DType
from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.interpreter.builtin import builtin, dtype, extent, integer, number, tensor, text, type_error
from lumi.interpreter.evaluate import CONSTANTS, Interpreter
from lumi.interpreter.value import Builtin, Function, Value, describe, items_of, truth, written
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
    """Whether a dtype, a tensor's or a number's, is a float's."""
    if isinstance(x, DType | Node):
        return (x.dtype if isinstance(x, Node) else x).is_float
    return isinstance(x, float)


@builtin("half?")
def is_half(interpreter: Interpreter, x: Value) -> bool:
    """Whether a dtype or a tensor's is f16 or bf16."""
    return (x.dtype if isinstance(x, Node) else dtype(x)).is_half


@builtin("least")
def least(interpreter: Interpreter, of: Value) -> Value:
    """The least value of a dtype: -inf for floats."""
    return -math.inf if dtype(of).is_float else dtype(of).bounds[0]


@builtin("greatest")
def greatest(interpreter: Interpreter, of: Value) -> Value:
    """The greatest value of a dtype: inf for floats."""
    return math.inf if dtype(of).is_float else dtype(of).bounds[1]


# -- lists


def items(value: Value) -> tuple[Value, ...]:
    """The items of a list, also of a form that is one."""
    found = items_of(value)
    if found is None:
        raise type_error("a list", value)
    return found


@builtin("range")
def range_(interpreter: Interpreter, *bounds: Value) -> Value:
    """(range stop), (range start stop), (range start stop step): a list of integers."""
    if not 1 <= len(bounds) <= 3:
        raise LumiError("call error", f"range takes 1 to 3 integers, not {len(bounds)}")
    numbers = [integer(b) for b in bounds]
    if len(numbers) == 3 and numbers[2] == 0:
        raise LumiError("call error", "range has step 0")
    return tuple(range(*numbers))


@builtin("list")
def list_(interpreter: Interpreter, *values: Value) -> Value:
    """A list of the arguments."""
    return values


@builtin("len")
def len_(interpreter: Interpreter, xs: Value) -> Value:
    """How many items a list, or characters a string, has."""
    return len(xs) if isinstance(xs, str) else len(items(xs))


@builtin("empty?")
def is_empty(interpreter: Interpreter, xs: Value) -> bool:
    """Whether a list has no items."""
    return not items(xs)


@builtin("nth")
def nth(interpreter: Interpreter, xs: Value, index: Value) -> Value:
    """Item `index` of a list, counted from the end when negative."""
    found, number_ = items(xs), integer(index)
    if not -len(found) <= number_ < len(found):
        raise LumiError("call error", f"there is no item {number_} in a list of {len(found)}")
    return found[number_]


@builtin("first")
def first(interpreter: Interpreter, xs: Value) -> Value:
    """The first item of a list, nil when it is empty."""
    return next(iter(items(xs)), None)


@builtin("last")
def last(interpreter: Interpreter, xs: Value) -> Value:
    """The last item of a list, nil when it is empty."""
    found = items(xs)
    return found[-1] if found else None


@builtin("rest")
def rest(interpreter: Interpreter, xs: Value) -> Value:
    """A list without its first item."""
    return items(xs)[1:]


@builtin("join")
def join(interpreter: Interpreter, *lists: Value) -> Value:
    """One list of all items of the lists."""
    return tuple(item for xs in lists for item in items(xs))


@builtin("sublist")
def sublist(interpreter: Interpreter, xs: Value, start: Value, stop: Value) -> Value:
    """Items start … stop - 1 of a list."""
    found, low, high = items(xs), integer(start), integer(stop)
    if not 0 <= low <= high <= len(found):
        raise LumiError("call error", f"there are no items {low} … {high} in a list of {len(found)}")
    return found[low:high]


@builtin("member?")
def is_member(interpreter: Interpreter, x: Value, xs: Value) -> bool:
    """Whether a host value is in a list."""
    return any(x is y or (not isinstance(y, Node) and x == y) for y in items(xs))


@builtin("reverse")
def reverse(interpreter: Interpreter, xs: Value) -> Value:
    """A list backwards."""
    return items(xs)[::-1]


@builtin("replace")
def replace(interpreter: Interpreter, xs: Value, index: Value, value: Value) -> Value:
    """A list with item `index` replaced."""
    found, number_ = list(items(xs)), integer(index)
    if not -len(found) <= number_ < len(found):
        raise LumiError("call error", f"there is no item {number_} in a list of {len(found)}")
    found[number_] = value
    return tuple(found)


@builtin("map")
def map_(interpreter: Interpreter, f: Value, *lists: Value) -> Value:
    """f of the items of one list, or of the items at equal places of several."""
    columns = [items(xs) for xs in lists]
    if not columns or any(len(c) != len(columns[0]) for c in columns):
        raise LumiError("call error", "map takes a function and lists of equal length")
    return tuple([interpreter.call(f, row, {}, None) for row in zip(*columns, strict=True)])


@builtin("filter")
def filter_(interpreter: Interpreter, f: Value, xs: Value) -> Value:
    """The items of a list for which f is true."""
    return tuple([x for x in items(xs) if truth(interpreter.call(f, (x,), {}, None))])


@builtin("reduce")
def reduce(interpreter: Interpreter, f: Value, initial: Value, xs: Value) -> Value:
    """f(… f(f(initial, x₀), x₁) …)."""
    result = initial
    for x in items(xs):
        result = interpreter.call(f, (result, x), {}, None)
    return result


@builtin("apply")
def apply(interpreter: Interpreter, f: Value, xs: Value) -> Value:
    """f of the items of a list as its arguments."""
    return interpreter.call(f, items(xs), {}, None)


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
