"""A loop over tiles of positions whose first products run while a cell before is still summed up.

What a cell's first turn computes hides the last sums of the cell before it, and what other groups multiply
hides its stores.  The first cell has none before it: a stage that nothing was copied to stands for its
factors, and what its first turn sums up is thrown away.  Code that asked whether there is a cell before would
cost the compiler registers, without which products do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lumi.backends.clike.scope import Scope
from lumi.backends.cuda import ctype
from lumi.backends.cuda.mma.tiles import Held
from lumi.backends.cuda.wgmma.cascade import CascadeFeed, CascadeUse
from lumi.dtype import F32
from lumi.llir import arithmetic


class CascadeFeedAhead(CascadeFeed):
    """Those that copy: before everything else, a stage of nothing."""

    def begin(self) -> None:
        """The rings, of which one has its first stage."""
        super().begin()
        self.claim("late", [])
        self.sent("late")


class CascadeAhead(CascadeUse):
    """Those that multiply, one cell ahead of what they store.  Every cell has a turn."""

    def begin(self) -> None:
        """Declare what lasts from cell to cell: sums, factors, and what the rows of a cell came to."""
        super().begin()
        self.open_columns(self.form.column, "column")
        self.open_positions("", self.w.ranges[self.axis])
        self.begin_carries()
        self.open_factors()
        self.carried = dict(self.tiles.held)
        self.final = {carry.final: self.w.fresh("f") for carry in self.found.rows}
        for name in self.final.values():
            self.tiles.array(name, F32, True, None)
        self.w.line("int before = -1;")

    def cell(self) -> None:
        """All turns of a cell, in the first of which the cell before it ends."""
        w = self.w
        self.open_result()
        self.tiles.held = dict(self.carried)
        span = self.open_span()
        w.line("int turn = live.last - 1;")
        self.hold_loads()
        w.line("rows.await();")
        with w.block("", tile=True):
            self.open_turn(span)
            self.await_order()
            w.line("early.await();")
            self.issue_first()
            w.line("late.await();")
            self.issue_second()
            self.pass_order()
            w.line("products_await<1>();")
            self.take_first()
            self._begin_rows()
            with self.turn_elements(span, self.is_never_ragged) as arrays:
                w.line("products_await<0>();")
                self.take_second()
                self.round_factors(arrays)
                self._store_before()
                self._clear()
        self.all_loops(span)
        w.line("before = cell;")

    def end(self) -> None:
        """The last cell ends."""
        w = self.w
        self.tiles.held = dict(self.carried)
        with w.block("if (before >= 0) "):
            w.line("late.await();")
            self.issue_second()
            w.line("products_await<0>();")
            self.take_second()
            self._begin_rows()
            self._store_before()
        super().end()

    def _begin_rows(self) -> None:
        """Keep what the rows of the cell before came to, and begin anew."""
        with self.each_row():
            for carry in self.found.rows:
                name = self.carried[carry.previous].name
                start = ctype.literal(float(arithmetic.identity(carry.op, F32)), F32)
                self.w.line(f"{self.final[carry.final]}[i] = {name}[i];")
                self.w.line(f"{name}[i] = {start};")

    def _clear(self) -> None:
        """Begin the sums anew."""
        for update in self.found.updates:
            name, width = self.sum_of(update), 2 * self.tiles.columns[update.product.columns].count
            with self.each_row(), self.w.block(f"#pragma unroll\nfor (int j = 0; j < {width}; j++) "):
                self.w.line(f"{name}[i][j] = 0.0f;")

    def _store_before(self) -> None:
        """Store what came of the cell before, if there is one."""
        w, held = self.w, self.tiles.held
        sums = {u.carry.final: self.carried[u.carry.previous] for u in self.found.updates}
        with self._apart("if (before >= 0) "):
            w.line("const int cell = before;")
            self.open_cell(*self.grid)
            self.open_result()
            self.tiles.held = {v: Held(name, F32, True, None) for v, name in self.final.items()} | sums
            with self.each_row():
                for carry in self.found.rows:
                    if carry.previous in self.partial:
                        name = self.final[carry.final]
                        w.line(f"{name}[i] = quad_sum({name}[i]);")
            self.store_all(self.form.stores)
        self.tiles.held = held

    @contextmanager
    def _apart(self, header: str) -> Iterator[None]:
        """A block that knows nothing of the cell at hand."""
        w, scopes, ranges = self.w, self.w.scopes, dict(self.w.ranges)
        scaled, passed = dict(self.elements.scaled), self.elements.passed
        self.elements.scaled, self.elements.passed = {}, frozenset()
        w.scopes = [scopes[0], Scope(0, scopes[0].team)]
        yield
        lines = w.here.lines
        w.scopes, w.ranges = scopes, ranges
        self.elements.scaled, self.elements.passed = scaled, passed
        w.here.lines += [f"{header}{{", *(f"  {line}" for line in lines), "}"]
