"""How values leave registers: alone, or several neighbours at once."""

from __future__ import annotations

from lumi.backends.clike.roots import operand_type, stored_type
from lumi.backends.clike.scope import Copy
from lumi.backends.cuda import ctype
from lumi.backends.cuda.expression import Expressions, chunk
from lumi.backends.cuda.scope import Value
from lumi.dtype import BF16, F16, F32
from lumi.llir.kernel import Map, Store
from lumi.llir.program import Program

HALVES = (BF16, F16)
"""The types to which two numbers are rounded at once."""


def lane_of(expressions: Expressions, store: Store) -> str | None:
    """The open axis whose copies are stored at once, if there is one."""
    axes = expressions.w.unrolled(store.axes)
    return next((a for a in axes if expressions.is_wide(store.access, a)), None)


def stored(expressions: Expressions, store: Store) -> Value:
    """What a store writes; what is rounded to a half only for it, unrounded: a store rounds two at once."""
    program = expressions.w.program
    definition = program.definitions[store.value] if isinstance(store.value, str) else None
    if isinstance(definition, Map) and store.value not in program.arrays and _rounds(program, definition):
        return expressions.value(definition.args[0], F32)
    return expressions.value(store.value, stored_type(program, store))


def _rounds(program: Program, definition: Map) -> bool:
    """Whether a map rounds f32 to halves."""
    kind = definition.dtype
    is_cast = definition.op == f"cast.{kind.name}"
    return is_cast and kind in HALVES and operand_type(program, definition) == F32


def store_one(expressions: Expressions, store: Store, value: Value, copy: Copy) -> None:
    """Store one copy of a value."""
    dtype = store.access.dtype
    text = ctype.conversion(value.at(copy), value.dtype, dtype)
    expressions.w.line(ctype.store(expressions.pointer(store.access, {}, copy), text, dtype))


def store_wide(expressions: Expressions, store: Store, value: Value, copy: Copy, lane: str) -> None:
    """Store all copies along `lane` of a copy of the other axes."""
    w, dtype = expressions.w, store.access.dtype
    opened = w.opened(lane)
    assert opened is not None, f"axis {lane} is not open"
    pointer, count = expressions.pointer(store.access, {}, copy), chunk(dtype, opened.copies)
    rounds = value.dtype == F32 and dtype in HALVES
    for first in range(0, opened.copies, count):
        texts = [value.at({**copy, lane: first + n}) for n in range(count)]
        if not rounds:
            texts = [ctype.conversion(t, value.dtype, dtype) for t in texts]
        place = f"{pointer} + {first}" if first else pointer
        w.line(ctype.wide_store(place, texts, dtype, rounds))


def store_all(expressions: Expressions, store: Store, value: Value) -> None:
    """Store every copy of a value."""
    w, lane = expressions.w, lane_of(expressions, store)
    for copy in w.copies(tuple(a for a in w.unrolled(store.axes) if a != lane)):
        if lane is None:
            store_one(expressions, store, value, copy)
        else:
            store_wide(expressions, store, value, copy, lane)
