"""A loop over tiles of positions on tensor cores: products, what becomes of them, and sums of products.

Each turn multiplies the rows of a block by a tile of positions, takes maxima and sums over it, and uses
what it made of the products as the factor of the next ones, without leaving registers.
"""

from __future__ import annotations

from lumi.backends.clike.scope import Range
from lumi.backends.cuda.mma.carry import CarryWriter
from lumi.backends.cuda.mma.form import Computed, Product, Stored, Update
from lumi.backends.cuda.mma.plan import Tile
from lumi.backends.cuda.mma.writer import factors
from lumi.dtype import F32


class CascadeWriter(CarryWriter):
    """Writes the function of a form with a cascade."""

    # -- a cell

    def cell(self) -> None:
        """The loop and the results."""
        w, form, plan = self.w, self.form, self.plan
        w.line("const int pair = lane % 4 * 2;")
        w.line("const int column = first_column + pair;")
        self.open_columns(form.column, "column")
        self.tiles.held.clear()
        span = self.open_span()
        self.begin_carries()
        self._start_copies(span)
        rows = self._hold_rows()
        self.hold_loads()
        with w.block("for (int turn = live.first; turn < live.last; turn++) ", tile=True):
            w.line(f"const int first = {span.start} + turn * {plan.columns};")
            self._turn(span, rows)
        w.line("async_wait<0>();")
        self.finish_carries()
        self.store_all(form.stores)
        w.line("__syncthreads();")

    # -- factors

    @property
    def first_tiles(self) -> list[Tile]:
        """The tiles of positions that rows are multiplied with."""
        return [self.plan.tile(f) for f in factors(self.found.products, "b")]

    @property
    def second_tiles(self) -> list[Tile]:
        """The tiles of positions that are summed up."""
        first = self.first_tiles
        found = [self.plan.tile(f) for f in factors([u.product for u in self.found.updates], "b")]
        return [t for t in found if t not in first]

    def _start_copies(self, span: Range) -> None:
        """Ask for the rows of the block, and for the first tiles of positions."""
        plan = self.plan
        self.copy_rows()
        for n in range(max(plan.stages - 1, 1)):
            self._fetch(self.first_tiles, f"live.first + {n}", str(n), span)
            if plan.stages > 1:
                self._fetch(self.second_tiles, f"live.first + {n}", str(n), span)

    def copy_rows(self, place: str = "shared") -> None:
        """Copy the rows of the block to an address."""
        for factor in factors(self.found.products, "a"):
            tile = self.plan.tile(factor)
            starts = {factor.outer: "first_row", factor.summed: "0"}
            self.copy(tile, self.at(tile, place), starts, {})

    def copy_turn(self, tiles: list[Tile], turn: str, span: Range) -> None:
        """Copy tiles of positions of a turn to the address `stage`."""
        self.w.line(f"const int position = {span.start} + ({turn}) * {self.plan.columns};")
        for tile in tiles:
            factor = tile.factor
            starts = {factor.outer: "first_column", factor.summed: "0"} | {self.axis: "position"}
            self.copy(tile, self.at(tile, "stage"), starts, {self.axis: span.stop})

    def _fetch(self, tiles: list[Tile], turn: str, slot: str, span: Range) -> None:
        """Ask for tiles of positions of a turn, if there is one, as a group of copies."""
        w, plan = self.w, self.plan
        with w.block(f"if ({turn} < live.last) "):
            w.line(f"const u32 stage = shared + {plan.kept} + ({slot}) * {plan.stage};")
            self.copy_turn(tiles, turn, span)
        w.line("async_commit();")

    def _hold_rows(self) -> dict[Stored, str]:
        """Keep the rows of the block in registers, if the plan says so; their names."""
        w, plan = self.w, self.plan
        if not plan.held:
            return {}
        names = {}
        groups = 2 * (plan.stages - 1) if plan.stages > 1 else 1
        w.line(f"async_wait<{groups - 1}>();")
        w.line("__syncthreads();")
        for number, factor in enumerate(factors(self.found.products, "a")):
            tile = plan.tile(factor)
            count = plan.steps(self._depth(factor))
            names[factor] = f"q{number}"
            w.line(f"u32 q{number}[{count}][{plan.row_tiles}][4];")
            with w.block(f"#pragma unroll\nfor (int k = 0; k < {count}; k++) "):
                self.rows_of(tile, f"q{number}[k]", self.at(tile, "shared"), "k")
        return names

    def _depth(self, factor: Stored) -> int:
        product = next(p for p in self.found.products if p.a == factor)
        return self.plan.depth_of(product)

    # -- a turn

    def _turn(self, span: Range, rows: dict[Stored, str]) -> None:
        """The products of a turn and all that follows from them."""
        w, plan = self.w, self.plan
        many = plan.stages > 1
        w.line(f"const int slot = (turn - live.first) % {plan.stages};" if many else "const int slot = 0;")
        ahead = plan.stages - 1
        following = f"(turn - live.first + {ahead}) % {plan.stages}" if many else "0"
        w.line(f"async_wait<{2 * plan.stages - 3 if many else 0}>();")
        w.line("__syncthreads();")
        if many:
            self._fetch(self.first_tiles, f"turn + {ahead}", following, span)
        else:
            self._fetch(self.second_tiles, "turn", "0", span)
        w.line(f"const u32 tiles = shared + {plan.kept} + slot * {plan.stage};")
        self.open_positions("", span)
        for product in self.found.products:
            self._product(product, rows)
        held = dict(self.tiles.held)
        for whole in (True, False):
            header = "if (turn >= whole.first && turn < whole.last) " if whole else "else "
            with w.block(header):
                self.open_elements(whole, span)
                self.compute_elements(whole)
                self._update_all(span)
            self.tiles.held = dict(held)
            self.elements.scaled.clear()

    def _await_second(self, span: Range) -> None:
        w, plan = self.w, self.plan
        many, ahead = plan.stages > 1, plan.stages - 1
        w.line(f"async_wait<{2 * plan.stages - 3 if many else 0}>();")
        w.line("__syncthreads();")
        if many:
            following = f"(turn - live.first + {ahead}) % {plan.stages}"
            self._fetch(self.second_tiles, f"turn + {ahead}", following, span)
        else:
            self._fetch(self.first_tiles, "turn + 1", "0", span)

    def _product(self, product: Product, rows: dict[Stored, str]) -> None:
        """A product with the tile of positions."""
        w, plan = self.w, self.plan
        assert isinstance(product.a, Stored), "rows of a cascade lie in memory"
        name = w.fresh("s")
        self.tiles.array(name, F32, True, self.axis, " = {}")
        place = self.at(plan.tile(product.b), "tiles")
        with w.block(f"#pragma unroll\nfor (int k = 0; k < {plan.steps(plan.depth_of(product))}; k++) "):
            factor = f"{rows[product.a]}[k]" if product.a in rows else "a"
            if product.a not in rows:
                tile = plan.tile(product.a)
                w.line(f"u32 a[{plan.row_tiles}][4];")
                self.rows_of(tile, "a", self.at(tile, "shared"), "k")
            self._multiply(product, name, factor, place)
        self.held(product.var, name, self.axis)

    def _multiply(self, product: Product, result: str, rows: str, place: str) -> None:
        """Add the products of rows in registers and of all columns at step k of the sum."""
        self.w.line(f"u32 b[{self.pairs(product.b)}][4];")
        self.columns_of(self.plan.tile(product.b), "b", place, "k")
        self.w.line(self.multiplied(result, rows, "b"))

    # -- what is carried

    def _update_all(self, span: Range) -> None:
        """Make the next values of what is carried the previous ones."""
        for number, update in enumerate(self.found.updates):
            self._add(update, None if number else span)
        self.advance_rows()

    def _add(self, update: Update, wait: Range | None) -> None:
        """Scale a sum so far, and add the products of what the turn computed, once their factors came."""
        w, plan, product = self.w, self.plan, update.product
        result = self.tiles.held[update.carry.previous].name
        self.scale(update)
        assert isinstance(product.a, Computed), "a cascade sums up what it computes"
        weights = self.weights_of(product.a)
        count, parts = plan.steps(plan.columns), 1 if product.a.exact else plan.parts
        names = [w.fresh("a") for _ in range(parts)]
        for number, name in enumerate(names):
            keep = "true" if number < parts - 1 else "false"
            take = "take_rows_tf32" if self.form.is_tf32 else f"take_rows<{self.bf16}, {keep}>"
            w.line(f"u32 {name}[{count}][{plan.row_tiles}][4];")
            with w.block(f"#pragma unroll\nfor (int k = 0; k < {count}; k++) "):
                w.line(f"{take}({name}[k], {weights}, k);")
        if wait is not None:
            self._await_second(wait)
        place = self.at(plan.tile(product.b), "tiles")
        with w.block(f"#pragma unroll\nfor (int k = 0; k < {count}; k++) "):
            w.line(f"u32 b[{self.pairs(product.b)}][4];")
            self.columns_of(plan.tile(product.b), "b", place, "k", taken=True)
            for name in names:
                w.line(self.multiplied(result, f"{name}[k]", "b"))

    def scale(self, update: Update) -> None:
        """Scale a sum so far."""
        if update.factor is None:
            return
        result, factor = (self.tiles.held[v].name for v in (update.carry.previous, update.factor))
        width = 2 * self.tiles.columns[update.product.columns].count
        with self.each_row(), self.w.block(f"#pragma unroll\nfor (int j = 0; j < {width}; j++) "):
            self.w.line(f"{result}[i][j] *= {factor}[i];")
