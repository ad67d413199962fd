"""Forms a kernel: values to a grid of cells, each a tile program with loops and carried accumulators.

Every value is placed in the outermost scope in which all of its axes are open; accumulators over one
domain that do not wait for each other share a loop; a reference to a finished one forces a later loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from lumi.dtype import F32, I32, DType
from lumi.field.access import Access
from lumi.field.index import of_axis
from lumi.field.region import Region
from lumi.llir.kernel import (
    Carry,
    Dot,
    Load,
    Loop,
    Map,
    Operand,
    Position,
    Reduce,
    Statement,
    Step,
    Store,
    Symbol,
)
from lumi.search import dag as values
from lumi.search.dag import Dag, bits
from lumi.search.draft import InfeasibleError
from lumi.search.guard import guards
from lumi.search.layout import Layout
from lumi.search.order import MemoryOrder
from lumi.search.passes import Passes
from lumi.search.scope import Scope, Scopes
from lumi.search.space import Space

_MARK = "%"


def temporary(number: int) -> str:
    """The buffer of a stored class while plans are compared; a finished plan numbers them from 0."""
    return f"{_MARK}{number}"


def stored_by(step: Step, region: Region, roots: Sequence[int]) -> tuple[int, ...]:
    """The classes that a step stores while plans are compared; `roots` are those of the region's stores."""
    buffers = step.written
    outputs = {c for c, store in zip(roots, region.stores, strict=True) if store.access.buffer in buffers}
    return tuple(sorted(outputs | {int(b[1:]) for b in buffers if b.startswith(_MARK)}))


class Former:
    """One kernel in the making.

    `outs` are the classes it stores and their values, `resident` the axes held whole (a mask).
    """

    def __init__(
        self,
        space: Space,
        dag: Dag,
        orders: MemoryOrder,
        outs: Sequence[tuple[int, int]],
        layout: Layout,
        resident: int,
    ) -> None:
        self.space, self.dag, self.axes, self.outs = space, dag, space.region.axes, tuple(outs)
        self.orders, self.layout, self.resident = orders, layout, resident
        self.scopes = Scopes(Scope(0, tuple(v for _, v in outs)), layout.grid | resident)
        self.passes = Passes(dag)
        self.busy: set[int] = set()
        self.updating: set[int] = set()
        self.order = {a: k for k, a in enumerate(layout.accumulators)}

    def body(self) -> tuple[Statement, ...]:
        """The tile program.  Raises `InfeasibleError` when the values do not fit one kernel."""
        top, free = self.scopes.innermost, self.dag.free
        over = {n: (free[v] | self.space.spanned(n)) & self.layout.sequential for n, v in self.outs}
        for number, value in self.outs:
            if not over[number]:
                self._store(number, value)
        for number, value in self.outs:
            inner = over[number]
            if inner:
                self._sequential(top, number, value, inner)
        return tuple(top.statements)

    def _sequential(self, top: Scope, number: int, value: int, inner: int) -> None:
        """A store inside loops over axes that other values reduce."""
        scopes = [top, *(Scope(a, (value,)) for a in bits(inner))]
        self.scopes.open = scopes
        self._store(number, value)
        for outer, scope in zip(reversed(scopes[:-1]), reversed(scopes[1:]), strict=True):
            loop = Loop(self.space.names(scope.axes), None, (), (), tuple(scope.statements))
            outer.statements.append(loop)
        self.scopes.open = [top]

    def _store(self, number: int, value: int) -> None:
        operand = self.value(value, self.space.dtype(number))
        free = self.dag.free[value]
        temporary = self._temporary(number, self.orders.of(value))
        for access in self.space.outputs.get(number, (temporary,)):
            axes = self.space.names(free | self.space.region.axes.mask(access.axes()))
            self.scopes.innermost.statements.append(Store(access, operand, axes))

    def _temporary(self, number: int, axes: tuple[str, ...]) -> Access:
        """The buffer of a stored class, its dimensions written or read under the names `axes`."""
        shape = tuple(self.axes[a].extent for a in axes)
        return Access(temporary(number), tuple(of_axis(a) for a in axes), shape, self.space.storage(number))

    # -- values

    def value(self, number: int, dtype: DType) -> Operand:
        """The operand that holds a value, computed where its axes are open.

        `dtype` is the type it takes when it has none of its own.
        """
        made, free = self.dag.values[number], self.dag.free[number]
        if isinstance(made, values.Number):
            return made.value
        depth = self.scopes.depth(free)
        scope = self.scopes.open[depth]
        known = scope.values.get(number)
        if known is not None:
            return known
        if not self.scopes.covers(free):
            raise InfeasibleError("an axis is not open")
        outside, self.scopes.open = self.scopes.open, self.scopes.open[: depth + 1]
        operand = self._compute(made, number, self.dag.dtype[number] or dtype)
        self.scopes.open = outside
        scope.values[number] = operand
        return operand

    def _compute(self, made: values.Value, number: int, dtype: DType) -> Operand:
        axes = self.space.names(self.dag.free[number])
        match made:
            case values.Read(name, data):
                access, index = (
                    self.space.region.accesses[name],
                    () if data is None else (self.value(data, I32),),
                )
                return self.scopes.emit(Load(self.scopes.fresh(), access, index, axes, dtype))
            case values.Stored(stored, names):
                return self.scopes.emit(
                    Load(self.scopes.fresh(), self._source(stored, names), (), axes, dtype)
                )
            case values.Dimension(dim):
                return self.scopes.emit(Symbol(self.scopes.fresh(), dim))
            case values.Position(axis):
                return self.scopes.emit(Position(self.scopes.fresh(), self.space.names(axis)[0]))
            case values.Apply(op, args):
                return self.scopes.emit(self._map(op, args, axes, dtype))
            case values.Final(accumulator):
                return self._final(accumulator)
            case values.Running(accumulator):
                return self._update(accumulator, self._loop_of(accumulator))
            case values.Previous(accumulator):
                return self._loop_of(accumulator).previous[accumulator]
            case _:
                raise AssertionError(made)

    def _source(self, stored: int, names: tuple[str, ...]) -> Access:
        """Where a stored class is read from."""
        return self.space.readable.get(stored) or self._temporary(stored, names)

    def _map(self, op: str, args: tuple[int, ...], axes: tuple[str, ...], dtype: DType) -> Map:
        known = [d for a in (args[1:] if op == "sel" else args) if (d := self.dag.dtype[a]) is not None]
        operands = tuple([self.value(a, known[0] if known else dtype) for a in args])
        return Map(self.scopes.fresh(), op, operands, axes, dtype)

    # -- accumulators

    def _final(self, accumulator: int) -> Operand:
        made = self.dag.table[accumulator]
        if not self.dag.domains[made.domain].axes & ~self.resident:
            return self._partial(accumulator)
        scope = self.scopes.innermost
        if accumulator not in scope.finals:
            self._loop(accumulator)
        if accumulator not in scope.finals:
            raise InfeasibleError("a loop does not yield its accumulator")
        return scope.finals[accumulator]

    def _partial(self, accumulator: int) -> str:
        """The reduction of one tile."""
        made = self.dag.table[accumulator]
        over = self.dag.domains[made.domain].axes
        step, free = self.dag.values[made.step], self.dag.free
        axes, names = self.space.names(free[made.step] & ~over), self.space.names(over)
        dtype = self._dtype(accumulator)
        match step:
            case values.Apply("mul", (a, b)) if (
                made.op == "sum" and a != b and free[a] & over == over == free[b] & over
            ):
                left, right = self.value(a, dtype), self.value(b, dtype)
                return self.scopes.emit(Dot(self.scopes.fresh(), names, left, right, axes, dtype))
            case _:
                operand = self.value(made.step, dtype)
                return self.scopes.emit(Reduce(self.scopes.fresh(), made.op, names, operand, axes, dtype))

    def _dtype(self, accumulator: int) -> DType:
        parts = self.dag.table[accumulator].parts
        return next((d for p in parts if (d := self.dag.dtype[p]) is not None), F32)

    def _loop(self, accumulator: int) -> None:
        """One tile loop that advances every accumulator of the scope that can share it."""
        group = self._together(accumulator)
        made = self.dag.table[accumulator]
        domain = self.dag.domains[made.domain]
        if any(s.axes & domain.axes for s in self.scopes.open):
            raise InfeasibleError("an axis is already open")
        if not self.scopes.covers(domain.chunk):
            raise InfeasibleError("a chunk axis is not open")
        self.busy.update(group)
        roots = tuple(p for a in group for p in self.dag.table[a].parts)
        scope, outer = Scope(domain.axes, roots, made.domain), self.scopes.innermost
        for member in group:
            scope.previous[member] = self.scopes.fresh()
        self.scopes.open = [*self.scopes.open, scope]
        for member in group:
            self._update(member, scope)
        kept = guards(
            self.dag, self.space.names, [g for g in domain.guards if self.scopes.covers(self.dag.free[g])]
        )
        self.scopes.open = self.scopes.open[:-1]
        carries = tuple(self._carry(member, scope) for member in group)
        outer.finals.update(zip(group, (c.final for c in carries), strict=True))
        chunk = self.space.names(domain.chunk)[0] if domain.chunk else None
        outer.statements.append(
            Loop(self.space.names(domain.axes), chunk, kept, carries, tuple(scope.statements))
        )
        self.busy.difference_update(group)

    def _together(self, accumulator: int) -> list[int]:
        """The accumulators that one loop can advance: `accumulator`, its peers, and what they see."""
        if accumulator in self.busy:
            raise InfeasibleError("a loop needs its own result")
        dag, scope, depth = self.dag, self.scopes.innermost, len(self.scopes.open) - 1
        domain, rank = dag.table[accumulator].domain, self.passes.rank(accumulator)
        reached = frozenset().union(*(dag.accumulators[r] for r in scope.roots))
        group = [
            a
            for a in sorted(reached, key=self.order.__getitem__)
            if dag.table[a].domain == domain
            and a not in self.busy
            and a not in scope.finals
            and self.passes.rank(a) == rank
            and self.scopes.depth(dag.around[a]) == depth
            and self.scopes.covers(dag.around[a])
        ]
        if accumulator not in group:
            group.append(accumulator)
        for member in group:  # grows while it is read
            seen = self.passes.seen(dag.table[member].parts, domain)
            group.extend(a for a in seen if a not in group)
        if not all(self.scopes.covers(dag.around[a]) for a in group):
            raise InfeasibleError("an axis is not open")
        return group

    def _loop_of(self, accumulator: int) -> Scope:
        return self.scopes.loop_of(accumulator, self.dag.table[accumulator].domain)

    def _carry(self, accumulator: int, scope: Scope) -> Carry:
        made = self.dag.table[accumulator]
        axes = self.space.names(self.dag.around[accumulator])
        before, after = scope.previous[accumulator], scope.running[accumulator]
        return Carry(made.op, before, after, self.scopes.fresh(), axes, self._dtype(accumulator))

    def _update(self, accumulator: int, scope: Scope) -> str:
        """The accumulator after this step: rescaled, corrected, then combined with the tile's part.

        The rescaling stands first, so that a contraction can accumulate in place.
        """
        if accumulator in scope.running:
            return scope.running[accumulator]
        if accumulator in self.updating:
            raise InfeasibleError("a step needs its own result")
        self.updating.add(accumulator)
        outside = self.scopes.open
        self.scopes.open = outside[: outside.index(scope) + 1]
        made, dtype = self.dag.table[accumulator], self._dtype(accumulator)
        axes, current = self.space.names(self.dag.around[accumulator]), scope.previous[accumulator]
        for part, op in ((made.rho, "add" if made.op == "max" else "mul"), (made.tau, "add")):
            if part is None:
                continue
            if made.op == "mul" or (made.op == "max" and part == made.tau):
                raise InfeasibleError(f"a running {made.op} is not corrected")
            operand = self.value(part, dtype)
            current = self.scopes.emit(Map(self.scopes.fresh(), op, (current, operand), axes, dtype))
        combine = "add" if made.op == "sum" else made.op
        part_of_tile = self._partial(accumulator)
        step = self.scopes.emit(Map(self.scopes.fresh(), combine, (current, part_of_tile), axes, dtype))
        self.scopes.open = outside
        self.updating.discard(accumulator)
        scope.running[accumulator] = step
        return step
