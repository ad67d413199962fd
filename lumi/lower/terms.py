"""The terms of a part, once it is decided what is stored and under which roles values are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from lumi import dim
from lumi.dtype import I32, I64, DType
from lumi.field.access import Access
from lumi.field.index import Data, Index, Look, of_extent
from lumi.field.region import Store
from lumi.field.term import Const as Number
from lumi.field.term import Term
from lumi.hlir.graph import Node, starts
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
    Scan,
    Scatter,
    Select,
    State,
    Symbol,
    Unary,
    Update,
    View,
)
from lumi.lower.bits import Bits
from lumi.lower.legalise import Legaliser
from lumi.lower.maker import Maker
from lumi.lower.part import Rooted
from lumi.lower.positions import Limit, Positions
from lumi.lower.reading import Read
from lumi.lower.requests import Requests, Stored
from lumi.lower.space import Role

Element: TypeAlias = "tuple[Node, Role]"
"""An element of a node."""


class Terms:
    """Builds the stores of a part and the accesses they read through.

    `origins` are the nodes whose buffers are B0, B1 …, each with whether it is the copy of the node.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._space = requests.space
        self._make = Maker()
        self._legal = Legaliser(self._make)
        self._bits = Bits(self._make)
        self._positions = Positions(self._make, self._space, self._datum)
        self._terms: dict[tuple[int, Role], Term] = {}
        self._buffers: dict[str, int] = {}
        self._names: dict[Access, str] = {}
        self.origins: list[tuple[Node, bool]] = []
        self.accesses: dict[str, Access] = {}
        self.stores = tuple(self._store(s) for s in requests.stored)
        self.produced = {s.access.buffer: k for k, s in enumerate(self.stores)}

    # -- stores

    def _store(self, stored: Stored) -> Store:
        node, role = stored.node, stored.role
        match stored.kind, node.op:
            case Rooted.WRITE, Update():
                term = self._term((node.inputs[1], role))
                role = self._written(node, node.op, role)
            case Rooted.COPY, _:
                term = self._term((node, role))
            case _:
                term = self._root(node, role)
        buffer = self._buffer(node, stored.kind is Rooted.COPY)
        return Store(term, Access(buffer, role, node.shape, node.dtype))

    def _written(self, node: Node, op: Update, role: Role) -> Role:
        """The element of a state that an element of an update's new part goes to."""
        start = of_extent(op.start)
        if len(node.inputs) > 2:
            found = self._requests.reader.start(node, role)
            look = Look(self._buffer(found.node), found.role, found.node.shape, starts(node))
            start = Index(((look, 1),))
        place, size = role[op.axis] + start, node.shape[op.axis]
        if op.wrap and isinstance(size, int):
            place = self._space.divide(place, size)[1]
        return (*role[: op.axis], place, *role[op.axis + 1 :])

    def _buffer(self, node: Node, copy: bool = False) -> str:
        name = self._requests.part.buffer(node, copy)
        number = self._buffers.setdefault(name, len(self.origins))
        if number == len(self.origins):
            self.origins.append((node, copy))
        return f"B{number}"

    # -- elements

    def _root(self, node: Node, role: Role) -> Term:
        """The value of a stored node, computed."""
        for element in self._needs(node, role):
            self._term(element)
        return self._compute(node, role)

    def _term(self, root: Element) -> Term:
        """The term of an element as its readers see it, after the terms it is made of."""
        todo = [(root, False)]
        while todo:
            element, ready = todo.pop()
            key = element[0].id, element[1]
            if key in self._terms:
                continue
            if ready:
                self._terms[key] = self._element(*element)
                continue
            todo.append((element, True))
            needs = self._data(element[1]) if self._in_memory(element[0]) else self._needs(*element)
            todo += [(below, False) for below in reversed(list(needs))]
        return self._terms[root[0].id, root[1]]

    def _in_memory(self, node: Node) -> bool:
        return node.id in self._requests.part.memory or node.id in self._requests.kept

    def _element(self, node: Node, role: Role) -> Term:
        if self._in_memory(node):
            return self._load(node, node, role)
        return self._compute(node, role)

    def _needs(self, node: Node, role: Role) -> Iterator[Element]:
        """The elements that a computed element is made of."""
        yield from self._data(role)
        if 0 in node.shape or node.is_leaf:
            return
        reading = self._requests.readings[node.id, role]
        for read in reading.reads:
            yield from self._data(read.role)
        difference = self._difference(node, role)
        if difference:
            yield from difference
            return
        reads = reading.reads[:1] if isinstance(node.op, Gather) else reading.reads
        yield from ((r.node, r.role) for r in reads)

    def _data(self, role: Role) -> Iterator[Element]:
        for at in role:
            for number in sorted(at.data()):
                datum = self._space.data[number]
                yield datum.node, datum.role

    def _reads(self, node: Node, role: Role) -> tuple[Read, ...]:
        return self._requests.readings[node.id, role].reads

    def _of(self, read: Read) -> Term:
        return self._terms[read.node.id, read.role]

    # -- loads

    def _load(self, source: Node, node: Node, role: Role) -> Term:
        """The element `role` of the buffer of `source`, which is read under the type of `node`."""
        data = sorted({number for at in role for number in at.data()})
        assert len(data) <= 1, f"{node} is read at two indices that depend on data"
        index = tuple(_first_data(at) for at in role)
        clamp = not self._requests.inside(node, role) and not self._space.inside(role, node.shape)
        access = Access(self._buffer(source), index, node.shape, source.dtype, clamp)
        at = self._datum(data[0]) if data else None
        name = self._names.setdefault(access, f"r{len(self._names)}")
        self.accesses[name] = access
        axes = tuple(a.name for a in self._space.axes if a.name in access.axes())
        return self._make.read(name, axes, source.dtype, at)

    def _datum(self, number: int) -> Term:
        """The i32 value of a data index, clamped if it has to be."""
        datum, make = self._space.data[number], self._make
        kind = datum.node.dtype
        at = self._legal.widen(make.typed(self._terms[datum.node.id, datum.role], kind), kind)
        if datum.size is None:
            return at
        last = make.extent(datum.size - 1)
        if kind is I64 and not isinstance(last, Number):
            last = make.cast(last, I64)
        at = make.select(make.binary("lt", at, make.number(0)), make.number(0), at)
        at = make.select(make.binary("lt", last, at), last, at)
        return make.cast(at, I32) if kind is I64 else at

    # -- computed elements

    def _compute(self, node: Node, role: Role) -> Term:
        """An element of a node from the elements that it is made of."""
        if 0 in node.shape:
            return self._make.cast(self._make.number(0), node.dtype)
        match node.op:
            case Input() | Param() | State():
                return self._load(node, node, role)
            case Const(value):
                return self._make.const(value, node.dtype)
            case Symbol(extent):
                return self._make.extent(extent)
            case Iota():
                return self._positions.of(role[0])
            case View():
                return self._view(node, node.op, role)
            case Reduce(kind, axes):
                return self._reduce(node, kind, axes, role)
            case Scan(kind, axis):
                return self._scan(node, kind, axis, role)
            case Bitcast():
                return self._bitcast(node, role)
            case Scatter(axis):
                return self._scatter(node, axis, role)
            case Update(axis):
                return self._update(node, axis, role)
            case Unary() | Binary() | Select() | Cast() | Gather():
                return self._elementwise(node, role)

    def _elementwise(self, node: Node, role: Role) -> Term:
        difference = self._difference(node, role)
        if difference:
            a, b = (self._terms[n.id, r] for n, r in difference)
            return self._legal.minus(a, b, node.dtype)
        reads = self._reads(node, role)
        args = [self._of(r) for r in (reads[:1] if isinstance(node.op, Gather) else reads)]
        match node.op:
            case Unary(kind):
                return self._legal.unary(kind, args[0], node.dtype)
            case Binary(kind):
                return self._legal.binary(kind, args[0], args[1], node.inputs[0].dtype)
            case Select():
                return self._legal.select(args[0], args[1], args[2], node.dtype)
            case Cast(dtype):
                return self._legal.cast(args[0], node.inputs[0].dtype, dtype)
            case _:
                return args[0]

    def _difference(self, node: Node, role: Role) -> tuple[Element, Element] | None:
        """`a` and `b` of a node that adds `a` and `-1 · b`.

        It becomes a subtraction, seen through views, which the rules need to see that a softmax's
        exponent is bounded.  Both are the same number, bit for bit.
        """
        if node.op != Binary(BinaryKind.ADD):
            return None
        reads = self._reads(node, role)
        for a, b in (reads, reads[::-1]):
            negated = self._negated((b.node, b.role))
            if negated:
                return (a.node, a.role), negated
        return None

    def _negated(self, element: Element) -> Element | None:
        """What an element is the negative of, if it is computed as -1 · x."""
        node, role = element
        while not self._in_memory(node) and 0 not in node.shape:
            if isinstance(node.op, View):
                filled = isinstance(node.op.map, Affine) and node.op.map.fill is not None
                reads = self._reads(node, role)
                if filled or not reads:
                    return None
                node, role = reads[0].node, reads[0].role
            elif node.op == Binary(BinaryKind.MUL):
                x, y = self._reads(node, role)
                if _is_minus_one(y.node):
                    return x.node, x.role
                return (y.node, y.role) if _is_minus_one(x.node) else None
            else:
                return None
        return None

    def _view(self, node: Node, op: View, role: Role) -> Term:
        reading = self._requests.readings[node.id, role]
        if reading.memory:
            return self._load(reading.memory, node, role)
        (read,) = reading.reads
        if not isinstance(op.map, Affine) or op.map.fill is None:
            return self._of(read)
        limits = list(map(Limit, read.role, read.node.shape))
        fill = self._make.const(op.map.fill, node.dtype)
        return self._within(limits, self._of(read), fill, node.dtype)

    def _within(self, limits: Sequence[Limit], value: Term, other: Term, dtype: DType) -> Term:
        """`value` where every index is within its limits, else `other`."""
        conditions = self._positions.conditions(limits)
        if conditions is None:
            return other
        return self._legal.select(self._make.both(conditions), value, other, dtype) if conditions else value

    def _reduce(self, node: Node, kind: Monoid, axes: tuple[int, ...], role: Role) -> Term:
        reading, source = self._requests.readings[node.id, role], node.inputs[0]
        empty = any(dim.bounds(source.shape[k], self._space.dims)[0] < 1 for k in axes)
        return self._legal.reduce(kind, reading.bound, self._of(reading.reads[0]), node.dtype, empty)

    def _scan(self, node: Node, kind: Monoid, axis: int, role: Role) -> Term:
        reading = self._requests.readings[node.id, role]
        (read,) = reading.reads
        if not reading.bound:
            return self._of(read)
        before = self._make.binary("le", self._positions.of(read.role[axis]), self._positions.of(role[axis]))
        return self._legal.scan(kind, reading.bound, before, self._of(read), node.dtype)

    def _scatter(self, node: Node, axis: int, role: Role) -> Term:
        """x[i] + Σⱼ (uⱼ where indexⱼ = i)."""
        reading = self._requests.readings[node.id, role]
        base, index, update = (self._of(r) for r in reading.reads)
        kind = node.inputs[1].dtype
        here = self._positions.of(role[axis])
        if kind is I64 and not isinstance(here, Number):
            here = self._make.cast(here, I64)
        hit = self._legal.equal(index, here, kind)
        return self._legal.scatter(base, reading.bound, hit, update, node.dtype)

    def _bitcast(self, node: Node, role: Role) -> Term:
        source, args = node.inputs[0].dtype, [self._of(r) for r in self._reads(node, role)]
        if source.size == node.dtype.size:
            return self._bits.bitcast(args[0], source, node.dtype)
        if source.size < node.dtype.size:
            return self._bits.assemble(args, source, node.dtype)
        return self._bits.piece(args[0], source, node.dtype, self._positions.of(role[-1]))

    def _update(self, node: Node, axis: int, role: Role) -> Term:
        base, part = self._reads(node, role)[:2]
        limits = [Limit(part.role[axis], part.node.shape[axis])]
        return self._within(limits, self._of(part), self._of(base), node.dtype)


def _is_minus_one(node: Node) -> bool:
    while isinstance(node.op, View):
        if isinstance(node.op.map, Affine) and node.op.map.fill is not None:
            return False
        node = node.inputs[0]
    return isinstance(node.op, Const) and node.op.value == -1


def _first_data(at: Index) -> Index:
    """An index whose data, of which there is one, is number 0."""
    return at.map(lambda part: Data(0) if isinstance(part, Data) else part)
