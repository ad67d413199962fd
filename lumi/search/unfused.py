"""The unfused plan of a region: its terms as they are written, every reduction a kernel of its own.

It is what candidates are compared with on a device, so it shares nothing with the search: no rewrite, no
choice, no loop that carries more than one reduction.  What is computed point by point is computed where it
is read, unless a sum of products reads it, which would compute it many times over.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lumi import dim
from lumi.dtype import BOOL, F32, I32, DType
from lumi.field.access import Access
from lumi.field.index import of_axis
from lumi.field.operators import COMPARISONS
from lumi.field.region import Region, Store
from lumi.field.term import Bin, Const, Gat, In, Pos, Red, Sel, Term, Un
from lumi.field.traverse import free_axes, postorder
from lumi.field.widen import dtypes
from lumi.llir import kernel as llir
from lumi.llir.kernel import Carry, Kernel, Load, Loop, Map, Operand, Reduce, Statement, Temporary
from lumi.search.draft import InfeasibleError

TILE = 64
"""Positions of a tile of a loop, and of a grid's last axis."""

MOST = 1 << 31
"""Elements that a value has less than to be kept in memory: kernels number their cells by 32 bits."""

Axes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unfused:
    """Kernels in the order in which they run, and the temporaries between them."""

    kernels: tuple[Kernel, ...]
    temporaries: Mapping[str, Temporary]


def unfused(region: Region, dims: Mapping[str, int], room: int, untyped: DType = F32) -> Unfused:
    """The unfused plan of a region, whose temporaries take `room` bytes at these dims at most.

    What finds no room, the largest first, is computed again wherever it is read.  `untyped` is the type of
    values that are made of numbers alone.  Raises `InfeasibleError` where that takes an axis twice.
    """
    return _Plan(region, dims, room, untyped).made()


@dataclass(slots=True)
class _Plan:
    region: Region
    dims: Mapping[str, int]
    room: int
    untyped: DType
    types: dict[int, DType | None] = field(init=False)
    free: dict[int, frozenset[str]] = field(init=False)
    held: dict[int, Access] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.types = dtypes(self.region)
        self.free = free_axes(s.term for s in self.region.stores)

    def made(self) -> Unfused:
        """Decide what is held, then write a kernel for each of that and for each store."""
        order = postorder(s.term for s in self.region.stores)
        roots = {id(s.term) for s in self.region.stores}
        sums = [t for t in order if isinstance(t, Red)]
        factors = [f for t in sums for f in _factors(t) if self._is_computed(f)]
        for term in (*sorted(sums, key=self._size), *sorted(factors, key=self._size)):
            if id(term) not in roots:
                self._hold(term)
        kernels, done = list[Kernel](), set[int]()
        for store in self.region.stores:
            for term in postorder([store.term]):
                if id(term) in self.held and id(term) not in done:
                    done.add(id(term))
                    kernels.append(_Writer(self).kernel(Store(term, self.held[id(term)])))
            kernels.append(_Writer(self).kernel(store))
        temporaries = {a.buffer: Temporary(a.shape, a.dtype) for a in self.held.values()}
        return Unfused(tuple(kernels), temporaries)

    def _hold(self, term: Term) -> None:
        """Keep a value in memory, if there is room for it."""
        size = self._size(term)
        if id(term) not in self.held and size <= self.room and size < MOST * self.dtype(term).size:
            self.room -= size
            name, axes, shape = f"T{len(self.held)}", self.ordered(self.free[id(term)]), self._shape(term)
            self.held[id(term)] = Access(name, tuple(of_axis(a) for a in axes), shape, self.dtype(term))

    def _shape(self, term: Term) -> tuple[dim.Extent, ...]:
        return tuple(self.region.axes[a].extent for a in self.ordered(self.free[id(term)]))

    def _size(self, term: Term) -> int:
        """Bytes of a value."""
        return math.prod(dim.value(e, self.dims) for e in self._shape(term)) * self.dtype(term).size

    def _is_computed(self, term: Term) -> bool:
        """Whether a value is neither read, nor read and cast, nor the same at all points of data."""
        while isinstance(term, Un) and term.op.startswith("cast."):
            term = term.a
        return not isinstance(term, (In, Gat, Const, Pos)) and bool(self.free[id(term)])

    def ordered(self, names: Iterable[str]) -> Axes:
        """Axes in memory order."""
        return self.region.axes.names(self.region.axes.mask(names))

    def dtype(self, term: Term) -> DType:
        """The type of a term's value."""
        return self.types[id(term)] or self.untyped


def _factors(term: Red) -> tuple[Term, ...]:
    """The factors of a sum of products."""
    body = term.body
    return (body.a, body.b) if term.op == "sum" and isinstance(body, Bin) and body.op == "mul" else ()


@dataclass(slots=True)
class _Writer:
    """One kernel: values stand in the outermost scope in which all of their axes are open."""

    plan: _Plan
    open: list[tuple[frozenset[str], list[Statement], dict[int, Operand]]] = field(default_factory=list)
    names: int = 0

    def kernel(self, store: Store) -> Kernel:
        """The kernel that leaves a value in memory."""
        plan = self.plan
        grid = plan.ordered(plan.free[id(store.term)] | store.access.axes())
        body = list[Statement]()
        self.open = [(frozenset(grid), body, {})]
        value = self._value(store.term, plan.untyped, root=True)
        body.append(llir.Store(store.access, value, grid))
        loops = [a for s in llir.walk(tuple(body)) if isinstance(s, Loop) for a in s.axes]
        axes = {a: plan.region.axes[a].extent for a in plan.ordered({*grid, *loops})}
        tiles = {a: TILE if a in loops or a == grid[-1] else 1 for a in axes}
        return Kernel(axes, grid, (), tiles, tuple(body))

    # -- values

    def _value(self, term: Term, dtype: DType, root: bool = False) -> Operand:
        """The operand that holds a value; `dtype` is the type of one that has none of its own."""
        if isinstance(term, Const):
            return term.value
        depth = self._depth(self.plan.free[id(term)])
        known = self.open[depth][2]
        if id(term) not in known:
            outside, self.open = self.open, self.open[: depth + 1]
            known[id(term)] = self._made(term, self.plan.types[id(term)] or dtype, root)
            self.open = outside
        return known[id(term)]

    def _depth(self, free: frozenset[str]) -> int:
        covered = frozenset[str]()
        for depth, (axes, _, _) in enumerate(self.open):
            covered |= axes
            if free <= covered:
                return depth
        raise AssertionError("a term varies over an axis that nothing runs over")

    def _made(self, term: Term, dtype: DType, root: bool) -> Operand:
        axes = self.plan.ordered(self.plan.free[id(term)])
        access = None if root else self.plan.held.get(id(term))
        if access is not None:
            return self._emit(Load(self._fresh(), access, (), axes, dtype))
        match term:
            case In(name) if name.startswith("$"):
                return self._emit(llir.Symbol(self._fresh(), name[1:]))
            case In(name):
                return self._emit(Load(self._fresh(), self.plan.region.accesses[name], (), axes, dtype))
            case Gat(name, _, _, index):
                at = self._value(index, I32)
                return self._emit(Load(self._fresh(), self.plan.region.accesses[name], (at,), axes, dtype))
            case Pos(axis):
                return self._emit(llir.Position(self._fresh(), axis))
            case Red(op, over, body):
                return self._reduction(op, over, body, axes, dtype)
            case Un(op, a):
                return self._map(op, (a,), axes, dtype)
            case Bin(op, a, b):
                return self._map(op, (a, b), axes, BOOL if op in COMPARISONS else dtype)
            case Sel(c, a, b):
                return self._map("sel", (c, a, b), axes, dtype)
            case _:
                raise AssertionError(term)

    def _map(self, op: str, args: Sequence[Term], axes: Axes, dtype: DType) -> Operand:
        branches = args[1:] if op == "sel" else args
        known = [d for a in branches if (d := self.plan.types[id(a)]) is not None]
        inner = known[0] if known else self.plan.untyped if op in COMPARISONS else dtype
        operands = tuple([self._value(a, inner) for a in args])
        return self._emit(Map(self._fresh(), op, operands, axes, dtype))

    def _reduction(self, op: str, over: Axes, body: Term, axes: Axes, dtype: DType) -> Operand:
        """A loop over the axes that are reduced."""
        before, after, final = self._fresh(), self._fresh(), self._fresh()
        statements, running = list[Statement](), frozenset().union(*(axes for axes, _, _ in self.open))
        if running & set(over):
            raise InfeasibleError("an axis is already open")
        self.open.append((frozenset(over), statements, {}))
        value, part = self._value(body, dtype), self._fresh()
        statements.append(Reduce(part, op, self.plan.ordered(over), value, axes, dtype))
        statements.append(Map(after, "add" if op == "sum" else op, (before, part), axes, dtype))
        self.open.pop()
        carry = Carry(op, before, after, final, axes, dtype)
        self.open[-1][1].append(Loop(self.plan.ordered(over), None, (), (carry,), tuple(statements)))
        return final

    def _emit(self, statement: Load | Map | llir.Symbol | llir.Position) -> str:
        self.open[-1][1].append(statement)
        return statement.var

    def _fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"
