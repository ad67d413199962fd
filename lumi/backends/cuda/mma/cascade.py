"""A loop over tiles of positions on tensor cores: products, what becomes of them, and sums of products.

Each turn multiplies the rows of a block by a tile of positions, takes maxima and sums over it, and uses
what it made of the products as the factor of the next ones, without leaving registers.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from lumi.backends.clike.loops import loop_range
from lumi.backends.clike.scope import Range
from lumi.backends.cuda import ctype
from lumi.backends.cuda.mma import masks
from lumi.backends.cuda.mma.form import Cascade, Computed, Product, Stored, Update
from lumi.backends.cuda.mma.plan import Plan, Tile
from lumi.backends.cuda.mma.tiles import Along, Held
from lumi.backends.cuda.mma.writer import TensorWriter, factors, steps
from lumi.backends.cuda.values import long
from lumi.dtype import BOOL, F32
from lumi.llir import arithmetic, spell
from lumi.llir.kernel import Carry, Load, Loop, Map, Operand, Reduce
from lumi.llir.program import axes_of, is_plain

COMBINE = {"sum": "({} + {})", "max": "larger({}, {})"}
"""How a reduction takes in a value."""


CHAINS = 4
"""Partial results of a reduction in a thread, so that one operation need not wait for the one before it."""


class CascadeWriter(TensorWriter):
    """Writes the function of a form with a cascade."""

    def __init__(self, plan: Plan, name: str) -> None:
        super().__init__(plan, name)
        assert plan.form.cascade is not None, "a form without a cascade is written as sums"
        self.found: Cascade = plan.form.cascade
        self.loop = self.found.loop
        self.masks = masks.find(self.form.program, self.found)
        self.partial = {c.previous: r for c in self.found.rows if (r := self._partial(c)) is not None}
        self.shared_values = self._used_twice()
        self.ragged = False

    @property
    def axis(self) -> str:
        """The axis of the loop."""
        return self.found.axis

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

    def copy_rows(self) -> None:
        """Copy the rows of the block."""
        for factor in factors(self.found.products, "a"):
            tile = self.plan.tile(factor)
            starts = {factor.outer: "first_row", factor.summed: "0"}
            self.copy(tile, self.at(tile, "shared"), starts, {})

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
            count = steps(self._depth(factor))
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
                self.open_positions("" if whole else span.stop, span)
                self.compute_elements(whole)
                self._update_all(span)
            self.tiles.held = dict(held)
            self.elements.scaled.clear()

    def open_positions(self, stop: str, span: Range) -> None:
        """Share the positions of a turn as columns, which may lie behind `stop` unless that is empty."""
        even = span.multiple % 2 == 0
        count = self.plan.columns // 8
        self.tiles.columns[self.axis] = Along(self.axis, "first + pair", count, 8, 2, stop, even)

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
        with w.block(f"#pragma unroll\nfor (int k = 0; k < {steps(plan.depth_of(product))}; k++) "):
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
        self.w.line(f"multiply<{self.bf16}>({result}, {rows}, b);")

    # -- elements of a turn

    def compute_elements(self, whole: bool) -> None:
        """Everything between the products of a turn and the sums, in the order of the kernel."""
        self.ragged = not whole
        self.elements.passed = self.masks.tests if whole else frozenset()
        for statement in self.loop.body:
            match statement:
                case Reduce():
                    self._prepare([statement.value])
                    self._reduce(statement)
                case Map(var) if var in self.shared_values:
                    self._hold(var)
                case _:
                    pass
        wanted: list[Operand] = [c.next for c in self.found.rows if c.previous not in self.partial]
        wanted += [u.factor for u in self.found.updates if u.factor is not None]
        wanted += [f for _, f in self.partial.values() if f is not None]
        for operand in wanted:
            self._prepare([operand])
            if isinstance(operand, str) and operand not in self.tiles.held:
                self.tiles.hold(operand)

    def _hold(self, var: str) -> None:
        """Keep a value of rows and columns, or of rows alone."""
        self._prepare([var])
        if self.axis not in axes_of(self.form.program.definitions[var]):
            self.tiles.hold(var)
            return
        source = self._source(var)
        if source is not None:
            self.tiles.held[var] = source
        elif not self._hold_masked(var):
            self.tiles.hold(var)

    def _source(self, operand: Operand) -> Held | None:
        """The held value that another one is a positive multiple of."""
        if not isinstance(operand, str):
            return None
        if operand in self.tiles.held:
            held = self.tiles.held[operand]
            return held if held.rows and held.columns == self.axis and held.dtype == F32 else None
        match self.form.program.definitions[operand]:
            case Map(_, "mul", (str(a), float(c)) | (float(c), str(a)), _, dtype) if c > 0 and dtype == F32:
                found = self._source(a)
                return found and Held(found.name, F32, True, self.axis, found.scale * c)
            case Map(_, "sel", (test, a, _), _, dtype) if test in self.elements.passed and dtype == F32:
                return self._source(a)
            case _:
                return None

    def _hold_masked(self, var: str) -> bool:
        """Keep a masked multiple of a held value as that multiple of a masked value."""
        w, definition = self.w, self.form.program.definitions[var]
        match definition:
            case Map(_, "sel", (str(test), a, float(other)), _, dtype) if dtype == F32:
                found = self._source(a)
            case _:
                return False
        if found is None or found.scale == 1.0 or other not in (0.0, float("-inf")):
            return False
        name = w.fresh("t")
        self.tiles.array(name, F32, True, self.axis)
        with self.tiles.both(self.axis):
            value = self.elements.value(test, BOOL)
            for copy in w.copies((self.axis,)):
                place = f"[i][j * 2 + {copy[self.axis]}]"
                seen = value.at({a: copy[a] for a in value.axes})
                w.line(f"{name}{place} = {seen} ? {found.name}{place} : {ctype.literal(other, F32)};")
        self.tiles.held[var] = Held(name, F32, True, self.axis, found.scale)
        return True

    def _prepare(self, operands: list[Operand]) -> None:
        """Keep what values are made of where it would be computed or loaded again: of rows, of columns."""
        table = self.form.program.definitions
        for var in self.below(operands):
            definition, axes = table[var], set(long(self.kernel, axes_of(table[var])))
            tile = axes & {self.form.row, self.axis}
            again = isinstance(definition, Map) and self.form.program.levels[var] > 0
            if (tile == {self.form.row} and again) or (tile == {self.axis} and isinstance(definition, Load)):
                self.tiles.hold(var)

    def _reduce(self, statement: Reduce) -> None:
        """A reduction over the tile of positions: in each thread, then over those that share a row."""
        w = self.w
        name = w.fresh("r")
        identity = ctype.literal(float(arithmetic.identity(statement.op, F32)), F32)
        scale, combine = self._scale_of(statement), COMBINE[statement.op]
        self.tiles.array(name, F32, True, None)
        with self.tiles.rows():
            w.line(f"float r[{CHAINS}] = {{{', '.join([identity] * CHAINS)}}};")
            with self.tiles.across(self.axis):
                value = self.elements.value(statement.value, F32)
                if scale != 1.0:
                    value = self.elements.scaled[str(statement.value)].value
                along = self.tiles.columns[self.axis]
                for copy in range(2):
                    text = value.at(dict.fromkeys(value.axes, copy))
                    if self.ragged:
                        seen = self.tiles.inside(along, "j", copy)
                        text = f"({seen} ? {text} : {identity})"
                    chain = f"r[j * 2 % {CHAINS} + {copy}]"
                    w.line(f"{chain} = {combine.format(chain, text)};")
            joined = combine.format(combine.format("r[0]", "r[1]"), combine.format("r[2]", "r[3]"))
            if statement.var not in [r for r, _ in self.partial.values()]:
                joined = f"quad_{statement.op}({joined})"
            w.line(f"{name}[i] = {joined}{f' * {scale!r}f' if scale != 1.0 else ''};")
        self.held(statement.var, name, None)

    def _scale_of(self, statement: Reduce) -> float:
        """The positive factor that a maximum may be multiplied by after it is taken."""
        held = self.tiles.held.get(statement.value) if isinstance(statement.value, str) else None
        return held.scale if held is not None and statement.op == "max" else 1.0

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
        count, parts = steps(plan.columns), 1 if product.a.exact else plan.parts
        names = [w.fresh("a") for _ in range(parts)]
        for number, name in enumerate(names):
            keep = "true" if number < parts - 1 else "false"
            w.line(f"u32 {name}[{count}][{plan.row_tiles}][4];")
            with w.block(f"#pragma unroll\nfor (int k = 0; k < {count}; k++) "):
                w.line(f"take_rows<{self.bf16}, {keep}>({name}[k], {weights}, k);")
        if wait is not None:
            self._await_second(wait)
        place = self.at(plan.tile(product.b), "tiles")
        with w.block(f"#pragma unroll\nfor (int k = 0; k < {count}; k++) "):
            w.line(f"u32 b[{self.pairs(product.b)}][4];")
            self.columns_of(plan.tile(product.b), "b", place, "k")
            for name in names:
                w.line(f"multiply<{self.bf16}>({result}, {name}[k], b);")

    def scale(self, update: Update) -> None:
        """Scale a sum so far."""
        if update.factor is None:
            return
        result, factor = (self.tiles.held[v].name for v in (update.carry.previous, update.factor))
        width = 2 * self.tiles.columns[update.product.columns].count
        with self.each_row(), self.w.block(f"#pragma unroll\nfor (int j = 0; j < {width}; j++) "):
            self.w.line(f"{result}[i][j] *= {factor}[i];")

    def each_row(self) -> AbstractContextManager[object]:
        """A loop over the numbers of a thread's rows."""
        return self.w.block(f"#pragma unroll\nfor (int i = 0; i < {self.tiles.row.count}; i++) ")

    def weights_of(self, computed: Computed) -> str:
        """The array of a computed factor, 0 behind the end of the loop, that may be changed."""
        w, name = self.w, self.w.fresh("p")
        self.tiles.array(name, F32, True, self.axis)
        with self.tiles.both(self.axis):
            value = self.elements.value(computed.value, F32)
            along = self.tiles.columns[self.axis]
            for copy in range(2):
                text = value.at(dict.fromkeys(value.axes, copy))
                if self.ragged:
                    text = f"{self.tiles.inside(along, 'j', copy)} ? {text} : 0.0f"
                w.line(f"{name}[i][j * 2 + {copy}] = {text};")
        return name

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

    # -- what is known of the loop before it is written

    def _partial(self, carry: Carry) -> tuple[str, str | None] | None:
        """The reduction and the factor of a sum that nothing reads before the loop ends.

        Each thread may then sum up what it has alone.
        """
        made = {s.var: s for s in self.loop.body if isinstance(s, Map | Reduce)}
        last = made.get(carry.next)
        if carry.op != "sum" or not isinstance(last, Map) or last.op != "add":
            return None
        sums = [a for a in last.args if isinstance(made.get(str(a)), Reduce)]
        rest = [a for a in last.args if a not in sums]
        if len(sums) != 1 or len(rest) != 1 or not isinstance(reduced := made[str(sums[0])], Reduce):
            return None
        if reduced.op != "sum" or self._reads(carry.next) or self._reads(reduced.var) != 1:
            return None
        if rest[0] == carry.previous:
            return (reduced.var, None) if self._reads(carry.previous) == 1 else None
        scaled = made.get(str(rest[0]))
        if not isinstance(scaled, Map) or scaled.op != "mul" or self._reads(scaled.var) != 1:
            return None
        factor = next((a for a in scaled.args if a != carry.previous), None)
        alone = carry.previous in scaled.args and self._reads(carry.previous) == 1
        return (reduced.var, factor) if alone and isinstance(factor, str) else None

    def _reads(self, var: str) -> int:
        """How often statements of the loop read a value."""
        return sum(operands.count(var) for operands in map(_operands, self.loop.body))

    def _used_twice(self) -> frozenset[str]:
        """Computed floats of rows and columns that more than one reduction or product needs."""
        table, users = self.form.program.definitions, dict[str, set[str]]()
        for statement in self.loop.body:
            if isinstance(statement, Reduce) and isinstance(statement.value, str):
                users.setdefault(statement.value, set()).add(statement.var)
        for update in self.found.updates:
            assert isinstance(update.product.a, Computed), "a cascade sums up what it computes"
            users.setdefault(update.product.a.value, set()).add(update.product.var)
        found = set[str]()
        for var in reversed(list(table)):
            if var not in users:
                continue
            if len(users[var]) > 1 and self._is_tile(var):
                found.add(var)
                users[var] = {var}
            for argument in self.arguments(var):
                users.setdefault(argument, set()).update(users[var])
        return frozenset(found)

    def _is_tile(self, var: str) -> bool:
        definition = self.form.program.definitions[var]
        axes = axes_of(definition)
        return isinstance(definition, Map) and definition.dtype == F32 and self.axis in axes


def _operands(statement: object) -> tuple[Operand, ...]:
    match statement:
        case Map(args=args):
            return args
        case Reduce(value=value):
            return (value,)
        case Loop(body=body) if is_plain(statement):
            return tuple(o for s in body for o in _operands(s))
        case _:
            return ()
