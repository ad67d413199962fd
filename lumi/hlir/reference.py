"""The numpy meaning of every HLIR op: the oracle of all tests.

Values are numpy arrays.  Integers and bool have their own type and wrap; f32 and f64 are computed as
such; values of narrow floats are held in f32 and rounded after every op.  With `wide`, floats are computed
in f64 and only half types round, which gives the value to compare accuracy against.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import BOOL, F32, DType, from_memory, round_to_tf32, to_memory
from lumi.errors import LumiError
from lumi.hlir.graph import Graph, Node, starts
from lumi.hlir.op import (
    Affine,
    Binary,
    BinaryKind,
    Bitcast,
    Cast,
    Const,
    Gather,
    Input,
    Iota,
    Monoid,
    Param,
    Reduce,
    Reshape,
    Scan,
    Scatter,
    Select,
    State,
    Symbol,
    Unary,
    UnaryKind,
    Update,
    View,
)

Array: TypeAlias = "np.ndarray[Any, Any]"


def evaluate(
    graph: Graph, arrays: Mapping[str, Array], dims: Mapping[str, int], wide: bool = False
) -> dict[str, Array]:
    """Outputs by name and states by key after one call.

    `arrays` holds inputs by name, params and states by key, each of its declared shape; a missing state
    is zero, a missing param is its `init`.  Results have the dtype's user-visible numpy type, or f64
    for every float when `wide`.  Raises `LumiError` for a missing or misshapen array and for an index
    out of range.
    """
    machine = _Machine(arrays, dims, wide)
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            machine.values[node.id] = machine.compute(node)
    results = {name: machine.visible(node) for name, node in graph.outputs.items()}
    return results | {key: machine.visible(node) for key, node in graph.updates.items()}


@dataclass(slots=True)
class _Machine:
    arrays: Mapping[str, Array]
    dims: Mapping[str, int]
    wide: bool
    values: dict[int, Array] = field(default_factory=dict)

    def compute(self, node: Node) -> Array:
        args = [self.values[i.id] for i in node.inputs]
        shape = tuple(self.size(z) for z in node.shape)
        held = held_type(node.dtype, self.wide)
        match node.op:
            case Input(name):
                return self.given(name, node, shape)
            case Param(key, init):
                return self.given(key, node, shape, init)
            case State(key):
                return self.given(key, node, shape, 0)
            case Const(number):
                return rounded(np.asarray(number, held), node.dtype)
            case Symbol(extent):
                return np.asarray(self.size(extent), np.int32)
            case Iota():
                return np.arange(shape[0], dtype=np.int32)
            case Unary(kind):
                return rounded(UNARY[kind](args[0]), node.dtype)
            case Binary(kind):
                return rounded(binary(kind, *args), node.dtype)
            case Select():
                return np.where(*args)
            case Cast(dtype):
                return cast(args[0], dtype, self.wide)
            case Bitcast():
                return self.bitcast(node, args[0], shape)
            case Reduce(kind, axes):
                return rounded(reduce(kind, args[0], axes), node.dtype)
            case Scan(kind, axis):
                return rounded(scan(kind, args[0], axis), node.dtype)
            case View(index_map):
                if isinstance(index_map, Reshape):
                    return args[0].reshape(shape)
                return self.affine(args[0], index_map, shape, node)
            case Gather(axis):
                _check_indices(args[1], args[0].shape[axis], node)
                return np.take(args[0], args[1].astype(np.int64), axis=axis)
            case Scatter(axis):
                return rounded(scatter(args[0], args[1], args[2], axis, node), node.dtype)
            case Update():
                return self.update(args, node, node.op)

    def size(self, extent: Extent) -> int:
        try:
            return dim.value(extent, self.dims)
        except KeyError as missing:
            raise LumiError("dim error", f"no value for dim {missing.args[0]}") from None

    def given(self, name: str, node: Node, shape: tuple[int, ...], default: float | None = None) -> Array:
        if name not in self.arrays:
            if default is None:
                raise LumiError("run error", f"nothing given for `{name}`", node.span, str(node.type))
            return np.full(shape, default, held_type(node.dtype, self.wide))
        array = np.asarray(self.arrays[name])
        if array.shape != shape:
            raise LumiError(
                "shape error", f"`{name}` is {list(array.shape)}, declared {list(shape)}", node.span
            )
        return rounded(array.astype(held_type(node.dtype, self.wide)), node.dtype)

    def visible(self, node: Node) -> Array:
        value = self.values[node.id]
        return value if self.wide and node.dtype.is_float else value.astype(node.dtype.numpy)

    def bitcast(self, node: Node, x: Array, shape: tuple[int, ...]) -> Array:
        raw = np.ascontiguousarray(stored(x, node.inputs[0].dtype))
        return loaded(raw.view(node.dtype.storage).reshape(shape), node.dtype, self.wide)

    def affine(self, x: Array, index_map: Affine, shape: tuple[int, ...], node: Node) -> Array:
        fill = index_map.fill
        grid = np.ogrid[tuple(slice(0, z) for z in shape)]
        places: list[Array] = []
        inside = np.ones(shape, bool)
        for row, size in zip(index_map.rows, x.shape, strict=True):
            place = np.full(shape, self.size(row.offset), np.int64)
            for axis, coefficient in row.terms:
                place = place + coefficient * grid[axis]
            inside &= (place >= 0) & (place < size)
            places.append(np.clip(place, 0, max(size - 1, 0)))
        if fill is None and not inside.all():
            raise LumiError("run error", f"a view of {node.inputs[0].type} leaves it", node.span)
        if x.size == 0 and inside.size:
            return np.full(shape, fill, x.dtype)
        taken = x[tuple(places)] if places else np.broadcast_to(x, shape)
        return taken if fill is None else np.where(inside, taken, np.asarray(fill, x.dtype))

    def update(self, args: list[Array], node: Node, op: Update) -> Array:
        x, y = args[:2]
        given = args[2] if len(args) > 2 else np.asarray(self.size(op.start))
        most = self.size(starts(node)) - 1 if len(args) > 2 else int(given)
        size, added = x.shape[op.axis], y.shape[op.axis]
        result = x.copy()
        for place in np.ndindex(given.shape):
            start = int(given[place])
            if not 0 <= start <= most or (start + added > size and not op.wrap):
                what = f"update writes {start} … {start + added} of axis {op.axis}, size {size}"
                raise LumiError("run error", what, node.span)
            along = op.axis - len(place)
            where = np.arange(start, start + added) % max(size, 1)
            result[place][(slice(None),) * along + (where,)] = y[place]
        return result


# -- types as numpy holds them


def held_type(dtype: DType, wide: bool) -> np.dtype[Any]:
    """The numpy type a value is computed in."""
    if dtype.is_float and wide:
        return np.dtype(np.float64)
    return F32.storage if dtype.is_narrow else dtype.storage


def rounded(x: Array, dtype: DType) -> Array:
    """`x` rounded to a narrow type, still held wider; other types as they are."""
    if not dtype.is_narrow:
        return np.asarray(x)
    return from_memory(to_memory(np.asarray(x), dtype), dtype).astype(x.dtype)


def stored(x: Array, dtype: DType) -> Array:
    """A held value as it lies in memory."""
    return to_memory(x, dtype)


def loaded(raw: Array, dtype: DType, wide: bool) -> Array:
    """Memory as a held value."""
    return from_memory(raw, dtype).astype(held_type(dtype, wide))


# -- elementwise

UNARY: dict[UnaryKind, Callable[[Array], Array]] = {
    UnaryKind.EXP2: np.exp2,
    UnaryKind.LOG2: np.log2,
    UnaryKind.SIN: np.sin,
    UnaryKind.SQRT: np.sqrt,
    UnaryKind.RECIP: np.reciprocal,
    UnaryKind.FLOOR: np.floor,
    UnaryKind.TF32: round_to_tf32,
}


def binary(kind: BinaryKind, a: Array, b: Array) -> Array:
    """One binary op on held values of one type."""
    match kind:
        case BinaryKind.ADD:
            return np.asarray(a + b) if a.dtype.kind != "b" else a | b
        case BinaryKind.MUL:
            return np.asarray(a * b)
        case BinaryKind.LESS:
            return np.asarray(a < b)
        case BinaryKind.DIV:
            return trunc_divide(a, b)
        case BinaryKind.REM:
            return np.asarray(np.fmod(a, b)) if a.dtype.kind == "f" else a - trunc_divide(a, b) * b
        case BinaryKind.MOD:
            quotient = np.floor(a / b) if a.dtype.kind == "f" else np.floor_divide(a, b)
            return np.asarray(a - quotient * b)


def trunc_divide(a: Array, b: Array) -> Array:
    """Integer quotient toward zero; 0 where b is 0."""
    floor = np.floor_divide(a, b)
    inexact = (floor * b != a) & (b != 0) & ((a < 0) != (b < 0))
    return np.asarray(floor + inexact.astype(floor.dtype))


def cast(x: Array, dtype: DType, wide: bool = False) -> Array:
    """The nearest value of `dtype`: float to int truncates and saturates, NaN is 0, ints wrap."""
    if dtype is BOOL:
        return np.asarray(x != 0)
    if dtype.is_float or x.dtype.kind != "f":
        return rounded(x.astype(held_type(dtype, wide)), dtype)
    low, high = dtype.bounds
    whole = np.trunc(np.where(np.isnan(x), 0, x)).astype(np.float64)
    inside = np.where((whole >= low) & (whole < high), whole, 0).astype(dtype.storage)
    return np.where(
        whole >= high, np.asarray(high, dtype.storage), np.where(whole < low, low, inside)
    ).astype(dtype.storage)


# -- axes


def identity(kind: Monoid, dtype: np.dtype[Any]) -> float | int:
    """What combining with changes nothing."""
    if kind is Monoid.MAX:
        return -np.inf if dtype.kind == "f" else int(np.iinfo(dtype).min)
    return 0 if kind is Monoid.SUM else 1


def reduce(kind: Monoid, x: Array, axes: tuple[int, ...]) -> Array:
    """Combine along `axes` in the held type."""
    start = identity(kind, x.dtype)
    match kind:
        case Monoid.SUM:
            return np.asarray(np.sum(x, axis=axes, dtype=x.dtype))
        case Monoid.MAX:
            return np.asarray(np.max(x, axis=axes, initial=start))
        case Monoid.MUL:
            return np.asarray(np.prod(x, axis=axes, dtype=x.dtype))


def scan(kind: Monoid, x: Array, axis: int) -> Array:
    """Running combination along `axis` in the held type."""
    match kind:
        case Monoid.SUM:
            return np.asarray(np.cumsum(x, axis=axis, dtype=x.dtype))
        case Monoid.MAX:
            return np.asarray(np.maximum.accumulate(x, axis=axis))
        case Monoid.MUL:
            return np.asarray(np.cumprod(x, axis=axis, dtype=x.dtype))


def scatter(x: Array, index: Array, updates: Array, axis: int, node: Node) -> Array:
    """x with each update added at its index along `axis`."""
    _check_indices(index, x.shape[axis], node)
    result = np.moveaxis(x, axis, 0).copy()
    np.add.at(result, index.astype(np.int64), np.moveaxis(updates, axis, 0))
    return np.moveaxis(result, 0, axis)


def _check_indices(index: Array, size: int, node: Node) -> None:
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        low, high = int(index.min()), int(index.max())
        raise LumiError("run error", f"indices {low} … {high} leave an axis of size {size}", node.span)
