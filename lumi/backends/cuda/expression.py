"""Values as CUDA: each is computed once, in the outermost scope in which its axes are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lumi import dim
from lumi.backends.clike.roots import operand_type
from lumi.backends.clike.scope import Copy
from lumi.backends.cuda import ctype, operators
from lumi.backends.cuda.ctype import register
from lumi.backends.cuda.scope import Value, Writer
from lumi.backends.cuda.values import reads_most
from lumi.dtype import BOOL, DTYPES, I32, DType
from lumi.field.access import Access
from lumi.llir import spell
from lumi.llir.kernel import Load, Map, Operand, Position, Symbol, walk
from lumi.llir.program import Fold, Slot, axes_of, dtype_of

FoldWriter = Callable[[Writer, Fold], Value]

WIDE = 1 << 31
"""Elements from which on an index takes 64 bits."""

WIDEST = 16
"""Bytes that one instruction moves at most."""


class Expressions:
    """Computes values; `fold` writes the loops of reductions, which computes values in turn."""

    def __init__(self, writer: Writer, fold: FoldWriter) -> None:
        self.w, self.fold = writer, fold

    def value(self, operand: Operand, dtype: DType) -> Value:
        """The value of an operand in `dtype`."""
        if not isinstance(operand, str):
            return Value(dtype, (), {(): ctype.literal(operand, dtype)})
        found = self._found(operand)
        if found.dtype == dtype:
            return found
        return self._each(found, dtype, lambda text: ctype.conversion(text, found.dtype, dtype))

    def _found(self, var: str) -> Value:
        with self.w.outside(self.w.depth(var)) as scope:
            if var not in scope.values:
                scope.values[var] = self._read(var) if var in self.w.arrays else self.compute(var)
            return scope.values[var]

    def compute(self, var: str) -> Value:
        """The value from its definition, even if it has an array."""
        definition = self.w.program.definitions[var]
        match definition:
            case Load():
                return self.load(definition)
            case Position(_, axis):
                return self._position(axis)
            case Symbol(_, name):
                return Value(I32, (), {(): f"(int){spell.dim_name(name)}"})
            case Map():
                return self._map(definition)
            case Fold():
                return self.fold(self.w, definition)
            case Slot():
                raise AssertionError(f"{var} has no array")

    def _each(self, value: Value, dtype: DType, make: Callable[[str], str]) -> Value:
        """A new value from the expressions of another."""
        return Value(dtype, value.axes, {k: self._named(make(t), dtype) for k, t in value.texts.items()})

    def _named(self, text: str, dtype: DType) -> str:
        return self.w.declare(register(dtype).type, text)

    # -- leaves

    def _position(self, axis: str) -> Value:
        axes = self.w.unrolled((axis,))
        texts = {}
        for copy in self.w.copies(axes):
            variable, offset = self.w.coordinate(axis, copy)
            texts[tuple(copy.values())] = f"({variable} + {offset})" if offset else variable
        return Value(I32, axes, texts)

    def load(self, definition: Load) -> Value:
        """The elements of a load at all open positions."""
        access, w = definition.access, self.w
        data = {n: self.value(o, I32) for n, o in enumerate(definition.data)}
        axes = w.unrolled(definition.axes)
        wide = self._is_wide_row if access.clamp else self.is_wide
        lane = next((a for a in axes if wide(access, a)), None)
        texts, passing = {}, self.is_passing(definition)
        for copy in w.copies(tuple(a for a in axes if a != lane)):
            if lane is None:
                parts = {0: ctype.load(self.pointer(access, data, copy), access.dtype)}
            elif access.clamp:
                parts = self._clamped(access, copy, lane, passing)
            else:
                parts = self._neighbours(self.pointer(access, data, copy), access.dtype, lane, passing)
            for number, text in parts.items():
                key = tuple(({**copy, lane: number} if lane else copy)[a] for a in axes)
                text = ctype.conversion(text, access.dtype, definition.dtype)
                texts[key] = self._named(text, definition.dtype)
        return Value(definition.dtype, axes, texts)

    def is_passing(self, definition: Load) -> bool:
        """Whether a kernel reads each element of a buffer once: no loop or cell repeats the load.

        Where it writes as much as it reads, the caches do better when told nothing.
        """
        program = self.w.program
        if not reads_most(program.kernel):
            return False
        long = {a for a, e in program.kernel.axes.items() if e != 1}
        loads = [s for s in walk(program.kernel.body) if isinstance(s, Load)]
        again = [s for s in loads if s.access.buffer == definition.access.buffer and s.var != definition.var]
        return long <= set(definition.axes) and not again

    def _neighbours(self, pointer: str, dtype: DType, lane: str, passing: bool = False) -> dict[int, str]:
        """The elements at the copies of `lane`, read at once."""
        opened = self.w.opened(lane)
        assert opened is not None
        parts: dict[int, str] = {}
        count = chunk(dtype, opened.copies)
        for first in range(0, opened.copies, count):
            place = f"{pointer} + {first}" if first else pointer
            raw = self.w.declare("auto", ctype.wide_load(place, dtype, count, passing), "w")
            parts |= {first + n: ctype.part(raw, n, dtype) for n in range(count)}
        return parts

    def _clamped(self, access: Access, copy: Copy, lane: str, passing: bool) -> dict[int, str]:
        """The elements at the copies of `lane`, of which so many as are read at once leave a row together."""
        w, opened, dtype = self.w, self.w.opened(lane), access.dtype
        assert opened is not None
        parts: dict[int, str] = {}
        count = chunk(dtype, opened.copies)
        at = self._coordinate(access, {**copy, lane: 0})
        start, first, size = spell.row(access, at, lambda number: "")
        for number in range(0, opened.copies, count):
            place = w.declare("i64", f"{first} + {number}" if number else first, "place")
            near = f"{w.buffers[access.buffer]} + {start} + (clamp({place}, {size}) & -{count})"
            raw = w.declare("auto", ctype.wide_load(near, dtype, count, passing), "w")
            ends = [ctype.part(raw, n, dtype) for n in (0, count - 1)]
            for n in range(count):
                inside = ctype.part(raw, n, dtype)
                parts[number + n] = f"({place} < 0 ? {ends[0]} : {place} >= {size} ? {ends[1]} : {inside})"
        return parts

    def _is_wide_row(self, access: Access, axis: str) -> bool:
        """Whether the copies of an open axis are neighbours in rows that wide instructions can move.

        So many as are moved at once lie in a row together, or outside of it.
        """
        opened, last = self.w.opened(axis), access.index[-1]
        if opened is None or not opened.adjacent or opened.copies == 1 or not spell.is_row(access, axis):
            return False
        count = chunk(access.dtype, opened.copies)
        if count * access.dtype.size < 4 or not _is_multiple(access.shape[-1], count) or access.data():
            return False
        row = Access(access.buffer, (last,), access.shape[-1:], access.dtype)
        return opened.copies % count == 0 and divides(row, count, self._multiple)

    def is_wide(self, access: Access, axis: str) -> bool:
        """Whether the copies of an open axis are neighbours in memory that wide instructions can move."""
        opened = self.w.opened(axis)
        if opened is None or not opened.adjacent or opened.copies == 1 or spell.step(access, axis) != 1:
            return False
        count = chunk(access.dtype, opened.copies)
        return count * access.dtype.size >= 4 and divides(access, count, self._multiple)

    def _multiple(self, axis: str) -> int:
        """A divisor of the first position along an open axis."""
        opened = self.w.opened(axis)
        return opened.multiple if opened is not None else 1

    def pointer(self, access: Access, data: Mapping[int, Value], copy: Copy) -> str:
        """CUDA for the address of an element."""

        def index(number: int) -> str:
            return data[number].at(copy)

        element = spell.element(access, self._coordinate(access, copy), index, self.w.buffers)
        return f"{self.w.buffers[access.buffer]} + {element}"

    def _coordinate(self, access: Access, copy: Copy) -> spell.Coordinate:
        """Where a copy of the code stands along an axis, in an index of a buffer."""
        size = dim.product(access.shape)
        wide = not isinstance(size, int) or size >= WIDE

        def at(axis: str) -> tuple[str, int]:
            variable, offset = self.w.coordinate(axis, copy)
            return (f"(i64){variable}" if wide else variable), offset

        return at

    # -- arrays

    def array_element(self, var: str, copy: Copy) -> str:
        """CUDA for the address of an element of a value's array."""
        return self.w.arrays[var].place(lambda axis: self.w.coordinate(axis, copy))

    def _read(self, var: str) -> Value:
        dtype = dtype_of(self.w.program.definitions[var])
        held_in = self.w.arrays[var]
        name, where = held_in.name, held_in.axes
        if var not in self.w.shared:
            return Value(dtype, (), {(): name})
        axes = self.w.unrolled(where)
        lane = where[-1] if where and where[-1] in axes and self._is_wide_array(var, dtype) else None
        held, texts = _whole(dtype), {}
        for copy in self.w.copies(tuple(a for a in axes if a != lane)):
            pointer = self.array_element(var, copy)
            parts = {0: f"*({pointer})"} if lane is None else self._neighbours(pointer, held, lane)
            for number, text in parts.items():
                key = tuple(({**copy, lane: number} if lane else copy)[a] for a in axes)
                texts[key] = self._named(text, dtype)
        return Value(dtype, axes, texts)

    def _is_wide_array(self, var: str, dtype: DType) -> bool:
        """Whether the copies of the last axis of an array can be read at once."""
        axes, ranges = self.w.arrays[var].axes, self.w.arrays[var].ranges
        opened, span = self.w.opened(axes[-1]), ranges[axes[-1]]
        if opened is None or not opened.adjacent:
            return False
        count = chunk(_whole(dtype), opened.copies)
        if count == 1:
            return False
        whole = opened.multiple % count == 0 and span.multiple % count == 0
        return whole and (len(axes) == 1 or (span.bound or 1) % count == 0)

    # -- maps

    def _map(self, definition: Map) -> Value:
        op, args = definition.op, definition.args
        operand = operand_type(self.w.program, definition)
        if op.startswith(("cast.", "bits.")):
            value, target = self.value(args[0], operand), DTYPES[op[5:]]
            change = ctype.conversion if op.startswith("cast.") else operators.bitcast
            return self._each(value, target, lambda text: change(text, operand, target))
        types = [BOOL, operand, operand] if op == "sel" else [operand] * len(args)
        values = [self.value(a, t) for a, t in zip(args, types, strict=True)]
        used = {a for v in values for a in v.axes}
        axes = tuple(a for a in self.w.unrolled(axes_of(definition)) if a in used)
        texts = {}
        for copy in self.w.copies(axes):
            text = operators.apply(op, [v.at(copy) for v in values], operand, definition.dtype)
            texts[tuple(copy.values())] = self._named(text, definition.dtype)
        return Value(definition.dtype, axes, texts)


def _whole(dtype: DType) -> DType:
    """The type of the elements of an array that holds values of `dtype`."""
    return DTYPES[register(dtype).name] if register(dtype).name != "bool" else I32


def chunk(dtype: DType, count: int) -> int:
    """How many of `count` neighbours one instruction moves."""
    return min(count, WIDEST // dtype.size)


def divides(access: Access, count: int, multiple: Callable[[str], int]) -> bool:
    """Whether an access stands at a multiple of `count` elements when each axis does at one of `multiple`."""
    if access.clamp or any(i.data() for i in access.index):
        return False
    total: dim.Extent = 0
    for index, stride in zip(access.index, spell.strides(access), strict=True):
        total = total + stride * index.offset
        for part, coefficient in index.terms:
            factor = stride * coefficient
            if not _is_multiple(factor * (multiple(part) if isinstance(part, str) else 1), count):
                return False
    return _is_multiple(total, count)


def _is_multiple(factor: dim.Extent, count: int) -> bool:
    """Whether a dim expression is a multiple of `count` whatever its dims are."""
    if isinstance(factor, int):
        return factor % count == 0
    return all(coefficient % count == 0 for _, coefficient in factor.terms)
