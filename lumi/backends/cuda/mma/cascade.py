"""A loop over tiles of positions on tensor cores: products, what becomes of them, and sums of products.

Each turn multiplies the rows of a block by a tile of positions, takes maxima and sums over it, and uses
what it made of the products as the factor of the next ones, without leaving registers.
"""

from __future__ import annotations

from lumi.backends.clike.loops import loop_range
from lumi.backends.clike.scope import Range
from lumi.backends.cuda import ctype
from lumi.backends.cuda.mma import masks
from lumi.backends.cuda.mma.form import Computed, Product, Stored, Update
from lumi.backends.cuda.mma.plan import Tile
from lumi.backends.cuda.mma.turn import TurnWriter
from lumi.backends.cuda.mma.writer import factors
from lumi.backends.cuda.values import long
from lumi.dtype import F32
from lumi.llir import arithmetic, spell
from lumi.llir.kernel import Load, Operand, Reduce
from lumi.llir.program import axes_of


class CascadeWriter(TurnWriter):
    """Writes the function of a form with a cascade."""

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

    # -- a cell

    def cell(self) -> None:
        """The loop and the results."""
        w, form, plan = self.w, self.form, self.plan
        w.line("const int pair = lane % 4 * 2;")
        w.line("const int column = first_column + pair;")
        self.open_columns(form.column, "column")
        self.tiles.held.clear()
        span = loop_range(w, self.loop, self.axis)
        length = f"{span.stop} - {span.start}"
        turns = w.declare("int", f"({length} + {plan.columns - 1}) / {plan.columns}", "turns")
        self.spans(span, turns)
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

    def spans(self, span: Range, turns: str) -> None:
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

    def hold_loads(self) -> None:
        """Keep what is loaded for rows and does not change from turn to turn."""
        roots: list[Operand] = [s.value for s in self.loop.body if isinstance(s, Reduce)]
        roots += [c.value for c in self.form.computed] + [c.next for c in self.found.rows]
        for var in self.below(roots):
            definition = self.form.program.definitions[var]
            axes = long(self.kernel, axes_of(definition))
            if isinstance(definition, Load) and self.form.row in axes and self.axis not in axes:
                self.tiles.hold(var)

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
