"""A loop over tiles of positions by groups of warps.

The products of a turn run while those that sum up the turn before it do, and what is made of them is
computed while the latter still run.  Turns go from the last to the first, so that where rows are masked
by what follows them the tiles that are masked in part come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lumi.backends.clike.scope import Range
from lumi.backends.cuda.mma.cascade import CascadeWriter
from lumi.backends.cuda.mma.form import Computed, Product, Stored, Update
from lumi.backends.cuda.mma.plan import Tile
from lumi.backends.cuda.mma.writer import factors
from lumi.backends.cuda.wgmma.plan import GROUP, PANEL
from lumi.backends.cuda.wgmma.roles import Role
from lumi.dtype import F32


class _Turns(Role, CascadeWriter):
    """What both kinds of threads know of the turns of a cell."""

    def begin(self) -> None:
        """The rings: of the rows, of the positions' first factors, and of their second ones."""
        self.rings({"rows": self.plan.cells_kept, "early": self.plan.stages, "late": self.plan.stages})

    def open_span(self) -> Range:
        """The positions of the loop, and the tiles of them that are not skipped."""
        span = super().open_span()
        self.w.line("settle(live);")
        self.w.line("settle(whole);")
        return span

    def stage(self, ring: str) -> str:
        """CUDA for the address of the stage at hand."""
        return f"shared + {self.plan.turns_place} + {ring}.slot * {self.plan.stage}"

    @property
    def rows_place(self) -> str:
        """CUDA for the address of the rows at hand."""
        return f"shared + rows.slot * {self.plan.kept}" if self.plan.ahead else "shared"


class CascadeFeed(_Turns):
    """Those that copy: the rows, then the factors of turn after turn."""

    def begin(self) -> None:
        """The rings and what is on its way."""
        super().begin()
        if not self.plan.bulk:
            self.w.line("Feed<1> feed;")
        if self.plan.clears:
            self.w.line(f"const u32 aside = signals + {self.plan.aside};")
            self.w.line("u32 cleared = 0;")

    def cell(self) -> None:
        """The rows and the turns of a cell."""
        w = self.w
        span = self.open_span()
        with w.block("if (live.first < live.last) "):
            with w.block(""):
                self.claim("rows", [self.plan.tile(f) for f in factors(self.found.products, "a")])
                self.copy_rows(self.rows_place)
                self.sent("rows")
            with w.block("for (int turn = live.last - 1; turn >= live.first; turn--) "):
                self._copy("early", self.first_tiles, "turn", span)
                with w.block("if (turn < live.last - 1) "):
                    self._copy("late", self.second_tiles, "turn + 1", span)
            self._copy("late", self.second_tiles, "live.first", span)

    def _copy(self, ring: str, tiles: list[Tile], turn: str, span: Range) -> None:
        w, plan = self.w, self.plan
        clears = plan.clears and ring == "late"
        with w.block(""):
            if clears:
                w.line(f"const bool ends = {span.start} + ({turn} + 1) * {plan.columns} > {span.stop};")
            self.claim(ring, tiles, "ends" if clears else "")
            w.line(f"const u32 stage = {self.stage(ring)};")
            self.copy_turn(tiles, turn, span)
            if clears:
                self._clear_end(ring, tiles, span)
            self.sent(ring)

    def _clear_end(self, ring: str, tiles: list[Tile], span: Range) -> None:
        """Clear what lies behind the last position: however often it is taken by 0, it may be no number."""
        w = self.w
        with w.block("if (ends) "):
            w.line("signal_await(aside, cleared);")
            w.line("cleared ^= 1;")
            for tile in tiles:
                numbers = f"{tile.lines}, {tile.chunks * 8 // PANEL}"
                w.line(f"clear_lines<{numbers}>({self.at(tile, 'stage')}, {span.stop} - position);")
            w.line(f"tell_cleared({ring}.full + 8 * {ring}.slot);")

    def end(self) -> None:
        """Nothing is left on its way."""
        if not self.plan.bulk:
            self.w.line("feed.finish();")


class CascadeUse(_Turns):
    """Those that multiply, compute what becomes of the products, and store what was summed up."""

    first_thread = GROUP

    def begin(self) -> None:
        """The rings, and the order of groups."""
        super().begin()
        if self.plan.in_order:
            self.w.line(f"if (team == {self.plan.groups - 1}) order_pass<{2 * GROUP}>(0);")

    def end(self) -> None:
        """The first group takes the turn that is left."""
        if self.plan.in_order:
            self.w.line(f"if (team == 0) order_await<{2 * GROUP}>(0);")

    def cell(self) -> None:
        """The loop and the results."""
        self.open_result()
        self.tiles.held.clear()
        span = self.open_span()
        self.begin_carries()
        with self.w.block("if (live.first < live.last) "):
            self._all_turns(span)
        self.finish_carries()
        self.store_all(self.form.stores)

    def open_result(self) -> None:
        """Share the columns of a result."""
        self.w.line("const int pair = lane % 4 * 2;")
        self.w.line("const int column = first_column + pair;")
        self.open_columns(self.form.column, "column")

    # -- turns

    def _all_turns(self, span: Range) -> None:
        """All turns: the first, those after it, and what the last one leaves to be summed up."""
        w = self.w
        self.open_positions("", span)
        self.open_factors()
        w.line("int turn = live.last - 1;")
        self.hold_loads()
        w.line("rows.await();")
        with w.block("", tile=True):
            self.open_turn(span)
            w.line("early.await();")
            self.issue_first()
            w.line("products_await<0>();")
            self.take_first()
            self._compute(span, self.is_never_ragged, follows=False)
        self.all_loops(span)
        w.line("late.await();")
        self.issue_second()
        w.line("products_await<0>();")
        self.take_second()

    def open_factors(self) -> None:
        """Declare the products of a turn, and the factors that are made of them."""
        w, plan = self.w, self.plan
        self.results: dict[str, str] = {}
        for product in self.found.products:
            self.results[product.var] = w.fresh("s")
            self.tiles.array(self.results[product.var], F32, True, self.axis)
        self.weights: dict[Computed, str] = {}
        for computed in {u.product.a: None for u in self.found.updates}:
            assert isinstance(computed, Computed), "a cascade sums up what it computes"
            self.weights[computed] = w.fresh("p")
            w.line(f"u32 {self.weights[computed]}[{plan.steps(plan.columns)}][1][4];")

    def all_loops(self, span: Range) -> None:
        """All turns after the first, then let go of the rows."""
        w = self.w
        if self.is_never_ragged:
            self._loop(span, "live.first", whole=True)
        else:
            self._loop(span, "whole.last", whole=False)
            self._loop(span, "whole.first", whole=True)
            self._loop(span, "live.first", whole=False)
        w.line("rows.release(rows.slot);")
        w.line("rows.next();")

    def open_turn(self, span: Range) -> None:
        """Find the positions of a turn."""
        w, plan = self.w, self.plan
        w.line(f"const int first = {span.start} + turn * {plan.columns};")
        w.ranges[self.axis] = Range("first", span.stop, bound=plan.columns)

    def _loop(self, span: Range, until: str, whole: bool) -> None:
        """Turns down to one, in each of which the turn before it is summed up."""
        w = self.w
        header = f"for (turn--; turn >= most_of({until}, live.first); turn--) "
        with w.block(header, tile=True):
            self.open_turn(span)
            self.await_order()
            w.line("early.await();")
            self.issue_first()
            w.line("late.await();")
            self.issue_second()
            self.pass_order()
            w.line("products_await<1>();")
            self.take_first()
            self._compute(span, whole, follows=True)
        w.line("turn++;")

    def await_order(self) -> None:
        """Wait until it is this group's turn to multiply."""
        if self.plan.in_order:
            self.w.line(f"order_await<{2 * GROUP}>(team);")

    def pass_order(self) -> None:
        """Let the next group multiply."""
        if self.plan.in_order:
            following = f"team == {self.plan.groups - 1} ? 0 : team + 1"
            self.w.line(f"order_pass<{2 * GROUP}>({following});")

    # -- products

    def issue_first(self) -> None:
        """Begin the products of a turn."""
        w = self.w
        w.line("products_begin();")
        with w.block(""):
            w.line(f"const u32 stage = {self.stage('early')};")
            for product in self.found.products:
                self._issue(product, self.results[product.var], starts=True)
        w.line("products_end();")

    def _issue(self, product: Product, result: str, starts: bool) -> None:
        plan = self.plan
        if isinstance(product.a, Stored):
            a = self.at(plan.tile(product.a), self.rows_place)
        else:
            a = self.weights[product.a]
        adds = "0" if starts else "1"
        self.products(product, result, a, self.at(plan.tile(product.b), "stage"), adds)

    def take_first(self) -> None:
        """The products of the turn have come."""
        for product in self.found.products:
            self.w.line(f"settle({self.results[product.var]});")
            self.held(product.var, self.results[product.var], self.axis)
        self.w.line("early.release(early.slot);")
        self.w.line("early.next();")

    def issue_second(self) -> None:
        """Begin to sum up what a turn computed."""
        w = self.w
        w.line("products_begin();")
        with w.block(""):
            w.line(f"const u32 stage = {self.stage('late')};")
            for update in self.found.updates:
                self._issue(update.product, self.sum_of(update), starts=False)
        w.line("products_end();")

    def take_second(self) -> None:
        """The turn before this one is summed up."""
        for update in self.found.updates:
            self.w.line(f"settle({self.sum_of(update)});")
        for weights in self.weights.values():
            self.w.line(f"settle({weights});")
        self.w.line("late.release(late.slot);")
        self.w.line("late.next();")

    def sum_of(self, update: Update) -> str:
        """The array of a sum so far."""
        return self.tiles.held[update.carry.previous].name

    # -- what becomes of products

    def _compute(self, span: Range, whole: bool, follows: bool) -> None:
        """Compute what is carried and what is multiplied next, the turn before being summed up meanwhile."""
        with self.turn_elements(span, whole) as arrays:
            if follows:
                self.w.line("products_await<0>();")
                self.take_second()
                for update in self.found.updates:
                    self.scale(update)
            self.round_factors(arrays)

    @contextmanager
    def turn_elements(self, span: Range, whole: bool) -> Iterator[Mapping[Computed, str]]:
        """The elements of a turn, of which the computed factors are given; then the next rows."""
        held = dict(self.tiles.held)
        self.open_elements(whole, span)
        self.compute_elements(whole)
        yield {computed: self.weights_of(computed) for computed in self.weights}
        self.advance_rows()
        self.tiles.held = held
        self.elements.scaled.clear()

    def round_factors(self, arrays: Mapping[Computed, str]) -> None:
        """Round computed factors, whose places products no longer read."""
        with self.w.block(f"#pragma unroll\nfor (int k = 0; k < {self.plan.steps(self.plan.columns)}; k++) "):
            for computed, array in arrays.items():
                self.w.line(f"take_rows<{self.bf16}, false>({self.weights[computed]}[k], {array}, k);")
