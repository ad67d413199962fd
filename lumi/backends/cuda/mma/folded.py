"""Whole sums of products, tile of columns after tile of columns, of each row of which a few numbers are made.

So a row's products are never stored: they are summed up as those of a matrix product, and what becomes of
them is computed as in a turn of a cascade.
"""

from __future__ import annotations

from lumi.backends.clike.scope import Range
from lumi.backends.cuda.mma.carry import CarryWriter
from lumi.backends.cuda.mma.plan import Plan
from lumi.backends.cuda.mma.sums import SumWriter
from lumi.dtype import F32


class FoldWriter(SumWriter, CarryWriter):
    """Writes the function of a form whose sums are folded."""

    def __init__(self, plan: Plan, name: str) -> None:
        CarryWriter.__init__(self, plan, name)
        self.names = {}

    def count(self, axis: str, tile: int, stem: str) -> str:
        """CUDA for the number of cells along an axis: one takes all columns."""
        return "1" if axis == self.axis else super().count(axis, tile, stem)

    def open_tile_of(self, span: Range) -> None:
        """Find the first column of a turn."""
        self.w.line(f"const int first = {span.start} + turn * {self.plan.columns};")
        self.w.line("const int first_column = first;")

    def cell(self) -> None:
        """The tiles of columns of all rows, then the results."""
        w, (sums,) = self.w, self.form.sums
        w.line("const int pair = lane % 4 * 2;")
        self.tiles.held.clear()
        span = self.open_span()
        self.begin_carries()
        self.open_positions("", span)
        self.hold_loads()
        with w.block("for (int turn = live.first; turn < live.last; turn++) ", tile=True):
            self.open_tile_of(span)
            for product in sums.products:
                name = w.fresh("s")
                self.tiles.array(name, F32, True, self.axis, " = {}")
                self.held(product.var, name, self.axis)
            with w.block(""):
                self.sum_up(sums)
            self._fold(span)
        self.finish_carries()
        self.store_all(self.form.stores)

    def _fold(self, span: Range) -> None:
        """Make of a tile what is carried: tiles that nothing masks, and that do not end early, apart."""
        w, held = self.w, dict(self.tiles.held)
        for whole in (True,) if self.is_never_ragged else (True, False):
            test = "if (turn >= whole.first && turn < whole.last) " if whole else "else "
            with w.block("" if self.is_never_ragged else test):
                self.open_elements(whole, span)
                self.compute_elements(whole)
                self.advance_rows()
            self.tiles.held = dict(held)
            self.elements.scaled.clear()
