"""What loops over tiles of positions have in common: which tiles they take, what they carry between them."""

from __future__ import annotations

from lumi.backends.clike.loops import loop_range
from lumi.backends.clike.scope import Range
from lumi.backends.cuda import ctype
from lumi.backends.cuda.mma import masks
from lumi.backends.cuda.mma.turn import TurnWriter
from lumi.backends.cuda.values import long
from lumi.dtype import F32
from lumi.llir import arithmetic, spell
from lumi.llir.kernel import Load, Operand, Reduce
from lumi.llir.program import axes_of


class CarryWriter(TurnWriter):
    """Writes what is around the turns of a loop that carries values."""

    @property
    def is_sparse(self) -> bool:
        """Whether some tiles are skipped, later rows needing more of them."""
        return bool(self.loop.guards)

    def open_tile(self, high: str, wide: str) -> None:
        """Find the first row and column; where tiles are skipped, the longest rows come first."""
        w, plan = self.w, self.plan
        place = f"tile / {wide}" if wide != "1" else "tile"
        number = f"({high} - 1 - {place})" if self.is_sparse else f"({place})"
        w.line(f"const int first_row = {number} * {plan.rows};")
        column = "0" if wide == "1" else f"tile % {wide} * {plan.width_of(self.form.column)}"
        w.line(f"const int first_column = {column};")

    # -- tiles

    def open_span(self) -> Range:
        """The positions of the loop, and the tiles of them that are not skipped."""
        span, columns = loop_range(self.w, self.loop, self.axis), self.plan.columns
        turns = self.w.declare("int", f"({span.stop} - {span.start} + {columns - 1}) / {columns}", "turns")
        self._spans(span, turns)
        return span

    @property
    def is_never_ragged(self) -> bool:
        """Whether no tile of the loop is masked or ends behind it."""
        return not (self.masks.terms or self.is_sparse or self.may_end_within)

    def _spans(self, span: Range, turns: str) -> None:
        """The tiles that are not skipped, and among them those where nothing is masked."""
        w, plan = self.w, self.plan

        def test(name: str, text: masks.Test) -> None:
            with w.block(f"const auto {name} = [&](int tile) "):
                w.line(f"const int from = {span.start} + tile * {plan.columns};")
                ends = {
                    self.axis: ("(double)from", f"(double)(least(from + {plan.columns}, {span.stop}) - 1)"),
                    self.form.row: ("(double)first_row", f"(double)({self._last_row()})"),
                }
                w.line(f"return {text(w, ends, f'from + {plan.columns} <= {span.stop}')};")
            w.here.lines[-1] += ";"

        w.line(f"Span live = {{0, {turns}}};")
        if self.is_sparse:
            test("may_hold", masks.may_hold(self.loop.guards))
            w.line(f"live = all_that({turns}, may_hold);")
        test("is_whole", masks.is_whole(self.masks))
        w.line("Span whole = first_that(live, is_whole);")

    def _last_row(self) -> str:
        last = f"first_row + {self.plan.rows}"
        return f"{last} - 1" if not self.tiles.row.stop else f"least({last}, {self.tiles.row.stop}) - 1"

    # -- carries

    def begin_carries(self) -> None:
        """Declare what is carried."""
        for carry in self.found.rows:
            name = f"c_{spell.identifier(carry.previous)}"
            start = ctype.literal(float(arithmetic.identity(carry.op, F32)), F32)
            self.tiles.array(name, F32, True, None)
            with self.each_row():
                self.w.line(f"{name}[i] = {start};")
            self.held(carry.previous, name, None)
        for update in self.found.updates:
            name = f"c_{spell.identifier(update.carry.previous)}"
            self.tiles.array(name, F32, True, update.product.columns, " = {}")
            self.held(update.carry.previous, name, update.product.columns)

    def hold_loads(self) -> None:
        """Keep what is loaded for rows and does not change from turn to turn."""
        roots: list[Operand] = [s.value for s in self.loop.body if isinstance(s, Reduce)]
        roots += [c.value for c in self.form.computed] + [c.next for c in self.found.rows]
        for var in self.below(roots):
            definition = self.form.program.definitions[var]
            axes = long(self.kernel, axes_of(definition))
            if isinstance(definition, Load) and self.form.row in axes and self.axis not in axes:
                self.tiles.hold(var)

    def advance_rows(self) -> None:
        """Make the next values of rows the previous ones."""
        w = self.w
        with self.each_row():
            for carry in self.found.rows:
                name = self.tiles.held[carry.previous].name
                if carry.previous in self.partial:
                    reduced, factor = self.partial[carry.previous]
                    text = (
                        f"{name}[i]" if factor is None else f"{name}[i] * {self.tiles.held[factor].name}[i]"
                    )
                    w.line(f"{name}[i] = {text} + {self.tiles.held[reduced].name}[i];")
                else:
                    w.line(f"{name}[i] = {self.tiles.held[carry.next].name}[i];")

    def finish_carries(self) -> None:
        """Join what threads summed up alone, and call what was carried by its last name."""
        w = self.w
        for carry in self.found.rows:
            held = self.tiles.held[carry.previous]
            if carry.previous in self.partial:
                with self.each_row():
                    w.line(f"{held.name}[i] = quad_sum({held.name}[i]);")
            self.tiles.held[carry.final] = held
        for update in self.found.updates:
            self.tiles.held[update.carry.final] = self.tiles.held[update.carry.previous]
