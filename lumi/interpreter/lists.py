"""Builtins on host lists.  A list that is a form, inside a macro, counts as one."""

from __future__ import annotations

from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.interpreter.builtin import builtin, integer, type_error
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.value import Value, items_of, truth


def items(value: Value) -> tuple[Value, ...]:
    """The items of a list, also of a form that is one."""
    found = items_of(value)
    if found is None:
        raise type_error("a list", value)
    return found


LONGEST = 1_000_000
"""Integers of the longest range."""


@builtin("range")
def range_(interpreter: Interpreter, *bounds: Value) -> Value:
    """(range stop), (range start stop), (range start stop step): a list of integers."""
    if not 1 <= len(bounds) <= 3:
        raise LumiError("call error", f"range takes 1 to 3 integers, not {len(bounds)}")
    numbers = [integer(b) for b in bounds]
    if len(numbers) == 3 and numbers[2] == 0:
        raise LumiError("call error", "range has step 0")
    found = range(*numbers)
    if len(found[: LONGEST + 1]) > LONGEST:
        raise LumiError("call error", f"range is longer than {LONGEST} integers", hint="(iota n) is a tensor")
    return tuple(found)


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
