"""Forms a kernel: values to a grid of cells, each a tile program with loops and carried accumulators.

Every value is placed in the outermost scope in which all of its axes are open; accumulators over one
domain that do not wait for each other share a loop; a reference to a finished one forces a later loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lumi.dtype import F32, I32, DType
from lumi.field.access import Access
from lumi.field.axis import LIMIT
from lumi.field.index import of_axis
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
    Store,
    Symbol,
)
from lumi.search import dag as values
from lumi.search.dag import AXES, Dag, bits
from lumi.search.draft import InfeasibleError
from lumi.search.guard import guards
from lumi.search.layout import Layout
from lumi.search.space import Space

Definition: TypeAlias = "Load | Position | Symbol | Map | Reduce | Dot"
"""A statement that names a value."""


def temporary(number: int) -> str:
    """The buffer of a stored class while plans are compared; a finished plan numbers them from 0."""
    return f"%{number}"


@dataclass(slots=True)
class Scope:
    """A block being written: the kernel's body, or that of a loop over `axes` (a mask).

    `domain` is the accumulators' domain when the loop carries any.  `roots` are the values it is for.
    The rest remembers what already stands in it.
    """

    axes: int
    roots: tuple[int, ...]
    domain: int | None = None
    statements: list[Statement] = field(default_factory=list)
    values: dict[int, Operand] = field(default_factory=dict)
    finals: dict[int, str] = field(default_factory=dict)
    previous: dict[int, str] = field(default_factory=dict)
    running: dict[int, str] = field(default_factory=dict)


class Former:
    """One kernel in the making.

    `outs` are the classes it stores and their values, `resident` the axes held whole (a mask).
    """

    def __init__(
        self, space: Space, dag: Dag, outs: Sequence[tuple[int, int]], layout: Layout, resident: int
    ) -> None:
        self.space, self.dag, self.axes, self.outs = space, dag, space.region.axes, tuple(outs)
        self.layout, self.resident = layout, resident
        self.scopes: list[Scope] = [Scope(0, tuple(v for _, v in outs))]
        self.variables = 0
        self.busy: set[int] = set()
        self.updating: set[int] = set()
        self.order = {a: k for k, a in enumerate(layout.accumulators)}
        self.ranks: dict[int, int] = {}

    def body(self) -> tuple[Statement, ...]:
        """The tile program.  Raises `InfeasibleError` when the values do not fit one kernel."""
        top, free = self.scopes[0], self.dag.free
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
        self.scopes = scopes
        self._store(number, value)
        for outer, scope in zip(reversed(scopes[:-1]), reversed(scopes[1:]), strict=True):
            loop = Loop(self.space.names(scope.axes), None, (), (), tuple(scope.statements))
            outer.statements.append(loop)
        self.scopes = [top]

    def _store(self, number: int, value: int) -> None:
        operand = self.value(value, self.space.dtype(number))
        free = self.dag.free[value]
        temporary = self._temporary(number, self.space.names(free))
        for access in self.space.outputs.get(number, (temporary,)):
            axes = self.space.names(free | self.space.region.axes.mask(access.axes()))
            self.scopes[-1].statements.append(Store(access, operand, axes))

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
        depth = self._depth(free)
        scope = self.scopes[depth]
        known = scope.values.get(number)
        if known is not None:
            return known
        if not self._is_open(free):
            raise InfeasibleError("an axis is not open")
        outside, self.scopes = self.scopes, self.scopes[: depth + 1]
        operand = self._compute(made, number, self.dag.dtype[number] or dtype)
        self.scopes = outside
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
                return self._emit(Load(self._fresh(), access, index, axes, dtype))
            case values.Stored(stored, names):
                return self._emit(Load(self._fresh(), self._source(stored, names), (), axes, dtype))
            case values.Dimension(dim):
                return self._emit(Symbol(self._fresh(), dim))
            case values.Position(axis):
                return self._emit(Position(self._fresh(), self.space.names(axis)[0]))
            case values.Apply(op, args):
                return self._emit(self._map(op, args, axes, dtype))
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
        return Map(self._fresh(), op, operands, axes, dtype)

    def _fresh(self) -> str:
        self.variables += 1
        return f"v{self.variables}"

    def _emit(self, statement: Definition) -> str:
        self.scopes[-1].statements.append(statement)
        return statement.var

    def _depth(self, free: int) -> int:
        """The innermost scope whose loop the value depends on."""
        for depth in range(len(self.scopes) - 1, 0, -1):
            axes = self.scopes[depth].axes
            if free & (axes | axes << LIMIT):
                return depth
        return 0

    def _is_open(self, free: int) -> bool:
        """Whether every axis is a grid axis, held whole, or the axis of an enclosing loop."""
        opened = self.layout.grid | self.resident
        for scope in self.scopes:
            opened |= scope.axes
        return not free & AXES & ~opened

    # -- accumulators

    def _final(self, accumulator: int) -> Operand:
        made = self.dag.table[accumulator]
        if not self.dag.domains[made.domain].axes & ~self.resident:
            return self._partial(accumulator)
        scope = self.scopes[-1]
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
                return self._emit(Dot(self._fresh(), names, left, right, axes, dtype))
            case _:
                operand = self.value(made.step, dtype)
                return self._emit(Reduce(self._fresh(), made.op, names, operand, axes, dtype))

    def _dtype(self, accumulator: int) -> DType:
        parts = self.dag.table[accumulator].parts
        return next((d for p in parts if (d := self.dag.dtype[p]) is not None), F32)

    def _loop(self, accumulator: int) -> None:
        """One tile loop that advances every accumulator of the scope that can share it."""
        group = self._together(accumulator)
        made = self.dag.table[accumulator]
        domain = self.dag.domains[made.domain]
        if any(s.axes & domain.axes for s in self.scopes):
            raise InfeasibleError("an axis is already open")
        if not self._is_open(domain.chunk):
            raise InfeasibleError("a chunk axis is not open")
        self.busy.update(group)
        roots = tuple(p for a in group for p in self.dag.table[a].parts)
        scope, outer = Scope(domain.axes, roots, made.domain), self.scopes[-1]
        for member in group:
            scope.previous[member] = self._fresh()
        self.scopes = [*self.scopes, scope]
        for member in group:
            self._update(member, scope)
        kept = guards(
            self.dag, self.space.names, [g for g in domain.guards if self._is_open(self.dag.free[g])]
        )
        self.scopes = self.scopes[:-1]
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
        dag, scope, depth = self.dag, self.scopes[-1], len(self.scopes) - 1
        domain, rank = dag.table[accumulator].domain, self._rank(accumulator)
        reached = frozenset().union(*(dag.accumulators[r] for r in scope.roots))
        group = [
            a
            for a in sorted(reached, key=self.order.__getitem__)
            if dag.table[a].domain == domain
            and a not in self.busy
            and a not in scope.finals
            and self._rank(a) == rank
            and self._depth(dag.around[a]) == depth
            and self._is_open(dag.around[a])
        ]
        if accumulator not in group:
            group.append(accumulator)
        for member in group:  # grows while it is read
            seen = self._seen(dag.table[member].parts, domain)
            group.extend(a for a in seen if a not in group)
        if not all(self._is_open(dag.around[a]) for a in group):
            raise InfeasibleError("an axis is not open")
        return group

    def _seen(self, roots: Sequence[int], domain: int) -> list[int]:
        """The accumulators over `domain` whose running values the roots need."""
        found = dict.fromkeys(
            made.accumulator
            for number in self.dag.walk(roots)
            if isinstance(made := self.dag.values[number], (values.Running, values.Previous))
            and self.dag.table[made.accumulator].domain == domain
        )
        return list(found)

    def _rank(self, accumulator: int) -> int:
        """Passes over the same domain that must be complete before this accumulator's loop."""
        known = self.ranks.get(accumulator)
        if known is None:
            base = self._base(accumulator)
            known, seen, stack = 0, set[int](), list(self.dag.table[accumulator].parts)
            while stack:
                number = stack.pop()
                if number in seen:
                    continue
                seen.add(number)
                made = self.dag.values[number]
                if isinstance(made, (values.Final, values.Running, values.Previous)) and (
                    self._base(made.accumulator) == base
                ):
                    finished = isinstance(made, values.Final)
                    known = max(known, self._rank(made.accumulator) + finished)
                    if finished:
                        continue
                stack.extend(self.dag.children(number))
            self.ranks[accumulator] = known
        return known

    def _base(self, accumulator: int) -> tuple[int, int]:
        return self.dag.domains[self.dag.table[accumulator].domain].base

    def _carry(self, accumulator: int, scope: Scope) -> Carry:
        made = self.dag.table[accumulator]
        axes = self.space.names(self.dag.around[accumulator])
        before, after = scope.previous[accumulator], scope.running[accumulator]
        return Carry(made.op, before, after, self._fresh(), axes, self._dtype(accumulator))

    def _loop_of(self, accumulator: int) -> Scope:
        """The open loop that advances an accumulator."""
        domain = self.dag.table[accumulator].domain
        for scope in reversed(self.scopes):
            if scope.domain == domain:
                if accumulator in scope.previous:
                    return scope
                break
        raise InfeasibleError("a running value is used outside its loop")

    def _update(self, accumulator: int, scope: Scope) -> str:
        """The accumulator after this step: rescaled, corrected, then combined with the tile's part.

        The rescaling stands first, so that a contraction can accumulate in place.
        """
        if accumulator in scope.running:
            return scope.running[accumulator]
        if accumulator in self.updating:
            raise InfeasibleError("a step needs its own result")
        self.updating.add(accumulator)
        outside = self.scopes
        self.scopes = outside[: outside.index(scope) + 1]
        made, dtype = self.dag.table[accumulator], self._dtype(accumulator)
        axes, current = self.space.names(self.dag.around[accumulator]), scope.previous[accumulator]
        for part, op in ((made.rho, "add" if made.op == "max" else "mul"), (made.tau, "add")):
            if part is None:
                continue
            if made.op == "mul" or (made.op == "max" and part == made.tau):
                raise InfeasibleError(f"a running {made.op} is not corrected")
            operand = self.value(part, dtype)
            current = self._emit(Map(self._fresh(), op, (current, operand), axes, dtype))
        combine = "add" if made.op == "sum" else made.op
        part_of_tile = self._partial(accumulator)
        step = self._emit(Map(self._fresh(), combine, (current, part_of_tile), axes, dtype))
        self.scopes = outside
        self.updating.discard(accumulator)
        scope.running[accumulator] = step
        return step
