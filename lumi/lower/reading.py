"""Which elements of its inputs an element of a node is made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import repeat

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import I64, DType
from lumi.field.index import Index, of_extent
from lumi.hlir.graph import Node, starts, state_of
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
    Update,
    View,
)
from lumi.lower.reshape import Group, groups
from lumi.lower.space import ZERO, Role, Space


@dataclass(frozen=True, slots=True)
class Read:
    """An element of a node; `inside` is known to be in its shape, because the program says so."""

    node: Node
    role: Role
    inside: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What an element is made of: `reads` in the order of the node's inputs, over the axes `bound` here.

    With `memory` it is instead the element of that node's buffer under the shape of the reshape that was
    asked for: its index in the node's own shape would need a symbolic stride.
    """

    reads: tuple[Read, ...]
    bound: tuple[str, ...] = ()
    memory: Node | None = None


class Reader:
    """Turns a role of a node into roles of its inputs."""

    def __init__(self, space: Space, varies: Mapping[int, frozenset[int]]) -> None:
        self._space = space
        self._varies = varies

    def read(self, node: Node, role: Role, inside: bool) -> Reading:
        """What the element `role` of a node is made of; `inside` says that the program keeps it inside."""
        match node.op:
            case Input() | Param() | State() | Const() | Symbol() | Iota():
                return Reading(())
            case Unary() | Binary() | Select() | Cast():
                return Reading(tuple(Read(i, role, inside) for i in node.inputs))
            case Bitcast():
                return self._bitcast(node, role, inside)
            case Reduce(_, axes):
                return self._reduce(node, axes, role, inside)
            case Scan(_, axis):
                return self._scan(node, axis, role, inside)
            case View(Affine() as affine):
                moved = tuple(_row(row, role) for row in affine.rows)
                return Reading((Read(node.inputs[0], moved, inside and affine.fill is None),))
            case View():
                return self._reshape(node, role, inside)
            case Gather(axis):
                return self._gather(node, axis, role, inside)
            case Scatter(axis):
                return self._scatter(node, axis, role, inside)
            case Update():
                return self._update(node, node.op, role, inside)

    # -- one op each

    def _bitcast(self, node: Node, role: Role, inside: bool) -> Reading:
        source = node.inputs[0]
        if source.type.rank <= node.type.rank:
            return Reading((Read(source, role[: source.type.rank], inside),))
        pieces = node.dtype.size // source.dtype.size
        return Reading(tuple(Read(source, (*role, Index((), k)), inside) for k in range(pieces)))

    def _reduce(self, node: Node, axes: tuple[int, ...], role: Role, inside: bool) -> Reading:
        source, used, kept = node.inputs[0], self._space.used(role), iter(role)
        bound: list[str] = []
        full: list[Index] = []
        for k in range(source.type.rank):
            at = self._space.fresh(source, k, used) if k in axes else next(kept)
            full.append(at)
            bound += [a for a in self._space.used((at,)) if k in axes]
        return Reading((Read(source, tuple(full), inside),), self._sorted(bound))

    def _scan(self, node: Node, axis: int, role: Role, inside: bool) -> Reading:
        source = node.inputs[0]
        at = self._space.fresh(source, axis, self._space.used(role))
        return Reading((Read(source, _replace(role, axis, at), inside),), self._sorted(at.axes()))

    def _gather(self, node: Node, axis: int, role: Role, inside: bool) -> Reading:
        table, index = node.inputs
        asked = role[axis : axis + index.type.rank]
        size = table.shape[axis]
        place, needed = self._place(Read(index, asked, inside), size, index.dtype is I64 or moves(table))
        moved = (*role[:axis], place, *role[axis + index.type.rank :])
        return Reading((Read(table, moved, False), *needed))

    def _place(self, asked: Read, size: Extent, clamped: bool) -> tuple[Index, tuple[Read, ...]]:
        """An element of an index tensor as an index into `size` elements, and what has to be read for it.

        What is made of positions and numbers becomes part of the index map, so that the read is no gather.
        An index that is not `clamped` here is clamped where a buffer is read.
        """
        asked = self._under_views(asked)
        place = self._known(asked)
        if place and not (clamped and self._leaves(place, size)):
            return place, ()
        return self._space.datum(asked.node, asked.role, size if clamped else None), (asked,)

    def _under_views(self, asked: Read) -> Read:
        """The element that views look at, as far as it is always there."""
        while isinstance(asked.node.op, View):
            filled = isinstance(asked.node.op.map, Affine) and asked.node.op.map.fill is not None
            reading = self.read(asked.node, asked.role, asked.inside)
            if filled or reading.memory:
                break
            (asked,) = reading.reads
        return asked

    def _known(self, asked: Read) -> Index | None:
        """The value of an integer as an index: of a number, a dim, a position, and of sums of multiples of
        them and their quotients and remainders, where they cannot overflow."""
        asked = self._under_views(asked)
        match asked.node.op:
            case Const(value):
                return Index((), int(value))
            case Symbol(extent):
                return of_extent(extent)
            case Iota():
                return asked.role[0]
            case Binary(kind):
                a, b = (self._known(Read(i, asked.role, asked.inside)) for i in asked.node.inputs)
                found = None if a is None or b is None else self._combined(kind, a, b)
                return found if found and self._fits(found, asked.node.dtype) else None
            case _:
                return None

    def _combined(self, kind: BinaryKind, a: Index, b: Index) -> Index | None:
        """An operator of two indices as an index, where it is one."""
        match kind:
            case BinaryKind.ADD:
                return a + b
            case BinaryKind.MUL if not a.terms or not b.terms:
                return b.scale(a.offset) if not a.terms else a.scale(b.offset)
            case BinaryKind.MOD if not b.terms and b.offset > 0:
                return self._space.divide(a, b.offset)[1]
            case BinaryKind.DIV if not b.terms and b.offset > 0 and self._space.starts(a):
                return self._space.divide(a, b.offset)[0]
            case _:
                return None

    def _fits(self, at: Index, dtype: DType) -> bool:
        """Whether a dtype holds every value of an index."""
        found = self._space.bounds(at)
        if found is None:
            return False
        low, high = dim.bounds(found[0], self._space.dims)[0], dim.bounds(found[1], self._space.dims)[1]
        return dtype.bounds[0] <= low and high <= dtype.bounds[1]

    def _leaves(self, place: Index, size: Extent) -> bool:
        return not (self._space.starts(place) and self._space.ends(place, size))

    def _update(self, node: Node, op: Update, role: Role, inside: bool) -> Reading:
        base, part, *given = node.inputs
        place, needed = of_extent(op.start), list[Read]()
        for start in given:
            asked = Read(start, role[: start.type.rank], inside)
            place = self._space.datum(start, asked.role, starts(node))
            needed.append(asked)
        shifted = role[op.axis] + place.scale(-1)
        size = base.shape[op.axis]
        if op.wrap and isinstance(size, int):
            shifted = self._space.divide(shifted, size)[1]
        return Reading(
            (Read(base, role, inside), Read(part, _replace(role, op.axis, shifted), False), *needed)
        )

    def start(self, update: Node, role: Role) -> Read:
        """The element of an input at which an update begins for the element `role` of its new part."""
        asked = Read(update.inputs[2], role[: update.inputs[2].type.rank], True)
        while isinstance(asked.node.op, View):
            (asked,) = self.read(asked.node, asked.role, True).reads
        return asked

    def _scatter(self, node: Node, axis: int, role: Role, inside: bool) -> Reading:
        base, index, updates = node.inputs
        at = self._space.fresh(updates, axis, self._space.used(role))
        reads = (
            Read(base, role, inside),
            Read(index, (at,), True),
            Read(updates, _replace(role, axis, at), inside),
        )
        return Reading(reads, self._sorted(at.axes()))

    def _reshape(self, node: Node, role: Role, inside: bool) -> Reading:
        source = node.inputs[0]
        moved = [ZERO] * source.type.rank
        for group in groups(source.shape, node.shape):
            if not self._varies[source.id].isdisjoint(group.before):
                found = self._regroup(group, source.shape, node.shape, role)
                if found is None:
                    return Reading((), memory=_under_reshapes(source))
                for k, at in zip(group.before, found, strict=True):
                    moved[k] = at
        return Reading((Read(source, tuple(moved), inside),))

    def _regroup(
        self, group: Group, before: tuple[Extent, ...], after: tuple[Extent, ...], role: Role
    ) -> list[Index] | None:
        """The indices of a group before a reshape; None when a stride would be symbolic."""
        if group.keeps:
            return [role[group.after[0]]]
        flat, stride = ZERO, 1
        for k in reversed(group.after):
            if role[k] != ZERO and stride == 0:
                return None
            flat = flat + role[k].scale(stride)
            size = after[k]
            stride = stride * size if isinstance(size, int) else 0  # 0: symbolic from here on
        found: list[Index] = []
        for k in reversed(group.before[1:]):
            size = before[k]
            if not isinstance(size, int):
                return None
            flat, rest = self._space.divide(flat, size)
            found.insert(0, rest)
        return [flat, *found]

    def _sorted(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(a.name for a in self._space.axes if a.name in names)


def _row(row: Row, role: Role) -> Index:
    total = of_extent(row.offset)
    for coordinate, coefficient in row.terms:
        total = total + role[coordinate].scale(coefficient)
    return total


def _replace(role: Role, k: int, at: Index) -> Role:
    return (*role[:k], at, *role[k + 1 :])


def _under_reshapes(node: Node) -> Node:
    while isinstance(node.op, View) and isinstance(node.op.map, Reshape):
        node = node.inputs[0]
    return node


def moves(table: Node) -> bool:
    """Whether an element outside of a tensor would be made of elements inside of others.

    A tensor that only joins tensors of its own shape is as large as the buffers under it, and clamping
    the index into those is clamping it into the tensor.  A slice is not.
    """
    todo, seen = [table], {table.id}
    while todo:
        node = todo.pop()
        match node.op:
            case Input() | Param() | State() | Const() | Symbol():
                continue
            case Unary() | Binary() | Select() | Cast():
                pass
            case View(Affine(rows)) if all(map(_stands, rows, repeat(node), node.inputs[0].shape)):
                pass
            case Update() if state_of(node):
                continue
            case _:
                return True
        todo += [i for i in node.inputs if i.id not in seen]
        seen |= {i.id for i in node.inputs}
    return False


def _stands(row: Row, node: Node, size: Extent) -> bool:
    """Whether a row reads a whole dimension in order, or its only element."""
    match row:
        case Row((), 0):
            return size == 1
        case Row(((output, 1),), 0):
            return node.shape[output] == size
        case _:
            return False
