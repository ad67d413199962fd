"""Values as C: each is computed once, in the outermost scope in which its axes are open."""

from __future__ import annotations

import math
from collections.abc import Callable

from lumi.backends.clike.roots import operand_type
from lumi.backends.clike.scope import Copy
from lumi.backends.cpu import ctype, operators
from lumi.backends.cpu.ctype import LANES, register
from lumi.backends.cpu.loops import UNROLLED
from lumi.backends.cpu.scope import Form, Value, Writer
from lumi.dtype import BOOL, DTYPES, I32, DType
from lumi.field.access import Access
from lumi.llir import spell
from lumi.llir.bytedot import is_byte_dot
from lumi.llir.kernel import Load, Map, Operand, Position, Symbol
from lumi.llir.program import Fold, Slot, axes_of, dtype_of

KEPT = 3
"""Vectors of one operand that are held in registers; of the larger operand of a block each is loaded when
it is used, so that both and the results fit into sixteen registers."""

LINE = 64
"""Bytes that the processor fetches at once."""

EXACT = 1024
"""Products of bytes whose sum f32 holds exactly, and one more."""

FoldWriter = Callable[[Writer, Fold], Value]


class Expressions:
    """Computes values; `fold` writes the loops of reductions, which computes values in turn."""

    def __init__(self, writer: Writer, fold: FoldWriter) -> None:
        self.w, self.fold = writer, fold

    def value(self, operand: Operand, dtype: DType, partial: bool = False) -> Value:
        """The value of an operand in `dtype`; as eight addends only where the caller can take them."""
        if not isinstance(operand, str):
            return Value(dtype, Form.SCALAR, (), {(): ctype.literal(operand, dtype)})
        found = self._found(operand)
        if found.form is Form.PARTIAL and not partial:
            with self.w.outside(self.w.depth(operand)) as scope:
                found = scope.values[operand] = self._across(found)
        return found if found.dtype == dtype else self._converted(found, dtype)

    def _found(self, var: str) -> Value:
        with self.w.outside(self.w.depth(var)) as scope:
            if var not in scope.values:
                scope.values[var] = self._computed(var)
            return scope.values[var]

    def _computed(self, var: str) -> Value:
        if var in self.w.arrays:
            return self._read(var)
        return self.compute(var)

    def compute(self, var: str) -> Value:
        """The value from its definition, even if it has an array."""
        definition = self.w.program.definitions[var]
        match definition:
            case Load():
                return self._load(definition)
            case Position(_, axis):
                return self._position(axis)
            case Symbol(_, name):
                return Value(I32, Form.SCALAR, (), {(): f"((int32_t){spell.dim_name(name)})"})
            case Map():
                return self._map(definition)
            case Fold():
                return self.fold(self.w, definition)
            case Slot():
                raise AssertionError(f"{var} has no array")

    # -- forms

    def lanes(self, value: Value, copy: Copy) -> str:
        """Eight lanes of a value: its own, or copies of its one element."""
        text = value.at(copy)
        return operators.splat(text, value.dtype) if value.form is Form.SCALAR else text

    def _each(self, value: Value, dtype: DType, form: Form, make: Callable[[str], str]) -> Value:
        """A new value from the texts of another."""
        texts = {key: self._named(make(text), dtype, form) for key, text in value.texts.items()}
        return Value(dtype, form, value.axes, texts)

    def _named(self, text: str, dtype: DType, form: Form) -> str:
        held = register(dtype)
        return self.w.declare(held.scalar if form is Form.SCALAR else held.vector, text)

    def _across(self, value: Value) -> Value:
        def total(text: str) -> str:
            return ctype.rounded(operators.across("sum", text, value.dtype), value.dtype, False)

        return self._each(value, value.dtype, Form.SCALAR, total)

    def _converted(self, value: Value, dtype: DType) -> Value:
        def convert(text: str) -> str:
            return ctype.conversion(text, value.dtype, dtype, value.form is Form.LANES)

        return self._each(value, dtype, value.form, convert)

    # -- leaves

    def _position(self, axis: str) -> Value:
        axes = self.w.unrolled((axis,))
        has_lanes = self.w.lane() == axis
        texts = {}
        for copy in self.w.copies(axes):
            variable, offset = self.w.coordinate(axis, copy)
            text = f"((int32_t)({variable} + {offset}))" if offset else f"((int32_t){variable})"
            texts[tuple(copy.values())] = f"(splat_i32({text}) + IOTA)" if has_lanes else text
        return Value(I32, Form.LANES if has_lanes else Form.SCALAR, axes, texts)

    def _load(self, definition: Load) -> Value:
        access, w = definition.access, self.w
        data = {n: self.value(o, I32) for n, o in enumerate(definition.data)}
        axes, lane = w.unrolled(definition.axes), w.lane()
        spread = lane is not None and lane in definition.axes
        step = spell.step(access, lane) if spread and lane is not None else 0
        if any(d.form is Form.LANES for d in data.values()):
            step = None
        texts = {}
        for copy in w.copies(axes):
            if not spread or step == 0:
                text = self._element(definition, data, copy, 0)
            elif step == 1:
                pointer = self.pointer(access, data, copy)
                self.fetch_ahead(definition, pointer, lane)
                text = ctype.conversion(
                    ctype.load(pointer, access.dtype, True), access.dtype, definition.dtype, True
                )
            elif step is None and lane is not None and self._is_row(access, lane, data):
                text = self._row(definition, data, copy)
            else:
                text = self.gathered(
                    [self._element(definition, data, copy, n) for n in range(LANES)], definition.dtype
                )
            form = Form.LANES if spread and step != 0 else Form.SCALAR
            texts[tuple(copy.values())] = self._kept(text, definition.dtype, form, axes)
        return Value(definition.dtype, form, axes, texts)

    def _is_row(self, access: Access, lane: str, data: dict[int, Value]) -> bool:
        found = any(d.form is Form.LANES for d in data.values())
        return access.clamp and spell.is_row(access, lane) and not found

    def _row(self, definition: Load, data: dict[int, Value], copy: Copy) -> str:
        """C for eight neighbours, each clamped into their row."""
        access = definition.access
        at, number = self._coordinates(data, copy, 0)
        begin, place, size = spell.row(access, at, number)
        text = f"row_{access.dtype.name}({self.w.buffers[access.buffer]} + {begin}, {place}, {size})"
        return ctype.conversion(text, access.dtype, definition.dtype, True)

    def fetch_ahead(self, definition: Load, pointer: str, lane: str | None) -> None:
        """Ask for what a load of neighbours will need later, once a cache line, if it is read only once.

        Loops that are written out may read it again: they have it in registers.
        """
        w, size = self.w, definition.access.dtype.size
        again = [a for scope in w.scopes for a in scope.opened if a not in definition.axes]
        if not w.blocking.ahead or lane is None or not all(self._is_written_out(a) for a in again):
            return
        tests = [f"{w.coordinate(lane, {})[0]} % {LINE // size} == 0"]
        tests += [f"{w.coordinate(a, {})[0]} == 0" for a in again]
        ahead = w.blocking.ahead // size
        w.line(f"if ({' && '.join(tests)}) __builtin_prefetch({pointer} + {ahead});")

    def _is_written_out(self, axis: str) -> bool:
        length = self.w.ranges[axis].length
        return length is not None and length <= UNROLLED

    def _element(self, definition: Load, data: dict[int, Value], copy: Copy, lane: int) -> str:
        access = definition.access
        text = ctype.load(self.pointer(access, data, copy, lane), access.dtype, False)
        return ctype.conversion(text, access.dtype, definition.dtype, False)

    def pointer(self, access: Access, data: dict[int, Value], copy: Copy, lane: int = 0) -> str:
        """C for the address of an element; `lane` counts from the first of the lanes."""
        at, index = self._coordinates(data, copy, lane)
        pointers = self.w.buffers
        return f"{pointers[access.buffer]} + {spell.element(access, at, index, pointers)}"

    def _coordinates(
        self, data: dict[int, Value], copy: Copy, lane: int
    ) -> tuple[spell.Coordinate, spell.DataText]:
        """Where a lane of a copy stands along each axis, and its data indices."""
        axis = self.w.lane()

        def at(name: str) -> tuple[str, int]:
            return self.w.coordinate(name, copy, lane if name == axis else 0)

        def index(number: int) -> str:
            text = data[number].at(copy)
            return f"{text}[{lane}]" if data[number].form is Form.LANES else text

        return at, index

    def gathered(self, elements: list[str], dtype: DType) -> str:
        """C for a vector of eight single elements."""
        sign = "-" if dtype == BOOL else ""
        return f"({register(dtype).vector}){{{', '.join(sign + e for e in elements)}}}"

    def _kept(self, text: str, dtype: DType, form: Form, axes: tuple[str, ...]) -> str:
        """A named load; one that several copies of the code share is held in a register."""
        w = self.w
        shared = any(o.copies > 1 and a not in axes for s in w.scopes for a, o in s.opened.items())
        shared = shared and sum(1 for _ in w.copies(axes)) <= KEPT
        if form is Form.SCALAR or not shared:
            return self._named(text, dtype, form)
        name = w.fresh("v")
        w.line(f"{register(dtype).vector} {name} = {text};")
        w.line(f"KEEP({name});")
        return name

    # -- arrays

    def array_element(self, var: str, copy: Copy, lane: int = 0) -> str:
        """C for the address of an element of a value's array."""
        lanes = self.w.lane()
        return self.w.arrays[var].place(
            lambda axis: self.w.coordinate(axis, copy, lane if axis == lanes else 0)
        )

    def _read(self, var: str) -> Value:
        dtype = dtype_of(self.w.program.definitions[var])
        held, where = register(dtype), self.w.arrays[var].axes
        axes, lane = self.w.unrolled(where), self.w.lane()
        form = Form.LANES if lane is not None and lane in where else Form.SCALAR
        texts = {}
        for copy in self.w.copies(axes):
            if form is Form.SCALAR:
                text = f"*({self.array_element(var, copy)})"
            elif where[-1] == lane:
                raw = register(I32).name if dtype == BOOL else held.name
                text = f"ld_{raw}({self.array_element(var, copy)})"
                text = f"({text} != 0)" if dtype == BOOL else text
            else:
                text = self.gathered([f"*({self.array_element(var, copy, n)})" for n in range(LANES)], dtype)
            texts[tuple(copy.values())] = self._kept(text, dtype, form, axes)
        return Value(dtype, form, axes, texts)

    # -- maps

    def _map(self, definition: Map) -> Value:
        op, args = definition.op, definition.args
        operand = operand_type(self.w.program, definition)
        if op.startswith(("cast.", "bits.")):
            return self._cast(op, self.value(args[0], operand, partial=self._casts_addends(definition)))
        types = [BOOL, operand, operand] if op == "sel" else [operand] * len(args)
        values = [self.value(a, t, partial=True) for a, t in zip(args, types, strict=True)]
        if any(v.form is Form.PARTIAL for v in values):
            if self._linear(definition, values):
                return self._combined(definition, values, operand, Form.PARTIAL)
            values = [self.value(a, t) for a, t in zip(args, types, strict=True)]
        form = Form.LANES if any(v.form is Form.LANES for v in values) else Form.SCALAR
        return self._combined(definition, values, operand, form)

    def _linear(self, definition: Map, values: list[Value]) -> bool:
        """Whether the sum over lanes may be taken after the operator instead of before.

        It may not where another operand has lanes of its own, each of which needs the whole sum.  A product
        waits only for a sum it is an addend of: an infinite factor makes NaN of addends that differ in sign.
        """
        if definition.dtype.name not in ("f32", "f64", "i32", "i64"):
            return False
        forms = {v.form for v in values}
        if definition.op == "mul":
            return forms == {Form.PARTIAL, Form.SCALAR} and self._is_summed(definition.var)
        return definition.op in ("add", "sub") and forms == {Form.PARTIAL}

    def _is_summed(self, var: str) -> bool:
        """Whether a value is an addend of a further sum, or a part of one."""
        todo, known = [var], {var}
        while todo:
            part = todo.pop()
            if part in self.w.arrays:
                continue
            for reader in self.w.program.definitions.values():
                match reader:
                    case Fold(_, "sum", _, terms) if part in terms:
                        return True
                    case Map(name, "add" | "sub" | "mul", args) if part in args and name not in known:
                        known.add(name)
                        todo.append(name)
        return False

    def _casts_addends(self, definition: Map) -> bool:
        """Whether a cast of the addends of a sum leaves their sum what it is: f32 holds them all exactly."""
        made = self.w.program.definitions.get(str(definition.args[0]))
        if definition.op != "cast.f32" or not isinstance(made, Fold):
            return False
        points = math.prod(self.w.ranges[a].length or EXACT for a in made.over)
        return points < EXACT and is_byte_dot(made, self.w.program.definitions)

    def _cast(self, op: str, value: Value) -> Value:
        target, vector = DTYPES[op[5:]], value.form is not Form.SCALAR
        change = ctype.conversion if op.startswith("cast.") else operators.bitcast
        return self._each(value, target, value.form, lambda text: change(text, value.dtype, target, vector))

    def _combined(self, definition: Map, values: list[Value], operand: DType, form: Form) -> Value:
        used = {a for v in values for a in v.axes}
        axes = tuple(a for a in self.w.unrolled(axes_of(definition)) if a in used)
        vector, texts = form is not Form.SCALAR, {}
        for copy in self.w.copies(axes):
            if definition.op == "shr" and vector and values[1].form is Form.SCALAR:
                text = operators.shift(self.lanes(values[0], copy), values[1].at(copy), operand)
            else:
                args = [self.lanes(v, copy) if vector else v.at(copy) for v in values]
                text = operators.apply(definition.op, args, operand, definition.dtype, vector)
            texts[tuple(copy.values())] = self._named(text, definition.dtype, form)
        return Value(definition.dtype, form, axes, texts)
