"""Run kernels in numpy: the executor where there is no C compiler, and the check of every other one.

A kernel's cells run one after another, each statement on whole tiles.  Tiles end where their axis ends,
so no lane past the end exists.  Grid cells are independent, so they are run many at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from lumi import dim
from lumi.dtype import BOOL, F64, I32, DType
from lumi.field.access import Access
from lumi.field.index import Data, Index, Look, Part, Quot, Rem, Sym
from lumi.llir import arithmetic
from lumi.llir.arithmetic import Array
from lumi.llir.interval import may_hold
from lumi.llir.kernel import (
    Dot,
    Kernel,
    Load,
    Loop,
    Map,
    Operand,
    Position,
    Reduce,
    Statement,
    Store,
    Symbol,
    walk,
    written,
)

TILE_ELEMENTS = 1 << 20
"""A tile may grow to this many elements when cells are run together."""


def run(kernel: Kernel, buffers: dict[str, Array], dims: Mapping[str, int]) -> None:
    """Run every cell of `kernel`, writing what it stores into `buffers`.

    `buffers` holds raw memory by name: contiguous arrays of each access's size and storage type (bf16 as
    uint16).  Raises `KeyError` for a missing dim or buffer, `IndexError` when an access that may not
    leave its buffer does.
    """
    _Run(kernel, buffers, dims).cells()


@dataclass(frozen=True, slots=True)
class _Tile:
    """A value: an array with one dimension for each of `axes`, and its type."""

    array: Array
    axes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class _Span:
    """The positions `start` up to `stop` of an axis that the current tile covers."""

    start: int
    stop: int

    @property
    def positions(self) -> Array:
        return np.arange(self.start, self.stop, dtype=np.int64)


@dataclass(slots=True)
class _Run:
    kernel: Kernel
    buffers: dict[str, Array]
    dims: Mapping[str, int]
    order: dict[str, int] = field(init=False)
    extents: dict[str, int] = field(init=False)
    written: frozenset[str] = field(init=False)
    spans: dict[str, _Span] = field(default_factory=dict)
    values: dict[str, _Tile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.order = {name: number for number, name in enumerate(self.kernel.axes)}
        self.extents = {name: dim.value(e, self.dims) for name, e in self.kernel.axes.items()}
        self.written = written(self.kernel)

    def cells(self) -> None:
        kernel, steps = self.kernel, self._cell_steps()
        starts = [range(0, self.extents[a], steps[a]) for a in kernel.grid]
        for cell in itertools.product(*starts):
            self.spans = {a: self._tile(a, s, steps[a]) for a, s in zip(kernel.grid, cell, strict=True)}
            self.spans |= {a: _Span(0, self.extents[a]) for a in kernel.resident}
            self.values = {}
            self._block(kernel.body)

    def _tile(self, axis: str, start: int, step: int, stop: int | None = None) -> _Span:
        return _Span(start, min(start + step, self.extents[axis] if stop is None else stop))

    def _cell_steps(self) -> dict[str, int]:
        """Grid steps, grown innermost first while no value outgrows `TILE_ELEMENTS`."""
        kernel = self.kernel
        steps = {a: kernel.tiles.get(a, 1) for a in kernel.grid}
        chunks = {s.chunk for s in walk(kernel.body) if isinstance(s, Loop)}
        shapes = [_axes_of(s) for s in walk(kernel.body)]
        fixed = {a: kernel.tiles.get(a, 1) for a in kernel.axes} | {
            a: self.extents[a] for a in kernel.resident
        }
        for axis in reversed([a for a in kernel.grid if a not in chunks]):
            others = fixed | {a: s for a, s in steps.items() if a != axis}
            most = max((math.prod(others[a] for a in s if a != axis) for s in shapes if axis in s), default=1)
            steps[axis] = max(steps[axis], min(self.extents[axis], TILE_ELEMENTS // max(most, 1)), 1)
        return steps

    # -- statements

    def _block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            match statement:
                case Load(var, access, data, axes, dtype):
                    self.values[var] = self._load(access, data, axes, dtype)
                case Position(var, axis):
                    here = self.spans[axis].positions.astype(np.int32)
                    self.values[var] = _Tile(here, (axis,), I32)
                case Symbol(var, name):
                    self.values[var] = _Tile(np.asarray(self.dims[name], np.int32), (), I32)
                case Map(var, op, args, axes, dtype):
                    self.values[var] = self._map(op, args, axes, dtype)
                case Reduce(var, op, over, value, axes, dtype):
                    self.values[var] = self._reduce(op, over, value, axes, dtype)
                case Dot(var, over, a, b, axes, dtype):
                    self.values[var] = self._dot(over, a, b, axes, dtype)
                case Store(access, value, axes):
                    self._store(access, value, axes)
                case Loop():
                    self._loop(statement)

    def _map(self, op: str, args: tuple[Operand, ...], axes: tuple[str, ...], dtype: DType) -> _Tile:
        typed = args[1:] if op == "sel" else args
        operand = next((self.values[a].dtype for a in typed if isinstance(a, str)), None)
        if operand is None:
            operand = dtype if dtype != BOOL else F64
        arrays = [self._operand(a, operand, axes) for a in typed]
        if op == "sel":
            arrays.insert(0, self._operand(args[0], BOOL, axes))
        result = arithmetic.apply(op, tuple(arrays), operand, dtype)
        return _Tile(np.broadcast_to(result, self._shape(axes)), axes, dtype)

    def _reduce(
        self, op: str, over: tuple[str, ...], value: Operand, axes: tuple[str, ...], dtype: DType
    ) -> _Tile:
        whole = self._sorted((*axes, *over))
        array = np.broadcast_to(self._operand(value, dtype, whole), self._shape(whole))
        where = tuple(whole.index(a) for a in over)
        return _Tile(arithmetic.reduce(op, array, where, dtype), axes, dtype)

    def _dot(
        self, over: tuple[str, ...], a: Operand, b: Operand, axes: tuple[str, ...], dtype: DType
    ) -> _Tile:
        if not dtype.is_float:
            whole = self._sorted((*axes, *over))
            product = arithmetic.apply(
                "mul", (self._operand(a, dtype, whole), self._operand(b, dtype, whole)), dtype, dtype
            )
            array = np.broadcast_to(product, self._shape(whole))
            where = tuple(whole.index(x) for x in over)
            return _Tile(arithmetic.reduce("sum", array, where, dtype), axes, dtype)
        left, right = self._factor(a, over, dtype), self._factor(b, (), dtype)
        with np.errstate(all="ignore"):
            result = np.einsum(
                left.array,
                [self.order[x] for x in left.axes],
                right.array,
                [self.order[x] for x in right.axes],
                [self.order[x] for x in axes],
                optimize=True,
            )
        return _Tile(arithmetic.rounded(np.asarray(result), dtype), axes, dtype)

    def _factor(self, operand: Operand, over: tuple[str, ...], dtype: DType) -> _Tile:
        """An operand of a contraction, spread over the axes `over` that it lacks."""
        mine = self.values[operand].axes if isinstance(operand, str) else ()
        axes = self._sorted({*mine, *over})
        return _Tile(np.broadcast_to(self._operand(operand, dtype, axes), self._shape(axes)), axes, dtype)

    def _loop(self, loop: Loop) -> None:
        current = {
            c.previous: _Tile(
                np.full(self._shape(c.axes), arithmetic.identity(c.op, c.dtype), arithmetic.held(c.dtype)),
                c.axes,
                c.dtype,
            )
            for c in loop.carries
        }
        for spans in itertools.product(*(self._loop_tiles(a, loop.chunk) for a in loop.axes)):
            self.spans.update(zip(loop.axes, spans, strict=True))
            ends = {a: (s.start, s.stop - 1) for a, s in self.spans.items()}
            if loop.guards and not may_hold(loop.guards, ends, self.dims):
                continue
            self.values.update(current)
            self._block(loop.body)
            current = {c.previous: self._carried(c.next, c.axes, c.dtype) for c in loop.carries}
        for axis in loop.axes:
            self.spans.pop(axis, None)
        self.values.update({c.final: current[c.previous] for c in loop.carries})

    def _carried(self, operand: Operand, axes: tuple[str, ...], dtype: DType) -> _Tile:
        return _Tile(np.broadcast_to(self._operand(operand, dtype, axes), self._shape(axes)), axes, dtype)

    def _loop_tiles(self, axis: str, chunk: str | None) -> Iterator[_Span]:
        step = self.kernel.tiles.get(axis, 1)
        low, high = 0, self.extents[axis]
        if chunk is not None:
            length = chunk_length(high, self.extents[chunk])
            low = self.spans[chunk].start * length
            high = min(high, low + length)
        return (self._tile(axis, start, step, high) for start in range(low, high, step))

    # -- memory

    def _load(self, access: Access, data: tuple[Operand, ...], axes: tuple[str, ...], dtype: DType) -> _Tile:
        source = self._seen(access)
        raw = np.zeros((1,) * len(axes), source.dtype) if source.size == 0 else self._window(access, axes)
        if raw is None:
            raw = source[self._where(access, data, axes)]
        elif access.buffer in self.written:
            raw = raw.copy()
        values = arithmetic.from_memory(raw, access.dtype)
        if access.dtype != dtype:
            values = arithmetic.cast(values, access.dtype, dtype)
        return _Tile(np.broadcast_to(values, self._shape(axes)), axes, dtype)

    def _window(self, access: Access, axes: tuple[str, ...]) -> Array | None:
        """The elements as a slice of the buffer, when every index is at most one axis and an offset."""
        source, cuts, found = self._seen(access), [], []
        for index, size in zip(access.index, source.shape, strict=True):
            named = [(p, c) for p, c in index.terms if not isinstance(p, Sym)]
            if len(named) > 1 or any(not isinstance(p, str) or c < 1 or p in found for p, c in named):
                return None
            base = index.offset + sum(c * self._symbol(p) for p, c in index.terms if isinstance(p, Sym))
            start, last, step = base, base, 1
            for axis, step in named:
                assert isinstance(axis, str)
                found.append(axis)
                start, last = (base + step * x for x in (self.spans[axis].start, self.spans[axis].stop - 1))
            if last >= start and (start < 0 or last >= size):
                return None
            cuts.append(slice(start, last + 1, step) if named else start)
        window = source[tuple(cuts)]
        ordered = self._sorted(found)
        window = np.transpose(window, [found.index(a) for a in ordered])
        return window.reshape([self._length(a) if a in ordered else 1 for a in axes])

    def _where(self, access: Access, data: tuple[Operand, ...], axes: tuple[str, ...]) -> tuple[Array, ...]:
        """Index arrays over `axes`.  What may leave the buffer is clamped, anything else must not."""

        def at(part: Part) -> Array | int:
            match part:
                case str():
                    return self._align(_Tile(self.spans[part].positions, (part,), I32), axes)
                case Sym():
                    return self._symbol(part)
                case Data(number):
                    return self._operand(data[number], I32, axes).astype(np.int64)
                case Quot(index, divisor):
                    return inside(index) // divisor
                case Rem(index, divisor):
                    return inside(index) % divisor
                case Look():
                    return self._looked(part, tuple(map(inside, part.index)))

        def inside(index: Index) -> Array:
            total: Array = np.asarray(index.offset, np.int64)
            for part, coefficient in index.terms:
                total = total + coefficient * at(part)
            return total

        places = []
        shape = self._seen(access).shape
        for index, size in zip(access.index, shape, strict=True):
            place = inside(index)
            if access.clamp or index.data():
                place = np.clip(place, 0, size - 1)
            elif place.size and (place.min() < 0 or place.max() >= size):
                raise IndexError(f"{access} leaves its buffer, whose shape is {shape}")
            places.append(place)
        return tuple(places)

    def _seen(self, access: Access) -> Array:
        """A buffer under the shape that an access sees it in."""
        return self.buffers[access.buffer].reshape([dim.value(size, self.dims) for size in access.shape])

    def _looked(self, look: Look, at: tuple[Array, ...]) -> Array:
        """What lies in a buffer, clamped."""
        table = self._seen(Access(look.buffer, look.index, look.shape, I32))
        return np.clip(table[at].astype(np.int64), 0, max(dim.value(look.size, self.dims) - 1, 0))

    def _symbol(self, symbol: Sym) -> int:
        return dim.value(symbol.extent, self.dims)

    def _store(self, access: Access, value: Operand, axes: tuple[str, ...]) -> None:
        target = self._seen(access)
        source = self.values[value].dtype if isinstance(value, str) else access.dtype
        array = np.broadcast_to(self._operand(value, source, axes), self._shape(axes))
        if source != access.dtype:
            array = arithmetic.cast(array, source, access.dtype)
        if array.size:
            target[self._where(access, (), axes)] = arithmetic.to_memory(array, access.dtype)

    # -- shapes

    def _length(self, axis: str) -> int:
        span = self.spans[axis]
        return max(span.stop - span.start, 0)

    def _shape(self, axes: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(map(self._length, axes))

    def _sorted(self, axes: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(axes, key=self.order.__getitem__))

    def _operand(self, operand: Operand, dtype: DType, axes: tuple[str, ...]) -> Array:
        """An operand converted to `dtype`, with one dimension (perhaps of length 1) for each of `axes`."""
        if not isinstance(operand, str):
            return arithmetic.number(operand, dtype).reshape((1,) * len(axes))
        tile = self.values[operand]
        array = self._align(tile, axes)
        return array if tile.dtype == dtype else arithmetic.cast(array, tile.dtype, dtype)

    def _align(self, tile: _Tile, axes: tuple[str, ...]) -> Array:
        order = [tile.axes.index(a) for a in axes if a in tile.axes]
        shape = [self._length(a) if a in tile.axes else 1 for a in axes]
        return tile.array.transpose(order).reshape(shape)


def _axes_of(statement: Statement) -> tuple[str, ...]:
    """Every axis along which a statement's tile or the tiles it combines extend."""
    match statement:
        case Position(_, axis):
            return (axis,)
        case Load(_, _, _, axes, _) | Map(_, _, _, axes, _) | Store(_, _, axes):
            return axes
        case Reduce(_, _, over, _, axes, _) | Dot(_, over, _, _, axes, _):
            return (*axes, *over)
        case Loop(_, _, _, carries, _):
            return tuple(dict.fromkeys(a for c in carries for a in c.axes))
        case Symbol():
            return ()


def chunk_length(extent: int, chunks: int) -> int:
    """Positions of an axis that each of `chunks` chunks covers, the last perhaps fewer."""
    return -(-extent // max(chunks, 1))
