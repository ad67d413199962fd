"""The numpy meaning of field terms and regions: what every kernel is compared with.

Each term becomes a whole array over its axes.  Contractions go through `einsum`, and a store whose terms
are large is computed a slab of one axis at a time, so that real sizes fit.  With `wide`, floats are
computed in f64 and only casts to half types round; otherwise every value has its declared type, halves
being held in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lumi import dim
from lumi.dtype import BOOL, DTYPES, F32, I32, DType
from lumi.field.access import Access
from lumi.field.index import Index
from lumi.field.operators import BINARY, COMPARISONS, UNARY
from lumi.field.points import Array, Field, Points
from lumi.field.region import Region, Store
from lumi.field.term import Bin, Const, Gat, In, Pos, Red, Sel, Term, Un, children
from lumi.field.traverse import bound_axes, free_axes, postorder
from lumi.hlir.reference import cast, held_type, loaded, rounded, stored

SLAB = 2**26
"""Elements above which the terms of a store are computed in slabs of one of its axes."""


def evaluate(
    region: Region,
    buffers: dict[str, Array],
    dims: Mapping[str, int],
    wide: bool = True,
    factors: Callable[[Array], Array] | None = None,
) -> None:
    """Run every store of the region, in order, on `buffers`, keyed by canonical name (`B0` …).

    A buffer that is stored and missing is made: zeros of its access's shape, in f64 for floats when
    `wide`.  Given buffers may have any shape of the same size; floats of any width are taken as values,
    and unsigned integers stand for the raw floats that numpy lacks.  Sums of products take what `factors`
    makes of their f32 factors, where it stands for every rounding to TF32.  Raises `ValueError` when an
    access leaves its buffer unclamped or when a produced buffer is read before its store.
    """
    ranges = {a.name: range(dim.value(a.extent, dims)) for a in region.axes}
    frame = Frame(ranges, dims, buffers, region.accesses, wide, set(region.produced), factors=factors)
    with np.errstate(all="ignore"):
        for number, store in enumerate(region.stores):
            frame.allocate(store.access)
            for slab in frame.slabs(store):
                slab.write(store)
            frame.pending -= {name for name, at in region.produced.items() if at == number}


def evaluate_regions(
    regions: Iterable[Region], arrays: dict[str, Array], dims: Mapping[str, int], wide: bool = True
) -> None:
    """Run regions in order on arrays keyed by actual name; what they store is made or overwritten."""
    for region in regions:
        names = {f"B{k}": actual for k, actual in enumerate(region.buffers)}
        buffers = {c: arrays[actual] for c, actual in names.items() if actual in arrays}
        evaluate(region, buffers, dims, wide)
        arrays.update({names[c]: array for c, array in buffers.items()})


def evaluate_term(
    term: Term,
    extents: Mapping[str, int],
    buffers: Mapping[str, Array],
    accesses: Mapping[str, Access] | None = None,
    dims: Mapping[str, int] | None = None,
    wide: bool = True,
) -> tuple[Array, tuple[str, ...]]:
    """The array of one term and the axes of its dimensions, which follow the order of `extents`.

    An `In` whose name is no access reads the buffer of that name, one dimension for each of its axes.
    """
    ranges = {name: range(size) for name, size in extents.items()}
    frame = Frame(ranges, dims or {}, dict(buffers), accesses or {}, wide)
    with np.errstate(all="ignore"):
        value = frame.value(term)
    axes = frame.ordered(value.axes)
    return frame.spread(value.array, value.axes, axes), axes


@dataclass(slots=True)
class Frame(Points):
    """Where terms are evaluated: the positions of each axis, the buffers, and the fields found so far.

    `pending` are the buffers whose store is still to come; `factors` stands for what f32 factors of sums of
    products become.
    """

    accesses: Mapping[str, Access]
    wide: bool
    pending: set[str] = field(default_factory=set)
    memo: dict[int, Field] = field(default_factory=dict)
    factors: Callable[[Array], Array] | None = None

    def value(self, term: Term) -> Field:
        """The field a term denotes.  Terms are told apart by identity and must outlive the frame."""
        if id(term) not in self.memo:
            for inner in _needed(term):
                if id(inner) not in self.memo:
                    self.memo[id(inner)] = self._compute(inner)
        return self.memo[id(term)]

    # -- stores

    def allocate(self, access: Access) -> None:
        """Make the buffer of a store if it is missing."""
        if access.buffer not in self.buffers:
            wide = self.wide and access.dtype.is_float
            kind = np.dtype(np.float64) if wide else access.dtype.storage
            self.buffers[access.buffer] = np.zeros(self.shape(access), kind)

    def slabs(self, store: Store) -> Iterator[Frame]:
        """This frame, or if terms of the store are too large, frames that share one of its axes out."""
        free = free_axes([store.term])
        held = [free[id(t)] for t in _needed(store.term)]
        largest = max(math.prod(len(self.ranges[a]) for a in axes) for axes in held)
        outer = self.ordered(free[id(store.term)] - bound_axes([store.term]))
        if largest <= SLAB or not outer:
            yield self
            return
        whole = self.ranges[outer[0]]
        step = max(1, len(whole) * SLAB // largest)
        for start in range(0, len(whole), step):
            part = {**self.ranges, outer[0]: whole[start : start + step]}
            yield replace(self, ranges=part, memo={})

    def write(self, store: Store) -> None:
        """Write the value of a store, converted to its access's dtype."""
        value, access = self.value(store.term), store.access
        array = value.array if value.dtype == access.dtype else cast(value.array, access.dtype, self.wide)
        place, axes = self.places(access, None)
        full = np.broadcast_to(self.spread(array, value.axes, axes), tuple(len(self.ranges[a]) for a in axes))
        if not full.size:
            return
        buffer = self.buffers[access.buffer]
        view = buffer.reshape(self.shape(access))
        raw = access.dtype.is_raw and buffer.dtype == access.dtype.storage
        view[place] = stored(full, access.dtype) if raw else full
        if not np.shares_memory(view, buffer):
            buffer[...] = view.reshape(buffer.shape)

    # -- terms

    def _compute(self, term: Term) -> Field:
        match term:
            case In(name, axes, dtype):
                return self._read(name, axes, dtype, None)
            case Gat(name, axes, dtype, at):
                return self._read(name, axes, dtype, self.memo[id(at)])
            case Const(number):
                return Field(np.asarray(number), (), None)
            case Pos(axis):
                return Field(np.asarray(self.ranges[axis], np.int32), (axis,), I32)
            case Un(op, a):
                return self._unary(op, self.memo[id(a)])
            case Bin(op, a, b):
                return self._binary(op, self.memo[id(a)], self.memo[id(b)])
            case Sel(c, a, b):
                return self._select(self.memo[id(c)], self.memo[id(a)], self.memo[id(b)])
            case Red(op, bound, body):
                return self._reduce(op, bound, body)

    def _unary(self, op: str, a: Field) -> Field:
        if op.startswith("cast."):
            dtype = DTYPES[op[5:]]
            return Field(cast(a.array, dtype, self.wide), a.axes, dtype)
        if op.startswith("bits."):
            dtype = DTYPES[op[5:]]
            raw = np.ascontiguousarray(stored(a.array, a.type)).view(dtype.storage)
            return Field(loaded(raw, dtype, self.wide).reshape(a.array.shape), a.axes, dtype)
        if op == "tf32" and self.factors is not None:
            return a
        return Field(np.asarray(UNARY[op](a.array)), a.axes, a.dtype)

    def _binary(self, op: str, a: Field, b: Field) -> Field:
        x, y, axes, dtype = self._meet(op, a, b)
        return Field(np.asarray(BINARY[op](x, y)), axes, BOOL if op in COMPARISONS else dtype)

    def _select(self, condition: Field, a: Field, b: Field) -> Field:
        x, y, axes, dtype = self._meet("sel", a, b)
        names = self.ordered({*axes, *condition.axes})
        where = self.spread(condition.array, condition.axes, names)
        return Field(np.where(where, self.spread(x, axes, names), self.spread(y, axes, names)), names, dtype)

    def _meet(self, op: str, a: Field, b: Field) -> tuple[Array, Array, tuple[str, ...], DType | None]:
        """Two operands over their common axes and in their common type."""
        if a.dtype and b.dtype and a.dtype != b.dtype:
            raise TypeError(f"{op} of {a.dtype} and {b.dtype}")
        axes, dtype = self.ordered({*a.axes, *b.axes}), a.dtype or b.dtype
        x, y = (self.spread(self._typed(v, dtype), v.axes, axes) for v in (a, b))
        return x, y, axes, dtype

    def _typed(self, value: Field, dtype: DType | None) -> Array:
        if value.dtype or not dtype:
            return value.array
        if not dtype.is_float and np.any(value.array != np.trunc(value.array)):
            raise TypeError(f"{value.array} meets {dtype}")
        return rounded(value.array.astype(held_type(dtype, self.wide)), dtype)

    # -- reductions

    def _reduce(self, op: str, bound: Sequence[str], body: Term) -> Field:
        is_changed = self.factors is not None and op == "sum" and isinstance(body, Bin) and body.op == "mul"
        if id(body) in self.memo and not is_changed:
            return self._fold(op, bound, self.memo[id(body)])
        assert isinstance(body, Bin)
        a, b = (self._factor(self.memo[id(x)]) for x in (body.a, body.b))
        if all(f.dtype and np.isfinite(f.array).all() for f in (a, b)):
            return self._contract(bound, a, b)
        return self._multiplied(bound, a, b)

    def _factor(self, value: Field) -> Field:
        """What a factor of a sum of products becomes."""
        if self.factors is None or value.dtype != F32:
            return value
        return replace(value, array=self.factors(value.array))

    def _fold(self, op: str, bound: Sequence[str], value: Field) -> Field:
        kept = tuple(a for a in value.axes if a not in bound)
        over = tuple(value.axes.index(a) for a in bound if a in value.axes)
        repeats = self._repeats(bound, value.axes)
        array, start = value.array, _identity(op, value.array.dtype)
        if not repeats:
            shape = tuple(len(self.ranges[a]) for a in kept)
            return Field(np.full(shape, start, array.dtype), kept, value.dtype)
        match op:
            case "sum":
                array = np.sum(array, axis=over, dtype=array.dtype) * array.dtype.type(repeats)
            case "max":
                array = np.max(array, axis=over, initial=start)
            case "mul":
                array = np.prod(array, axis=over, dtype=array.dtype) ** array.dtype.type(repeats)
            case _:
                raise KeyError(op)
        return Field(np.asarray(array), kept, value.dtype)

    def _contract(self, bound: Sequence[str], a: Field, b: Field) -> Field:
        """Σ over `bound` of a product that is never held whole.

        The factors must be finite: einsum may take one out of the sum, and a BLAS leave out what it
        multiplies by 0.
        """
        axes = self.ordered({*a.axes, *b.axes})
        kept = tuple(x for x in axes if x not in bound)
        labels = [[axes.index(x) for x in names] for names in (a.axes, b.axes, kept)]
        total = np.asarray(np.einsum(a.array, labels[0], b.array, labels[1], labels[2], optimize=True))
        return Field(total * total.dtype.type(self._repeats(bound, axes)), kept, a.dtype)

    def _multiplied(self, bound: Sequence[str], a: Field, b: Field) -> Field:
        """The same, one product at a time; of a large one a part of its first axis is held at once."""
        axes = self.ordered({*a.axes, *b.axes})
        size = math.prod(len(self.ranges[x]) for x in axes)
        kept = [x for x in axes if x not in bound]
        if size <= SLAB or not kept:
            return self._fold("sum", bound, self._binary("mul", a, b))
        whole = len(self.ranges[kept[0]])
        step = max(1, whole * SLAB // size)
        parts = [
            self._fold("sum", bound, self._binary("mul", *(f.part(kept[0], start, step) for f in (a, b))))
            for start in range(0, whole, step)
        ]
        return replace(parts[0], array=np.concatenate([p.array for p in parts]))

    def _repeats(self, bound: Sequence[str], axes: Sequence[str]) -> int:
        """How often a reduction meets each value: its axes along which the body does not vary."""
        return math.prod(len(self.ranges[a]) for a in bound if a not in axes)

    # -- buffers

    def _read(self, name: str, axes: tuple[str, ...], dtype: DType, data: Field | None) -> Field:
        if name.startswith("$"):
            return Field(np.asarray(self.dims[name[1:]], np.int32), (), I32)
        access = self.accesses.get(name) or self._plain(name, axes, dtype)
        if access.buffer in self.pending:
            raise ValueError(f"{access} is read before {access.buffer} is stored")
        place, found = self.places(access, data)
        buffer = self.buffers[access.buffer].reshape(self.shape(access))
        if buffer.size == 0:
            raw = np.zeros(tuple(len(self.ranges[a]) for a in found), buffer.dtype)
        else:
            raw = np.asarray(buffer[place])
        if dtype.is_raw and raw.dtype == dtype.storage:
            return Field(loaded(raw, dtype, self.wide), found, dtype)
        return Field(raw.astype(held_type(dtype, self.wide), copy=False), found, dtype)

    def _plain(self, name: str, axes: tuple[str, ...], dtype: DType) -> Access:
        shape = tuple(len(self.ranges[a]) for a in axes)
        return Access(name, tuple(Index(((a, 1),)) for a in axes), shape, dtype)


def _needed(root: Term) -> list[Term]:
    """The terms below `root`, in order, but for products that only contractions read."""
    order = postorder([root])
    whole = {id(root)} | {id(c) for t in order if not is_contraction(t) for c in children(t)}
    folded = {id(t.body) for t in order if isinstance(t, Red) and is_contraction(t)} - whole
    return [t for t in order if id(t) not in folded]


def is_contraction(term: Term) -> bool:
    """Whether a term is a sum of products, whose product need not be held whole."""
    return isinstance(term, Red) and term.op == "sum" and isinstance(term.body, Bin) and term.body.op == "mul"


def _identity(op: str, kind: np.dtype[Any]) -> float | int:
    """What a reduction over nothing gives."""
    if op == "max":
        return -np.inf if kind.kind == "f" else int(np.iinfo(kind).min)
    return 0 if op == "sum" else 1
