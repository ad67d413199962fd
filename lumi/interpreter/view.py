"""The spellings of HLIR's view as builtins: movement, no arithmetic."""

from __future__ import annotations

from lumi import dim
from lumi.errors import LumiError
from lumi.interpreter.builtin import builtin, extent, integer, number, shape, tensor, type_error
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.value import Value


@builtin("reshape")
def reshape(interpreter: Interpreter, x: Value, sizes: Value) -> Value:
    """The same elements in row-major order under another shape; one size may be -1: what is left."""
    node = tensor(interpreter, x)
    if isinstance(sizes, tuple) and sizes.count(-1) == 1:
        known = dim.product(shape(tuple(z for z in sizes if z != -1)))
        rest = dim.divide(dim.product(node.shape), known)
        if rest is None:
            raise LumiError("shape error", f"{node.type} does not divide by {known}", label=str(node.type))
        sizes = tuple(rest if z == -1 else z for z in sizes)
    return interpreter.builder.reshape(node, shape(sizes))


@builtin("permute")
def permute(interpreter: Interpreter, x: Value, order: Value) -> Value:
    """Axis order[i] of x becomes axis i."""
    if not isinstance(order, tuple):
        raise type_error("a list of axes", order)
    return interpreter.builder.permute(tensor(interpreter, x), [integer(a, "an axis") for a in order])


@builtin("expand")
def expand(interpreter: Interpreter, x: Value, sizes: Value) -> Value:
    """x broadcast to a shape: leading axes appear, axes of size 1 repeat."""
    return interpreter.builder.expand(tensor(interpreter, x), shape(sizes))


@builtin("slice")
def slice_(
    interpreter: Interpreter,
    x: Value,
    *,
    axis: Value = 0,
    start: Value = 0,
    stop: Value = None,
    step: Value = 1,
) -> Value:
    """Elements start, start + step … below stop along `axis`; negative bounds count from the end."""
    node = tensor(interpreter, x)
    number_ = interpreter.builder.axis(node, integer(axis, "an axis"))
    size = node.shape[number_]
    first, last = (
        size + z if isinstance(z, int) and z < 0 else z
        for z in (extent(start), size if stop is None else extent(stop))
    )
    return interpreter.builder.slice(node, number_, first, last, integer(step, "a step"))


@builtin("pad-axis")
def pad_axis(
    interpreter: Interpreter, x: Value, *, axis: Value = 0, low: Value = 0, high: Value = 0, fill: Value = 0
) -> Value:
    """`low` and `high` elements of `fill` around x along `axis`."""
    node = tensor(interpreter, x)
    before, after = shape((low, high))
    value = number(fill)
    interpreter.builder.const(value, node.dtype)  # refuses a fill that is no element of x
    return interpreter.builder.pad(node, integer(axis, "an axis"), before, after, value)


@builtin("flip")
def flip(interpreter: Interpreter, x: Value, *, axis: Value = -1) -> Value:
    """x backwards along `axis`."""
    return interpreter.builder.flip(tensor(interpreter, x), integer(axis, "an axis"))


@builtin("window-axis")
def window_axis(
    interpreter: Interpreter,
    x: Value,
    size: Value,
    *,
    axis: Value = -1,
    stride: Value = 1,
    dilation: Value = 1,
) -> Value:
    """Overlapping windows along `axis`: x[… n …] → [… count size …]."""
    sizes = [integer(v, "a positive integer") for v in (size, stride, dilation)]
    if min(sizes) < 1:
        raise LumiError(
            "shape error",
            f"a window of {sizes[0]}, stride {sizes[1]}, dilation {sizes[2]}",
            hint="all are positive",
        )
    return interpreter.builder.windows(tensor(interpreter, x), integer(axis, "an axis"), *sizes)
