"""Which factors of products lie in memory so that tiles of them can be copied line by line."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lumi.backends.cuda.mma import placed
from lumi.backends.cuda.mma.form import Product, RefusalError, Stored
from lumi.backends.cuda.values import long
from lumi.dtype import F32, DType
from lumi.llir import spell
from lumi.llir.kernel import Dot, Kernel, Load, Map, Operand
from lumi.llir.program import Definition, Fold, Program, axes_of

SOME = 1 << 12
"""Positions assumed of an axis whose extent is known at run time only, when an axis of tiles is chosen."""


@dataclass(slots=True)
class Factors:
    """Reads the factors of products in a program, which are of `kinds`.

    With `placed` lines may lie anywhere, with `scattered` elements may.
    """

    program: Program
    kinds: Collection[DType]
    placed: bool = False
    scattered: bool = False
    kernel: Kernel = field(init=False)
    table: Mapping[str, Definition] = field(init=False)

    def __post_init__(self) -> None:
        self.kernel, self.table = self.program.kernel, self.program.definitions

    def axes(self, operand: Operand) -> set[str]:
        """The long axes of a value."""
        if not isinstance(operand, str):
            return set()
        return set(long(self.kernel, axes_of(self.table[operand])))

    def ranked(self, axes: set[str]) -> list[str]:
        """Long axes, the longest first, of equal ones the last."""
        order = list(self.kernel.axes)

        def rank(axis: str) -> tuple[int, int]:
            extent = self.kernel.axes[axis]
            return (extent if isinstance(extent, int) else SOME, order.index(axis))

        return sorted(long(self.kernel, axes), key=rank, reverse=True)

    def product(self, var: str, fold: Fold | Dot, row: str, column: str) -> Product:
        """A product of two factors that lie in memory."""
        over = long(self.kernel, fold.over)
        terms = fold.terms if isinstance(fold, Fold) else (fold.a, fold.b)
        if len(terms) != 2:
            raise RefusalError("it reduces what is no product")
        for a, b in (terms, terms[::-1]):
            if row not in self.axes(a) or column not in self.axes(b):
                continue
            if row in self.axes(b) or column in self.axes(a):
                raise RefusalError("both factors have the rows or the columns")
            reasons = list[str]()
            for summed in self.ranked(set(over)):
                others = tuple(x for x in over if x != summed)
                try:
                    made = self.stored(a, row, summed), self.stored(b, column, summed)
                    return Product(var, *made, column, summed, others)
                except RefusalError as error:
                    reasons.append(str(error))
            raise RefusalError(reasons[0] if reasons else "it sums over nothing")
        raise RefusalError("a product lacks the rows or the columns of the others")

    def unrounded(self, operand: Operand) -> Operand:
        """A factor before the kernel rounds it to TF32, which the product of f32 does."""
        definition = self.table[operand] if isinstance(operand, str) else None
        is_rounded = F32 in self.kinds and isinstance(definition, Map) and definition.op == "tf32"
        return definition.args[0] if is_rounded and isinstance(definition, Map) else operand

    def load(self, operand: Operand) -> Load:
        """The load that a factor is."""
        definition = self.table[operand] if isinstance(operand, str) else None
        if isinstance(definition, Map) and definition.op == "cast.f32":
            (argument,) = definition.args
            definition = self.table[argument] if isinstance(argument, str) else None
        if not isinstance(definition, Load):
            raise RefusalError("a factor is computed")
        if definition.access.dtype not in self.kinds:
            raise RefusalError(f"a factor is of {definition.access.dtype}")
        if definition.dtype not in (F32, definition.access.dtype):
            raise RefusalError(f"a factor is read as {definition.dtype}")
        return definition

    def stored(self, operand: Operand, outer: str, summed: str) -> Stored:
        """How a factor lies in memory along the two axes of a tile."""
        inner = self.unrounded(operand)
        asked = inner is not operand
        chosen, seen = placed.selected(self.table, inner) if self.placed else (inner, None)
        load = self.load(chosen)
        if seen is None:
            try:
                return Stored(load, outer, summed, self._along(load, outer, summed), asked)
            except RefusalError:
                if not self.placed:
                    raise
        for along in (summed, outer):
            if placed.is_line(self.kernel, load, along) and along not in self.axes_below(load, seen):
                return Stored(load, outer, summed, along, asked, True, seen)
        if self.scattered and load.access.dtype != F32:
            return Stored(load, outer, summed, summed, asked, True, seen, True)
        raise RefusalError("neighbours in a factor lie apart, or are seen one by one")

    def axes_below(self, load: Load, seen: str | None) -> set[str]:
        """The axes that decide where a line of a load lies, but for its index, and whether it is seen."""
        return set().union(*(self.axes(o) for o in (*load.data, *filter(None, [seen]))))

    def _along(self, load: Load, outer: str, summed: str) -> str:
        """The axis along which neighbours are neighbours in memory, of a load of lines evenly apart."""
        steps = {axis: spell.step(load.access, axis) for axis in long(self.kernel, load.axes)}
        if any(steps.get(axis) is None for axis in (outer, summed)):
            raise RefusalError("a factor is not read along lines")
        if any(self.axes(d) & {outer, summed} for d in load.data):
            raise RefusalError("a factor is gathered element by element")
        along = [axis for axis in (summed, outer) if steps[axis] == 1]
        if not along:
            raise RefusalError("neighbours in a factor lie apart")
        return along[0]
