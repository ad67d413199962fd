"""Whole sums of products on tensor cores, and what follows them: matrix products and what is fused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lumi.backends.clike.loops import loop_range
from lumi.backends.cuda.mma.form import Stored, Sums
from lumi.backends.cuda.mma.plan import Plan
from lumi.backends.cuda.mma.writer import TensorWriter, factors
from lumi.backends.cuda.scope import single
from lumi.dtype import F32


@dataclass(frozen=True, slots=True)
class Turns:
    """The stages of sums: from where to where, `inner` along their axis, `total` with the axes around it."""

    start: str
    stop: str
    inner: str
    total: str


class SumWriter(TensorWriter):
    """Writes the function of a form with sums; `names` are the registers of factors."""

    def __init__(self, plan: Plan, name: str, beside: Mapping[str, str] | None = None) -> None:
        super().__init__(plan, name, beside)
        self.names: dict[Stored, str] = {}

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
                start = "" if self.is_begun(sums) else " = {}"
                self.tiles.array(name, F32, True, form.column, start)
                self.held(product.var, name, form.column)
            with w.block(""):
                self.sum_up(sums)
        self.store_all(form.stores)

    def is_begun(self, sums: Sums) -> bool:
        """Whether the first products begin sums, so that these need not be 0 before."""
        return False

    def sum_up(self, sums: Sums) -> None:
        """The stages of sums over the same axes."""
        w, plan = self.w, self.plan
        turns = self.turns(sums)
        total = turns.total
        ahead = plan.stages - 1
        with w.block(f"#pragma unroll\nfor (int n = 0; n < {ahead}; n++) "):
            self._fetch(sums, turns, f"shared + n * {plan.stage}")
        self._declare(sums)
        w.line(f"async_wait<{plan.stages - 2}>();")
        w.line("__syncthreads();")
        w.line("u32 stage = shared;")
        self._load(sums, "0", "0")
        with w.block(f"for (int turn = 0; turn < {total}; turn++) "):
            w.line(f"const int n = turn + {ahead};")
            self._fetch(sums, turns, f"shared + n % {plan.stages} * {plan.stage}")
            self._turn(sums)
        w.line("async_wait<0>();")
        w.line("__syncthreads();")

    def turns(self, sums: Sums) -> Turns:
        """Declare how many stages sums have."""
        w, plan = self.w, self.plan
        span = loop_range(w, sums.loop, sums.summed) if sums.loop is not None else w.ranges[sums.summed]
        inner = w.declare("int", f"({span.stop} - {span.start} + {plan.depth - 1}) / {plan.depth}", "turns")
        total = inner
        if sums.outer_summed:
            counts = [w.extent(self.kernel.axes[a]) for a in sums.outer_summed]
            total = w.declare("int", " * ".join([inner, *counts]), "total")
        return Turns(span.start, span.stop, inner, total)

    def _fetch(self, sums: Sums, turns: Turns, to: str) -> None:
        """Ask for the factors of turn `n`, if there is one."""
        with self.w.block(f"if (n < {turns.total}) "):
            self.w.line(f"const u32 to = {to};")
            self.copies(sums, turns)
        self.w.line("async_commit();")

    def copies(self, sums: Sums, turns: Turns) -> None:
        """Copy the factors of turn `n` to the address `to`."""
        w, plan = self.w, self.plan
        place, rest = "n", ""
        if sums.outer_summed:
            place, rest = f"n % {turns.inner}", w.declare("int", f"n / {turns.inner}", "rest")
        for axis in reversed(sums.outer_summed):
            extent = w.extent(self.kernel.axes[axis])
            w.here.opened[axis] = single(w.declare("int", f"{rest} % {extent}", "x"))
            rest = w.declare("int", f"{rest} / {extent}", "rest")
        summed = w.declare("int", f"{turns.start} + {place} * {plan.depth}", "summed")
        for side, outer in (("a", "first_row"), ("b", "first_column")):
            for factor in factors(sums.products, side):
                tile = plan.tile(factor)
                starts = {factor.outer: outer, factor.summed: summed}
                self.copy(tile, self.at(tile, "to"), starts, {factor.summed: turns.stop})

    def _declare(self, sums: Sums) -> None:
        """Registers for the factors of two steps: one is loaded while the other is multiplied."""
        w, plan = self.w, self.plan
        for factor in factors(sums.products, "a"):
            self.names[factor] = w.fresh("a")
            w.line(f"u32 {self.names[factor]}[2][{plan.row_tiles}][4];")
        for factor in factors(sums.products, "b"):
            self.names[factor] = w.fresh("b")
            w.line(f"u32 {self.names[factor]}[2][{self.pairs(factor)}][4];")

    def _load(self, sums: Sums, k: str, half: str) -> None:
        """Load the factors of a step."""
        for factor in factors(sums.products, "a"):
            tile = self.plan.tile(factor)
            self.rows_of(tile, f"{self.names[factor]}[{half}]", self.at(tile, "stage"), k)
        for factor in factors(sums.products, "b"):
            tile = self.plan.tile(factor)
            self.columns_of(tile, f"{self.names[factor]}[{half}]", self.at(tile, "stage"), k)

    def _turn(self, sums: Sums) -> None:
        """The products of a stage; before the last of them, the next stage must be there."""
        w, plan = self.w, self.plan
        count = plan.steps(plan.depth)
        with w.block(f"#pragma unroll\nfor (int k = 0; k < {count}; k++) "):
            with w.block(f"if (k == {count - 1}) "):
                w.line(f"async_wait<{plan.stages - 2}>();")
                w.line("__syncthreads();")
                w.line(f"stage = shared + (turn + 1) % {plan.stages} * {plan.stage};")
            self._load(sums, f"(k + 1) % {count}", "(k + 1) % 2")
            for product in sums.products:
                assert isinstance(product.a, Stored), "factors of whole sums lie in memory"
                result = self.tiles.held[product.var].name
                a, b = self.names[product.a], self.names[product.b]
                w.line(self.multiplied(result, f"{a}[k % 2]", f"{b}[k % 2]"))
