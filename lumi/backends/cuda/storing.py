"""How values leave registers: alone, or several neighbours at once."""

from __future__ import annotations

from lumi.backends.clike.scope import Copy
from lumi.backends.cuda import ctype
from lumi.backends.cuda.expression import Expressions, chunk
from lumi.backends.cuda.scope import Value
from lumi.llir.kernel import Store


def lane_of(expressions: Expressions, store: Store) -> str | None:
    """The open axis whose copies are stored at once, if there is one."""
    axes = expressions.w.unrolled(store.axes)
    return next((a for a in axes if expressions.is_wide(store.access, a)), None)


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
    for first in range(0, opened.copies, count):
        texts = [
            ctype.conversion(value.at({**copy, lane: first + n}), value.dtype, dtype) for n in range(count)
        ]
        w.line(ctype.wide_store(f"{pointer} + {first}" if first else pointer, texts, dtype))


def store_all(expressions: Expressions, store: Store, value: Value) -> None:
    """Store every copy of a value."""
    w, lane = expressions.w, lane_of(expressions, store)
    for copy in w.copies(tuple(a for a in w.unrolled(store.axes) if a != lane)):
        if lane is None:
            store_one(expressions, store, value, copy)
        else:
            store_wide(expressions, store, value, copy, lane)
