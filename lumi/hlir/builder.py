"""Hash-consing constructor of HLIR with shape and dtype inference.

One method a primitive, then the spellings of the view.  Binary operands broadcast as in numpy.  Every
mistake raises a `LumiError` ("shape error" or "type error") placed at the builder's current span.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.dtype import BOOL, F32, I32, DType
from lumi.errors import LumiError, Span
from lumi.hlir.graph import Graph, Node, TensorType, reachable
from lumi.hlir.op import (
    LEAVES,
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
    Op,
    Param,
    Reduce,
    Reshape,
    Row,
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
from lumi.hlir.room import impossible

Scalar = float | int | bool


@dataclass(frozen=True, slots=True)
class Entry:
    """What distinguishes a node: equal entries are one node."""

    op: Op
    inputs: tuple[int, ...]
    type: TensorType
    exact: str


class Builder:
    """Makes nodes.  `dims` are the declared dims; sizes are compared under their ranges."""

    def __init__(self, dims: Mapping[str, DimRange] | None = None) -> None:
        self.dims: dict[str, DimRange] = dict(dims or {})
        self.span: Span | None = None
        self._nodes: list[Node] = []
        self._table: dict[Entry, Node] = {}
        self._scope: list[str] = []
        self._sizes: set[Extent] = set()

    # -- context

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Nodes made inside belong to the scope `name` below the current one."""
        self._scope.append(name)
        try:
            yield
        finally:
            self._scope.pop()

    @property
    def path(self) -> str:
        """The current scope path."""
        return "/".join(self._scope)

    def graph(
        self,
        name: str,
        outputs: Mapping[str, Node],
        updates: Mapping[str, Node] | None = None,
        inputs: Iterable[Node] = (),
    ) -> Graph:
        """The graph of everything that `outputs` and `updates` need, and of `inputs`, needed or not."""
        updates = dict(updates or {})
        nodes = tuple(reachable([*outputs.values(), *updates.values(), *inputs]))
        used = {
            n for node in nodes for size in _sizes(node) if isinstance(size, dim.Dim) for n in size.names()
        }
        dims = {k: r for k, r in self.dims.items() if k in used}
        return Graph(name, nodes, dict(outputs), updates, dims)

    def node(self, op: Op, inputs: Sequence[Node], dtype: DType, shape: Sequence[Extent]) -> Node:
        """The node with these parts; made now unless it exists."""
        type_ = TensorType(dtype, tuple(shape))
        # 0.0 and -0.0 and True and 1 are equal in Python, and NaN is not equal to itself
        exact = repr(op.value) if isinstance(op, Const) else ""
        entry = Entry(Const(0) if isinstance(op, Const) else op, tuple(i.id for i in inputs), type_, exact)
        if entry not in self._table:
            scope = "" if isinstance(op, LEAVES) else self.path
            made = Node(len(self._nodes), op, tuple(inputs), type_, scope, self.span)
            self._possible(made)
            self._nodes.append(made)
            self._table[entry] = made
        return self._table[entry]

    # -- leaves

    def input(self, name: str, dtype: DType, shape: Sequence[Extent], most: Extent | None = None) -> Node:
        """A tensor given at each call; `most` is the greatest of its integers, 0 the least."""
        if most is not None and dtype.kind not in ("int", "uint"):
            raise self.error("type error", f"input {name} has a :max and is {dtype}", "integers have one")
        if most is not None and dim.bounds(most, self.dims)[0] < 0:
            raise self.error("dim error", f"input {name} has the :max {most}", "it may not be negative")
        return self.node(Input(name, most), (), dtype, shape)

    def param(self, key: str, dtype: DType, shape: Sequence[Extent], init: float | None = None) -> Node:
        """A weight."""
        return self.node(Param(key, init), (), dtype, shape)

    def state(self, key: str, dtype: DType, shape: Sequence[Extent]) -> Node:
        """A tensor that lives between calls."""
        return self.node(State(key), (), dtype, shape)

    def const(self, value: Scalar, dtype: DType) -> Node:
        """A scalar of any dtype; integers outside the dtype's range are an error."""
        if dtype.is_float:
            return self.node(Const(float(value)), (), dtype, ())
        low, high = dtype.bounds
        if value != int(value) or not low <= value <= high:
            raise self.error("type error", f"{value} is no {dtype}", f"{dtype} holds {low} … {high}")
        return self.node(Const(bool(value) if dtype is BOOL else int(value)), (), dtype, ())

    def symbol(self, extent: Extent) -> Node:
        """The runtime value of a dim expression."""
        return self.const(extent, I32) if isinstance(extent, int) else self.node(Symbol(extent), (), I32, ())

    def iota(self, extent: Extent) -> Node:
        """0, 1, 2 … as i32[extent]; what i32 cannot hold is an error."""
        longest = dim.bounds(extent, self.dims)[1]
        if 2**31 < longest < math.inf:
            raise self.error("type error", f"iota of up to {int(longest)} positions", "i32 counts to 2³¹ - 1")
        return self.node(Iota(extent), (), I32, (extent,))

    # -- elementwise

    def unary(self, kind: UnaryKind, x: Node) -> Node:
        """`kind` of each element of a float tensor."""
        if not x.dtype.is_float:
            raise self.error("type error", f"{kind.value} takes floats, not {x.type}", "cast it first")
        if kind is UnaryKind.TF32 and x.dtype is not F32:
            return self._as_tf32(x)
        return self.node(Unary(kind), (x,), x.dtype, x.shape)

    def _as_tf32(self, x: Node) -> Node:
        """What is no f32 in TF32: narrow floats have no bits to lose."""
        if x.dtype.is_narrow:
            return x
        raise self.error(
            "type error", f"tf32 takes f32, not {x.type}", "TF32 is what is left of f32: cast it first"
        )

    def binary(self, kind: BinaryKind, a: Node, b: Node) -> Node:
        """`kind` of two tensors of one dtype, broadcast together."""
        if a.dtype != b.dtype:
            raise self.error("type error", f"{kind.value} of {a.type} and {b.type}", "cast one of them")
        if a.dtype is BOOL and kind not in (BinaryKind.ADD, BinaryKind.MUL, BinaryKind.LESS):
            raise self.error("type error", f"{kind.value} of bool {a.type}", "cast it first")
        if a.dtype.is_float and kind is BinaryKind.DIV:
            raise self.error("type error", f"trunc-div takes integers, not {a.type}", "use / for floats")
        a, b = self.broadcast(a, b)
        return self.node(Binary(kind), (a, b), BOOL if kind is BinaryKind.LESS else a.dtype, a.shape)

    def select(self, condition: Node, a: Node, b: Node) -> Node:
        """`a` where the condition holds, else `b`."""
        if condition.dtype is not BOOL:
            raise self.error("type error", f"the condition of where is {condition.type}", "it must be bool")
        if a.dtype != b.dtype:
            raise self.error("type error", f"where chooses between {a.type} and {b.type}", "cast one of them")
        condition, a, b = self.broadcast(condition, a, b)
        return self.node(Select(), (condition, a, b), a.dtype, a.shape)

    def cast(self, x: Node, dtype: DType) -> Node:
        """The nearest value of another dtype."""
        return x if x.dtype == dtype else self.node(Cast(dtype), (x,), dtype, x.shape)

    def bitcast(self, x: Node, dtype: DType) -> Node:
        """The same bytes as another dtype; the last axis holds the ratio when sizes differ."""
        small, large = sorted((x.dtype.size, dtype.size))
        ratio, shape = large // small, x.shape
        if x.dtype.size < dtype.size:
            if not shape or shape[-1] != ratio:
                raise self.error(
                    "shape error", f"bitcast of {x.type} to {dtype}", f"the last axis must be {ratio}"
                )
            shape = shape[:-1]
        elif ratio > 1:
            shape = (*shape, ratio)
        return self.node(Bitcast(dtype), (x,), dtype, shape)

    # -- axes

    def reduce(self, kind: Monoid, x: Node, axes: Sequence[int], keepdims: bool = False) -> Node:
        """Combine along `axes`; with `keepdims` they stay as 1."""
        found = tuple(sorted({self.axis(x, a) for a in axes}))
        if not found:
            return x
        self._numeric(f"reduce-{kind.value}", x)
        shape = [z for i, z in enumerate(x.shape) if i not in found]
        y = self.node(Reduce(kind, found), (x,), x.dtype, shape)
        return self.reshape(y, [1 if i in found else z for i, z in enumerate(x.shape)]) if keepdims else y

    def scan(self, kind: Monoid, x: Node, axis: int) -> Node:
        """Inclusive running combination along `axis`."""
        self._numeric(f"scan-{kind.value}", x)
        return self.node(Scan(kind, self.axis(x, axis)), (x,), x.dtype, x.shape)

    def gather(self, x: Node, index: Node, axis: int = 0) -> Node:
        """x[… n …], index[I…] → x[… I… …]."""
        axis = self.axis(x, axis)
        self._integer("gather", index)
        return self.node(
            Gather(axis), (x, index), x.dtype, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])
        )

    def scatter(self, x: Node, index: Node, updates: Node, axis: int = 0) -> Node:
        """x with each update added at its index along `axis`; indices may repeat."""
        axis = self.axis(x, axis)
        self._integer("scatter", index)
        if index.type.rank != 1:
            raise self.error("shape error", f"scatter indices are {index.type}", "they must have one axis")
        want = TensorType(x.dtype, (*x.shape[:axis], index.shape[0], *x.shape[axis + 1 :]))
        if updates.type != want:
            raise self.error("shape error", f"scatter updates are {updates.type}", f"expected {want}")
        return self.node(Scatter(axis), (x, index, updates), x.dtype, x.shape)

    def update(self, x: Node, y: Node, axis: int, start: Extent | Node = 0, wrap: bool = False) -> Node:
        """x with y written at `start` along `axis`; with `wrap` round its end.

        A tensor of starts is i32, and its axes are the first ones of x.
        """
        axis = self.axis(x, axis)
        if x.dtype != y.dtype:
            raise self.error("type error", f"update of {x.type} with {y.type}", "cast the new part")
        same = x.type.rank == y.type.rank and all(
            i == axis or a == b for i, (a, b) in enumerate(zip(x.shape, y.shape, strict=False))
        )
        if not same:
            raise self.error(
                "shape error", f"update of {x.type} with {y.type}", f"only axis {axis} may differ"
            )
        if wrap:
            self._check_ring(x, y, axis)
        if not isinstance(start, Node):
            return self.node(Update(axis, start, wrap), (x, y), x.dtype, x.shape)
        rank = start.type.rank
        if start.dtype is not I32 or rank > axis or start.shape != x.shape[:rank]:
            want = f"[{' '.join(map(str, x.shape[:axis]))}]"
            raise self.error(
                "shape error",
                f"an update of {x.type} along axis {axis} begins at {start.type}",
                f"starts are i32 {want}, or of fewer of these axes",
            )
        return self.node(Update(axis, 0, wrap), (x, y, start), x.dtype, x.shape)

    def _check_ring(self, x: Node, y: Node, axis: int) -> None:
        """Raise unless a tensor has room for what is written round its end."""
        size, added = x.shape[axis], y.shape[axis]
        if not isinstance(size, int):
            raise self.error("shape error", f"axis {axis} of {x.type} is a ring of no fixed size")
        if dim.bounds(size - added, self.dims)[0] < 0:
            raise self.error(
                "shape error", f"a ring of {size} takes {added}", "it needs room for the most that is written"
            )

    # -- views

    def view(self, x: Node, rows: Sequence[Row], shape: Sequence[Extent], fill: Scalar | None = None) -> Node:
        """An affine view: one row a dimension of `x`, over the coordinates of `shape`."""
        kept = self._inside(x, rows, shape) if fill is not None else False
        op = View(Affine(tuple(rows), None if kept else fill))
        identity = tuple(Row(((i, 1),)) for i in range(len(shape)))
        if op.map == Affine(identity) and tuple(shape) == x.shape:
            return x
        return self.node(op, (x,), x.dtype, shape)

    def reshape(self, x: Node, shape: Sequence[Extent]) -> Node:
        """The same elements in row-major order under another shape."""
        shape = tuple(shape)
        if shape == x.shape:
            return x
        if dim.product(shape) != dim.product(x.shape):
            raise self.error(
                "shape error", f"reshape of {x.type} to [{' '.join(map(str, shape))}]", "sizes differ"
            )
        return self.node(View(Reshape()), (x,), x.dtype, shape)

    def permute(self, x: Node, order: Sequence[int]) -> Node:
        """Axis `order[i]` of x becomes axis i."""
        order = [self.axis(x, a) for a in order]
        if sorted(order) != list(range(x.type.rank)):
            raise self.error("shape error", f"permutation {list(order)} of {x.type}", "name every axis once")
        rows = [Row(((order.index(k), 1),)) for k in range(len(order))]
        return self.view(x, rows, [x.shape[i] for i in order])

    def expand(self, x: Node, shape: Sequence[Extent]) -> Node:
        """Broadcast x to `shape`: leading axes appear, axes of size 1 repeat."""
        shape, lead = tuple(shape), len(shape) - x.type.rank
        if lead < 0 or any(z not in (1, shape[i + lead]) for i, z in enumerate(x.shape)):
            raise self.error("shape error", f"{x.type} does not broadcast to [{' '.join(map(str, shape))}]")
        rows = [Row(() if z == 1 else ((i + lead, 1),)) for i, z in enumerate(x.shape)]
        return x if shape == x.shape else self.view(x, rows, shape)

    def broadcast(self, *xs: Node) -> tuple[Node, ...]:
        """All of `xs` expanded to their common shape."""
        rank = max(x.type.rank for x in xs)
        shape: list[Extent] = []
        for i in range(rank):
            sizes = [x.shape[i - rank] for x in xs if x.type.rank >= rank - i]
            wide = next((z for z in sizes if z != 1), 1)
            if any(z not in (1, wide) for z in sizes):
                raise self.error("shape error", f"{' and '.join(str(x.type) for x in xs)} do not broadcast")
            shape.append(wide)
        return tuple(self.expand(x, shape) for x in xs)

    def slice(self, x: Node, axis: int, start: Extent, stop: Extent, step: int = 1) -> Node:
        """Elements start, start+step … below stop along `axis`; must lie inside x."""
        axis = self.axis(x, axis)
        if step < 1:
            raise self.error(
                "shape error", f"a slice of step {step}", "a step is positive; flip turns an axis"
            )
        size: Extent = (stop - start + (step - 1)) // step if step != 1 else stop - start
        low, _ = dim.bounds(start, self.dims)
        _, beyond = dim.bounds(stop - x.shape[axis], self.dims)
        if low < 0 or (isinstance(x.shape[axis], int) and isinstance(stop, int) and beyond > 0):
            raise self.error(
                "shape error", f"slice {start} … {stop} step {step} leaves axis {axis} of {x.type}"
            )
        if isinstance(size, int) and size < 0:
            raise self.error("shape error", f"slice {start} … {stop} of {x.type} is backwards")
        rows = [Row(((i, step if i == axis else 1),), start if i == axis else 0) for i in range(x.type.rank)]
        return self.view(x, rows, [size if i == axis else z for i, z in enumerate(x.shape)])

    def pad(self, x: Node, axis: int, low: Extent, high: Extent, fill: Scalar = 0) -> Node:
        """`low` and `high` elements of `fill` around x along `axis`."""
        axis = self.axis(x, axis)
        rows = [Row(((i, 1),), 0 - low if i == axis else 0) for i in range(x.type.rank)]
        return self.view(x, rows, [z + low + high if i == axis else z for i, z in enumerate(x.shape)], fill)

    def flip(self, x: Node, axis: int) -> Node:
        """x backwards along `axis`."""
        axis = self.axis(x, axis)
        rows = [Row(((i, -1),), x.shape[i] - 1) if i == axis else Row(((i, 1),)) for i in range(x.type.rank)]
        return self.view(x, rows, x.shape)

    def windows(self, x: Node, axis: int, size: int, stride: int = 1, dilation: int = 1) -> Node:
        """[… n …] → [… (n - reach)/stride + 1, size …]: overlapping windows, the new axis after `axis`."""
        axis = self.axis(x, axis)
        count = (x.shape[axis] - (dilation * (size - 1) + 1)) // stride + 1
        if isinstance(count, int) and count < 1:
            raise self.error("shape error", f"a window of {size} does not fit axis {axis} of {x.type}")
        rows = [
            Row(((i, stride), (i + 1, dilation))) if i == axis else Row(((i if i < axis else i + 1, 1),))
            for i in range(x.type.rank)
        ]
        return self.view(x, rows, (*x.shape[:axis], count, size, *x.shape[axis + 1 :]))

    # -- checks

    def axis(self, x: Node, axis: int) -> int:
        """The nonnegative number of an axis that may be counted from the end."""
        if not -x.type.rank <= axis < x.type.rank:
            raise self.error("shape error", f"axis {axis} of {x.type}", f"it has {x.type.rank} axes")
        return axis % x.type.rank

    def error(self, kind: str, message: str, hint: str = "") -> LumiError:
        """An error at the current span."""
        return LumiError(kind, message, self.span, hint=hint)

    def _numeric(self, what: str, x: Node) -> None:
        if x.dtype is BOOL:
            raise self.error("type error", f"{what} of {x.type}", "cast it to a number first")

    def _integer(self, what: str, index: Node) -> None:
        if index.dtype.kind not in ("int", "uint"):
            raise self.error("type error", f"{what} indices are {index.type}", "they must be integers")

    def _possible(self, node: Node) -> None:
        """Raise for a size that may be negative, and for a view or an update that no dims keep inside."""
        for size in node.shape:
            if size not in self._sizes and dim.bounds(size, self.dims)[0] < 0:
                what = f"an axis of [{' '.join(map(str, node.shape))}] may have a negative size"
                raise self.error("shape error", what, f"{size} is negative for some values of its dims")
            self._sizes.add(size)
        outside = impossible(node, self.dims)
        if outside:
            raise self.error("shape error", str(outside), "that is outside of it")

    def _inside(self, x: Node, rows: Sequence[Row], shape: Sequence[Extent]) -> bool:
        """Whether every row provably stays inside x over all dims."""
        for row, size in zip(rows, x.shape, strict=True):
            least: Extent = row.offset
            greatest: Extent = row.offset
            for axis, coefficient in row.terms:
                reach = (shape[axis] - 1) * coefficient
                least, greatest = (least, greatest + reach) if coefficient > 0 else (least + reach, greatest)
            if dim.bounds(least, self.dims)[0] < 0 or dim.bounds(size - greatest, self.dims)[0] < 1:
                return False
        return True


def _sizes(node: Node) -> Iterator[Extent]:
    yield from node.shape
    match node.op:
        case Symbol(extent) | Iota(extent):
            yield extent
        case Input(_, most) if most is not None:
            yield most
        case Update(_, start):
            yield start
        case View(Affine(rows)):
            yield from (row.offset for row in rows)
        case _:
            pass
