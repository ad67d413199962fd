"""Whole sums of products on tensor cores, and what follows them: matrix products and what is fused."""

from __future__ import annotations

from lumi.backends.clike.loops import loop_range
from lumi.backends.cuda.mma.form import Product, Stored, Sums
from lumi.backends.cuda.mma.plan import Tile
from lumi.backends.cuda.mma.writer import TensorWriter, factors, steps
from lumi.backends.cuda.scope import single
from lumi.dtype import F32


class SumWriter(TensorWriter):
    """Writes the function of a form with sums."""

    def cell(self) -> None:
        """All sums one after another, then the results."""
        w, form, plan = self.w, self.form, self.plan
        column = "" if plan.wide == 1 else f" + warp % {plan.wide} * {plan.warp_columns(form.column)}"
        w.line(f"const int column = first_column{column} + lane % 4 * 2;")
        self.open_columns(form.column, "column")
        self.tiles.held.clear()
        for sums in form.sums:
            for product in sums.products:
                name = w.fresh("s")
                self.tiles.array(name, F32, True, form.column, " = {}")
                self.held(product.var, name, form.column)
            with w.block(""):
                self._sum(sums)
        self.store_all(form.stores)

    def _sum(self, sums: Sums) -> None:
        """The stages of sums over the same axes."""
        w, plan = self.w, self.plan
        span = loop_range(w, sums.loop, sums.summed) if sums.loop is not None else w.ranges[sums.summed]
        turns = w.declare("int", f"({span.stop} - {span.start} + {plan.depth - 1}) / {plan.depth}", "turns")
        total = turns
        if sums.outer_summed:
            counts = [w.extent(self.kernel.axes[a]) for a in sums.outer_summed]
            total = w.declare("int", " * ".join([turns, *counts]), "total")
        ahead = plan.stages - 1
        with w.block(f"#pragma unroll\nfor (int n = 0; n < {ahead}; n++) "):
            self._fetch(sums, span.start, span.stop, turns, total, f"shared + n * {plan.stage}")
        w.line(f"int slot = 0, next = {ahead};")
        with w.block(f"for (int turn = 0; turn < {total}; turn++) "):
            w.line(f"async_wait<{plan.stages - 2}>();")
            w.line("__syncthreads();")
            w.line(f"const int n = turn + {ahead};")
            self._fetch(sums, span.start, span.stop, turns, total, f"shared + next * {plan.stage}")
            self._multiply(sums)
            for name in ("slot", "next"):
                w.line(f"{name} = {name} == {ahead} ? 0 : {name} + 1;")
        w.line("async_wait<0>();")
        w.line("__syncthreads();")

    def _fetch(self, sums: Sums, start: str, stop: str, turns: str, total: str, to: str) -> None:
        """Ask for the factors of turn `n`, if there is one."""
        w, plan = self.w, self.plan
        with w.block(f"if (n < {total}) "):
            w.line(f"const u32 stage = {to};")
            place, rest = "n", ""
            if sums.outer_summed:
                place, rest = f"n % {turns}", w.declare("int", f"n / {turns}", "rest")
            for axis in reversed(sums.outer_summed):
                extent = w.extent(self.kernel.axes[axis])
                w.here.opened[axis] = single(w.declare("int", f"{rest} % {extent}", "x"))
                rest = w.declare("int", f"{rest} / {extent}", "rest")
            summed = w.declare("int", f"{start} + {place} * {plan.depth}", "summed")
            for side, outer in (("a", "first_row"), ("b", "first_column")):
                for factor in factors(sums.products, side):
                    tile = plan.tile(factor)
                    starts = {factor.outer: outer, factor.summed: summed}
                    self.copy(tile, self.at(tile, "stage"), starts, {factor.summed: stop})
        w.line("async_commit();")

    def _multiply(self, sums: Sums) -> None:
        """The products of a stage."""
        w, plan = self.w, self.plan
        w.line(f"const u32 stage = shared + slot * {plan.stage};")
        with w.block(f"#pragma unroll\nfor (int k = 0; k < {steps(plan.depth)}; k++) "):
            names = {}
            for number, factor in enumerate(factors(sums.products, "a")):
                tile = plan.tile(factor)
                names[factor] = f"a{number}"
                w.line(f"u32 a{number}[{plan.row_tiles}][4];")
                self.rows_of(tile, f"a{number}", self.at(tile, "stage"), "k")
            for product in sums.products:
                self._one(product, names, self.plan.tile(product.b))

    def _one(self, product: Product, names: dict[Stored, str], tile: Tile) -> None:
        assert isinstance(product.a, Stored), "factors of whole sums lie in memory"
        result = self.tiles.held[product.var].name
        self.multiply(product, result, names[product.a], self.at(tile, "stage"), "k")
