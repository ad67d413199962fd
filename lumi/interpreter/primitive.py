"""The primitives of HLIR as builtins; `view` has the spellings of its movement op.

Each works on tensors; the elementwise ones also on host numbers and dims, where the result is a host
value.  A number or dim beside a tensor takes its dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lumi import dim
from lumi.dim import Dim
from lumi.dtype import F32, round_to_tf32
from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.hlir.op import BinaryKind, Monoid, UnaryKind
from lumi.interpreter.builtin import (
    axes,
    builtin,
    dtype,
    extent,
    flag,
    integer,
    number,
    shape,
    tensor,
    tensors,
)
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.value import Value, describe

_NUMBERS = (int, float)
_SIZES = (int, Dim)

_HOST_UNARY: dict[UnaryKind, tuple[Callable[[float], float], str]] = {
    UnaryKind.EXP2: (lambda x: 2.0**x if x < 1024 else math.inf, "2ˣ."),
    UnaryKind.LOG2: (
        lambda x: math.log2(x) if x > 0 else (-math.inf if x == 0 else math.nan),
        "The logarithm to base 2: -inf at 0, NaN below.",
    ),
    UnaryKind.SIN: (
        lambda x: math.sin(x) if math.isfinite(x) else math.nan,
        "The sine of radians; NaN of an infinity.",
    ),
    UnaryKind.SQRT: (lambda x: math.sqrt(x) if x >= 0 else math.nan, "The square root; NaN below 0."),
    UnaryKind.RECIP: (lambda x: 1 / x if x else math.copysign(math.inf, x), "1 / x."),
    UnaryKind.FLOOR: (lambda x: float(math.floor(x)) if math.isfinite(x) else x, "The integer below."),
    UnaryKind.TF32: (
        lambda x: float(round_to_tf32(np.asarray(x))),
        "f32 with the 10 upper bits of its mantissa, to nearest; halves have no more.",
    ),
}


def _define_unary(kind: UnaryKind, host: Callable[[float], float], doc: str) -> None:
    def run(interpreter: Interpreter, x: Value) -> Value:
        if isinstance(x, int | float):
            return host(float(x))
        return interpreter.builder.unary(kind, tensor(interpreter, x, F32 if isinstance(x, Dim) else None))

    run.__doc__ = doc
    builtin(kind.value)(run)


for _kind, (_host, _doc) in _HOST_UNARY.items():
    _define_unary(_kind, _host, _doc)


def _binary(interpreter: Interpreter, kind: BinaryKind, a: Value, b: Value) -> Node:
    return interpreter.builder.binary(kind, *tensors(interpreter, a, b))


def _hosts(*values: Value) -> bool:
    """Whether all are numbers or dims that a host operation can take: no tensor, no dim beside a float."""
    return all(isinstance(v, _SIZES if _symbolic(*values) else _NUMBERS) for v in values)


def _symbolic(*values: Value) -> bool:
    return any(isinstance(v, Dim) for v in values)


@builtin("add")
def add(interpreter: Interpreter, a: Value, b: Value) -> Value:
    """a + b; integers wrap, bools are or."""
    if _hosts(a, b):
        return extent(a) + extent(b) if _symbolic(a, b) else number(a) + number(b)
    return _binary(interpreter, BinaryKind.ADD, a, b)


@builtin("mul")
def mul(interpreter: Interpreter, a: Value, b: Value) -> Value:
    """a · b; integers wrap, bools are and."""
    if _hosts(a, b):
        return extent(a) * extent(b) if _symbolic(a, b) else number(a) * number(b)
    return _binary(interpreter, BinaryKind.MUL, a, b)


@builtin("mod")
def mod(interpreter: Interpreter, a: Value, b: Value) -> Value:
    """a - b ⌊a / b⌋: the remainder with the divisor's sign."""
    if isinstance(a, Dim) and isinstance(b, int):
        return a % _divisor(b)
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a % b if b else (a if isinstance(a, int) and isinstance(b, int) else math.nan)
    return _binary(interpreter, BinaryKind.MOD, a, b)


@builtin("trunc-div")
def trunc_div(interpreter: Interpreter, a: Value, b: Value) -> Value:
    """The integer quotient, rounded toward zero; 0 when b is 0."""
    if isinstance(a, Dim) and isinstance(b, int):
        return _nonnegative(interpreter, a) // _divisor(b)
    if isinstance(a, int) and isinstance(b, int):
        return (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0
    return _binary(interpreter, BinaryKind.DIV, a, b)


@builtin("trunc-rem")
def trunc_rem(interpreter: Interpreter, a: Value, b: Value) -> Value:
    """The remainder of trunc-div, with the dividend's sign; a when b is 0."""
    if isinstance(a, Dim) and isinstance(b, int):
        return _nonnegative(interpreter, a) % _divisor(b)
    if isinstance(a, int) and isinstance(b, int):
        return (abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else a
    return _binary(interpreter, BinaryKind.REM, a, b)


def _divisor(value: int) -> int:
    if value > 0:
        return value
    raise LumiError("dim error", f"a dim is divided by {value}", hint="divide dims by positive integers")


def _nonnegative(interpreter: Interpreter, value: Dim) -> Dim:
    if dim.bounds(value, interpreter.builder.dims)[0] >= 0:
        return value
    raise LumiError("dim error", f"{value} may be negative, so its rounding is not known", hint="use mod")


@builtin("less-than")
def less_than(interpreter: Interpreter, a: Value, b: Value) -> Value:
    """Whether a < b: false when either is NaN.  Of dims: when it holds, or fails, on their whole range."""
    if not _hosts(a, b):
        return _binary(interpreter, BinaryKind.LESS, a, b)
    if not _symbolic(a, b):
        return number(a) < number(b)
    low, high = dim.bounds(extent(b) - extent(a), interpreter.builder.dims)
    if low > 0 or high <= 0:
        return low > 0
    raise LumiError(
        "dim error",
        f"whether {describe(a)} < {describe(b)} depends on the call",
        hint="choose between tensors with where, or narrow the range of the dim",
    )


@builtin("where")
def where(interpreter: Interpreter, condition: Value, a: Value, b: Value) -> Value:
    """a where the condition holds, else b; a value not taken leaves no trace, not even NaN."""
    if condition is None or isinstance(condition, bool):
        return a if condition else b
    return interpreter.builder.select(tensor(interpreter, condition), *tensors(interpreter, a, b))


@builtin("cast")
def cast(interpreter: Interpreter, x: Value, to: Value) -> Value:
    """The nearest value of another dtype: float → int truncates and saturates, int → int wraps."""
    target = dtype(to)
    if isinstance(x, int | float) and target.is_float:
        return tensor(interpreter, x, target)
    if isinstance(x, int) and target.kind in ("int", "uint"):
        low, high = target.bounds
        return tensor(interpreter, (x - low) % (high - low + 1) + low, target)
    if isinstance(x, float) and target.kind in ("int", "uint"):
        low, high = target.bounds
        inside = 0 if math.isnan(x) else min(max(x, low), high)
        return tensor(interpreter, int(inside), target)
    return interpreter.builder.cast(tensor(interpreter, x), target)


@builtin("bitcast")
def bitcast(interpreter: Interpreter, x: Value, to: Value) -> Value:
    """The same bytes as another dtype; when sizes differ the last axis holds the ratio."""
    return interpreter.builder.bitcast(tensor(interpreter, x), dtype(to))


def _define_reduction(kind: Monoid, doc: str) -> None:
    def reduce(interpreter: Interpreter, x: Value, *, axis: Value = -1, keepdims: Value = False) -> Value:
        node = tensor(interpreter, x)
        return interpreter.builder.reduce(kind, node, axes(axis, node.type.rank), flag(keepdims))

    def scan(interpreter: Interpreter, x: Value, *, axis: Value = -1) -> Value:
        return interpreter.builder.scan(kind, tensor(interpreter, x), integer(axis, "an axis"))

    reduce.__doc__ = f"The {doc} along an axis, a list of axes, or all (nil)."
    scan.__doc__ = f"The running {doc} along an axis, each element included."
    builtin(f"reduce-{kind.value}")(reduce)
    builtin(f"scan-{kind.value}")(scan)


_define_reduction(Monoid.SUM, "sum")
_define_reduction(Monoid.MAX, "largest value, NaN if there is one,")
_define_reduction(Monoid.MUL, "product")


@builtin("iota")
def iota(interpreter: Interpreter, size: Value) -> Value:
    """0, 1, 2 … as i32[size]."""
    return interpreter.builder.iota(shape((size,))[0])


@builtin("gather")
def gather(interpreter: Interpreter, x: Value, index: Value, *, axis: Value = 0) -> Value:
    """x[… n …], index[I…] → x[… I… …]: the slices of x along `axis` that the indices name."""
    return interpreter.builder.gather(
        tensor(interpreter, x), tensor(interpreter, index), integer(axis, "an axis")
    )


@builtin("scatter")
def scatter(interpreter: Interpreter, x: Value, index: Value, updates: Value, *, axis: Value = 0) -> Value:
    """x with updates[… m …] added at index[m] along `axis`; indices may repeat."""
    nodes = [tensor(interpreter, v) for v in (x, index, updates)]
    return interpreter.builder.scatter(nodes[0], nodes[1], nodes[2], integer(axis, "an axis"))


@builtin("update-slice")
def update_slice(
    interpreter: Interpreter,
    x: Value,
    y: Value,
    *,
    axis: Value = 0,
    start: Value = 0,
    wrap: Value = False,
) -> Value:
    """x with y written at `start` along `axis`, with `wrap` round its end; in place when x is a state.

    `start` may be i32 over the first axes of x, one for each slice; one outside of x is clamped.
    """
    a, b = tensor(interpreter, x), tensor(interpreter, y)
    place = start if isinstance(start, Node) else extent(start)
    return interpreter.builder.update(a, b, integer(axis, "an axis"), place, flag(wrap))
