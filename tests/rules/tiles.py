"""The meaning of e-nodes as tile programs, in f64: what a choice of e-nodes computes.

A reduction over a domain visits tiles of random sizes.  An accumulator starts as the identity, and each tile
turns it into `rho * acc op tau op reduce(step)`; accumulators over one domain advance together.  A tile on
which the predicates of a masked domain are false everywhere may be skipped, and then changes nothing.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lumi.dtype import BOOL, DTYPES, I32, DType
from lumi.egraph.graph import EGraph, ENode
from lumi.field.axis import LIMIT, AxisTable
from lumi.field.operators import BINARY, COMPARISONS, UNARY
from lumi.hlir.reference import cast, held_type, loaded, stored

IDENTITY = {"sum": 0.0, "max": -math.inf, "mul": 1.0}
COMBINE = {"sum": np.add, "max": np.maximum, "mul": np.multiply}

Choice = Mapping[int, ENode]


@dataclass(frozen=True)
class Value:
    """An array with one dimension for every axis of the region, of length 1 where it does not vary."""

    array: np.ndarray
    dtype: DType | None


@dataclass(frozen=True)
class Loop:
    """The tiles of one domain in one place, and which of them is the present one."""

    key: tuple[object, ...]
    tiles: tuple[Mapping[str, tuple[int, ...]], ...]
    at: int


@dataclass(frozen=True)
class Place:
    """Where a class is evaluated: the positions of every axis, and the loops around it by their axes."""

    positions: Mapping[str, tuple[int, ...]]
    loops: Mapping[int, Loop]


class Machine:
    """Runs a choice of e-nodes on given buffers."""

    def __init__(
        self,
        egraph: EGraph,
        choice: Choice,
        axes: AxisTable,
        sizes: Mapping[str, int],
        buffers: Mapping[str, Value],
        seed: int = 0,
    ) -> None:
        self._egraph, self._choice, self._axes, self._sizes = egraph, choice, axes, sizes
        self._buffers, self._random = buffers, random.Random(seed)
        self._memo: dict[tuple[object, ...], Value] = {}
        self._tilings: dict[tuple[object, ...], tuple[Mapping[str, tuple[int, ...]], ...]] = {}
        self._skips = self._random.random() < 0.5

    def root(self, number: int = 0) -> Value:
        """The value of a store's class over the whole of its axes."""
        whole = {a.name: tuple(range(self._sizes[a.name])) for a in self._axes}
        return self.value(self._egraph.roots[number], Place(whole, {}))

    def value(self, cls: int, place: Place) -> Value:
        """The value of a term class in a place."""
        key = (cls, *self._seen(cls, place))
        if key not in self._memo:
            with np.errstate(all="ignore"):
                self._memo[key] = self._compute(self._choice[cls], place)
        return self._memo[key]

    def _seen(self, cls: int, place: Place) -> tuple[object, ...]:
        """The part of a place that a class depends on."""
        free = self._egraph.free[cls]
        inner = tuple(place.positions[a] for a in self._axes.names(free))
        loops = tuple((m, loop.key, loop.at) for m, loop in sorted(place.loops.items()) if free >> LIMIT & m)
        return inner, loops

    def _compute(self, node: ENode, place: Place) -> Value:
        match node.op, node.attrs, node.children:
            case "In", (str(name), int(mask), _), ():
                return self._load(name, mask, place)
            case "Gat", (str(name), int(mask), _), (index,):
                return self._gather(name, mask, self.value(index, place), place)
            case "Const", (float(number),), ():
                return Value(np.full((1,) * len(self._axes), number), None)
            case "Pos", (int(mask),), ():
                (axis,) = self._axes.names(mask)
                return Value(self._along(axis, np.asarray(place.positions[axis], np.int32)), I32)
            case "Un", (str(op),), (a,):
                return unary(op, self.value(a, place))
            case "Bin", (str(op),), (a, b):
                return binary(op, self.value(a, place), self.value(b, place))
            case "Sel", (), (c, a, b):
                return select(*(self.value(k, place) for k in (c, a, b)))
            case "Red", (str(op),), (domain, body):
                return self._reduce(op, domain, body, place)
            case "Fin", (), (acc,):
                return self._finish(acc, place)
            case "Run", (), (acc,):
                return self._step(acc, self._loop(acc, place), place)
            case "Prev", (), (acc,):
                return self._before(acc, self._loop(acc, place), place)
        raise AssertionError(node)

    def _load(self, name: str, mask: int, place: Place) -> Value:
        value = self._buffers[name]
        picks = [np.asarray(place.positions[a.name] if a.bit & mask else (0,), int) for a in self._axes]
        return Value(value.array[np.ix_(*picks)], value.dtype)

    def _gather(self, name: str, mask: int, index: Value, place: Place) -> Value:
        """Rows of a buffer whose first dimension is the index and whose others are axes."""
        value = self._buffers[name]
        picks = [
            self._along(a.name, np.asarray(place.positions[a.name] if a.bit & mask else (0,), int))
            for a in self._axes
        ]
        return Value(value.array[(index.array, *picks)], value.dtype)

    def _along(self, axis: str, values: np.ndarray) -> np.ndarray:
        return values.reshape([len(values) if a.name == axis else 1 for a in self._axes])

    # -- domains

    def _domain(self, domain: int) -> tuple[int, int, tuple[int, ...]]:
        """The axes of a domain, its chunk axis or 0, and its predicates."""
        node = self._choice[domain]
        match node.op, node.attrs, node.children:
            case "Full", (int(mask),), ():
                return mask, 0, ()
            case "Chunk", (int(mask), int(chunk)), ():
                return mask, chunk, ()
            case "Mask", (), (inner, predicate):
                mask, chunk, predicates = self._domain(inner)
                return mask, chunk, (*predicates, predicate)
        raise AssertionError(node)

    def _points(self, mask: int, chunk: int, place: Place) -> dict[str, tuple[int, ...]]:
        """The positions of a domain's axes."""
        names = self._axes.names(mask)
        if not chunk:
            return {a: tuple(range(self._sizes[a])) for a in names}
        (axis,), (by,) = names, self._axes.names(chunk)
        ((number,), size, count) = place.positions[by], self._sizes[axis], self._sizes[by]
        length = -(-size // count)
        return {axis: tuple(range(min(size, number * length), min(size, (number + 1) * length)))}

    def _each_chunk(self, chunk: int, place: Place) -> list[Place]:
        (by,) = self._axes.names(chunk)
        return [self._at(place, {by: (n,)}) for n in place.positions[by]]

    def _at(self, place: Place, positions: Mapping[str, tuple[int, ...]]) -> Place:
        """A place with other positions.  Loops over axes that are bound anew are left."""
        mask = self._axes.mask(positions)
        loops = {m: loop for m, loop in place.loops.items() if not m & mask}
        return Place({**place.positions, **positions}, loops)

    def _joined(self, chunk: int, values: list[Value]) -> Value:
        (by,) = self._axes.names(chunk)
        at = [a.name for a in self._axes].index(by)
        shape = list(np.broadcast_shapes(*(v.array.shape for v in values)))
        shape[at] = 1
        parts = [np.broadcast_to(v.array, shape) for v in values]
        return Value(np.concatenate(parts, axis=at), values[0].dtype)

    # -- reductions

    def _reduce(self, op: str, domain: int, body: int, place: Place) -> Value:
        mask, chunk, predicates = self._domain(domain)
        if chunk and len(place.positions[self._axes.names(chunk)[0]]) != 1:
            parts = [self._reduce(op, domain, body, p) for p in self._each_chunk(chunk, place)]
            return self._joined(chunk, parts)
        return self._fold(op, mask, body, predicates, self._at(place, self._points(mask, chunk, place)))

    def _fold(self, op: str, mask: int, body: int, predicates: tuple[int, ...], place: Place) -> Value:
        """Reduce a class over the positions of the axes of `mask`; at times without the masked points."""
        value = self.value(body, place)
        array = value.array
        names = self._axes.names(mask)
        lengths = zip(self._axes, array.shape, strict=True)
        array = np.broadcast_to(
            array, [len(place.positions[a.name]) if a.name in names else n for a, n in lengths]
        )
        if self._skips:
            for predicate in predicates:
                holds = self.value(predicate, place).array
                array = np.where(holds, array, array.dtype.type(_identity(op, array.dtype)))
        over = tuple(k for k, a in enumerate(self._axes) if a.name in names)
        start = _identity(op, array.dtype)
        match op:
            case "sum":
                folded = np.sum(array, axis=over, keepdims=True, dtype=array.dtype)
            case "max":
                folded = np.max(array, axis=over, keepdims=True, initial=start)
            case _:
                folded = np.prod(array, axis=over, keepdims=True, dtype=array.dtype)
        return Value(folded, value.dtype)

    # -- loops

    def _finish(self, acc: int, place: Place) -> Value:
        node = self._choice[acc]
        mask, chunk, _ = self._domain(node.children[0])
        if chunk and len(place.positions[self._axes.names(chunk)[0]]) != 1:
            parts = [self._finish(acc, p) for p in self._each_chunk(chunk, place)]
            return self._joined(chunk, parts)
        inner = {m: loop for m, loop in place.loops.items() if not m & mask}
        tiles = self._tiles(mask, chunk, place)
        key = (mask, chunk, place.positions[self._axes.names(chunk)[0]] if chunk else ())
        loop = Loop(key, tiles, len(tiles))
        return self._before(acc, loop, replace(place, loops={**inner, mask: loop}))

    def _tiles(self, mask: int, chunk: int, place: Place) -> tuple[Mapping[str, tuple[int, ...]], ...]:
        """The tiles of a domain: one random tiling, the same for every accumulator over it."""
        points = self._points(mask, chunk, place)
        key = (mask, chunk, tuple(points.values()))
        if key not in self._tilings:
            parts = [[(a, cut) for cut in self._cuts(p)] for a, p in points.items()]
            self._tilings[key] = tuple(dict(tile) for tile in itertools.product(*parts))
        return self._tilings[key]

    def _cuts(self, positions: tuple[int, ...]) -> list[tuple[int, ...]]:
        size = self._random.choice((1, 2, 3, 5))
        return [positions[k : k + size] for k in range(0, len(positions), size)]

    def _loop(self, acc: int, place: Place) -> Loop:
        mask, _, _ = self._domain(self._choice[acc].children[0])
        return place.loops[mask]

    def _before(self, acc: int, loop: Loop, place: Place) -> Value:
        """An accumulator before tile `loop.at`."""
        node = self._choice[acc]
        mask, _, _ = self._domain(node.children[0])
        if loop.at == 0:
            dtype = self._egraph.dtype[node.children[1]]
            start = _identity(str(node.attrs[0]), np.dtype(held_type(dtype, True)))
            return Value(np.full((1,) * len(self._axes), start, held_type(dtype, True)), dtype)
        earlier = replace(loop, at=loop.at - 1)
        return self._step(acc, earlier, replace(place, loops={**place.loops, mask: earlier}))

    def _step(self, acc: int, loop: Loop, place: Place) -> Value:
        """An accumulator after tile `loop.at`."""
        outside = tuple(place.positions[a.name] for a in self._axes if a.bit & self._free_of(acc))
        around = tuple((m, o.key, o.at) for m, o in sorted(place.loops.items()))
        key = ("acc", acc, loop.key, loop.at, outside, around)
        if key not in self._memo:
            with np.errstate(all="ignore"):
                self._memo[key] = self._advance(acc, loop, place)
        return self._memo[key]

    def _free_of(self, acc: int) -> int:
        _, step, rho, tau = self._choice[acc].children
        mask, chunk, _ = self._domain(self._choice[acc].children[0])
        free = self._egraph.free[step] | self._egraph.free[rho] | self._egraph.free[tau]
        return (free & ~mask) | chunk

    def _advance(self, acc: int, loop: Loop, place: Place) -> Value:
        node = self._choice[acc]
        op = str(node.attrs[0])
        domain, step, rho, tau = node.children
        mask, _, predicates = self._domain(domain)
        previous = self._before(acc, loop, place)
        here = Place({**place.positions, **loop.tiles[loop.at]}, {**place.loops, mask: loop})
        if self._skips and any(not self.value(p, here).array.any() for p in predicates):
            return previous
        current = previous
        if not self._is_constant(rho, 0.0 if op == "max" else 1.0):
            current = binary("add" if op == "max" else "mul", current, self.value(rho, here))
        if not self._is_constant(tau, 0.0):
            current = binary("add", current, self.value(tau, here))
        part = self._fold(op, mask, step, (), here)
        return Value(COMBINE[op](current.array, part.array), current.dtype)

    def _is_constant(self, cls: int, number: float) -> bool:
        return ENode("Const", (number,), ()) in self._egraph.classes[cls]


def _identity(op: str, dtype: np.dtype) -> float | int:
    if op == "max" and dtype.kind != "f":
        return int(np.iinfo(dtype).min)
    return IDENTITY[op]


def _typed(value: Value, dtype: DType | None) -> np.ndarray:
    if value.dtype or not dtype:
        return value.array
    return value.array.astype(held_type(dtype, True))


def unary(op: str, a: Value) -> Value:
    """An elementwise function, a cast or a bitcast."""
    if op.startswith("cast."):
        dtype = DTYPES[op[5:]]
        return Value(np.asarray(cast(a.array, dtype, True)), dtype)
    if op.startswith("bits."):
        dtype = DTYPES[op[5:]]
        assert a.dtype
        raw = np.ascontiguousarray(stored(a.array, a.dtype)).view(dtype.storage)
        return Value(loaded(raw, dtype, True).reshape(a.array.shape), dtype)
    return Value(np.asarray(UNARY[op](a.array)), a.dtype)


def binary(op: str, a: Value, b: Value) -> Value:
    """An elementwise function of two."""
    dtype = a.dtype or b.dtype
    array = np.asarray(BINARY[op](_typed(a, dtype), _typed(b, dtype)))
    return Value(array, BOOL if op in COMPARISONS else dtype)


def select(c: Value, a: Value, b: Value) -> Value:
    """A selection."""
    dtype = a.dtype or b.dtype
    return Value(np.where(c.array, _typed(a, dtype), _typed(b, dtype)), dtype)
