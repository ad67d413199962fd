"""Results that the copy engine stores, and what they are made of beside products, which it brings.

Both pass through the stages of factors, `WIDTH` columns of all rows of a cell at once: its lines lie in
panels of 128 bytes.  So other cells' products wait for no memory, nor do the threads that make results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lumi.backends.cuda.mma.form import Form
from lumi.backends.cuda.tensormap import LINE
from lumi.backends.cuda.values import long
from lumi.backends.cuda.wgmma import box
from lumi.backends.cuda.wgmma.box import Boxed
from lumi.backends.cuda.wgmma.instruction import ROWS
from lumi.dtype import BF16, F16, F32
from lumi.field.access import Access
from lumi.llir import spell
from lumi.llir.kernel import Load, Operand
from lumi.llir.program import Fold, arguments, axes_of

WIDTH = 64
"""Columns that pass through a stage at once."""

KINDS = (BF16, F16, F32)
"""Types that do."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of an operand or of a result in a stage: how memory is seen, bytes from its beginning on."""

    access: Access
    boxed: Boxed
    offset: int

    def boxes(self, rows: int) -> Iterator[tuple[int, str]]:
        """Where each panel of so many rows begins in a stage, and CUDA for the first of its columns."""
        across = LINE // self.access.dtype.size
        for panel in range(WIDTH // across):
            yield self.offset + panel * rows * LINE, f"first_column + q * {WIDTH} + {panel * across}"


@dataclass(frozen=True, slots=True)
class Sent:
    """Operands by the values that they are loaded as, results in the order of their stores; bytes of a stage.

    A result takes the place of an operand of its size, if there is one.
    """

    loads: Mapping[str, Piece]
    stores: tuple[Piece, ...]
    size: int

    @property
    def brought(self) -> int:
        """Bytes that a stage is full with."""
        return sum(p.boxed.box.height * WIDTH * p.access.dtype.size for p in self.loads.values())


def find(form: Form, rows: int, room: int) -> Sent | None:
    """How results of so many rows pass through stages of `room` bytes; None where they cannot."""
    kernel, column = form.program.kernel, form.column
    loads, stores, free, size = dict[str, Piece](), list[Piece](), list[Piece](), 0
    stored = [s for s in form.stores if column in long(kernel, s.axes)]
    for load in operands(form):
        seen = _seen(form, load.access, rows)
        if seen is not None:
            loads[load.var] = Piece(load.access, seen, size)
            size += rows * WIDTH * load.access.dtype.size
    free = list(loads.values())
    for store in stored:
        seen = _seen(form, store.access, ROWS)
        if seen is None or seen.box.lines != kernel.axes[form.row]:
            return None
        left = next((p for p in free if p.access.dtype.size == store.access.dtype.size), None)
        if left is None:
            stores.append(Piece(store.access, seen, size))
            size += rows * WIDTH * store.access.dtype.size
        else:
            free.remove(left)
            stores.append(Piece(store.access, seen, left.offset))
    return Sent(loads, tuple(stores), size) if stored and size <= room else None


def _seen(form: Form, access: Access, height: int) -> Boxed | None:
    """How the copy engine sees `height` rows of what an access touches."""
    if access.dtype not in KINDS or spell.step(access, form.column) != 1 or form.row not in access.axes():
        return None
    return box.seen(form.program.kernel, access, form.column, form.row, height)


def operands(form: Form) -> list[Load]:
    """What is loaded for rows and columns of results, beside products."""
    table, kernel = form.program.definitions, form.program.kernel
    todo: list[Operand] = [s.value for s in form.stores]
    found: dict[str, Load] = {}
    met = set[str]()
    while todo:
        var = todo.pop()
        if not isinstance(var, str) or var in met:
            continue
        met.add(var)
        definition = table[var]
        if isinstance(definition, Fold):
            continue
        if isinstance(definition, Load) and {form.row, form.column} <= {*long(kernel, axes_of(definition))}:
            found[var] = definition
        todo += arguments(definition)
    return [found[var] for var in table if var in found]
