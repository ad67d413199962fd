"""Turns of a walk whose products tensor cores compute, as exactly as f32.

Rows are bf16.  A f32 that they are multiplied by is three bf16, its parts, which fill columns of tiles
besides each other: products of parts are exact, and the sums of a tile are f32.  Column n of tile r is
part (8 r + n) / slots of head n % slots.
"""

from __future__ import annotations

from lumi.backends.cuda import ctype, operators
from lumi.backends.cuda.cache import LANES, Rows, Update
from lumi.backends.cuda.scope import Opened, Value
from lumi.backends.cuda.walk_plan import TILE
from lumi.backends.cuda.walk_turn import Turns, open_at
from lumi.dtype import F32
from lumi.llir import arithmetic
from lumi.llir.kernel import Reduce

OWN = (0, 1, 8, 9)
"""Positions of a turn that a thread has, behind twice its place among the four threads of a column."""


class Tiles(Turns):
    """A thread has the head of its column, and four of the positions of a turn.

    Sums of rows lie turned: a thread has two columns of each tile.
    """

    @property
    def head(self) -> str:
        """CUDA for the place of a thread's head."""
        return f"lane / 4 % {self.plan.slots}"

    @property
    def owner(self) -> str:
        """The first thread of each head."""
        return f"lane % 4 == 0 && lane < {4 * self.plan.heads}"

    def _part(self, group: int) -> str:
        """CUDA for the part that a thread's column of a tile stands for."""
        slots = self.plan.slots
        return str(group) if slots == TILE else f"({TILE * group} + lane / 4) / {slots}"

    def declare(self) -> None:
        """Sums of 16 elements by 8 columns, a tile behind the other."""
        for number, update in enumerate(self.found.updates):
            self.w.line(f"float o{number}[{self.plan.tiles(update.rows)}][4] = {{}};")

    def spread(self, number: int, rows: Rows) -> None:
        """Tiles of parts, dealt out to warps."""
        w, plan = self.w, self.plan
        with w.block(f"for (int m = warp; m < {plan.tiles(rows)}; m += {plan.warps}) "):
            w.line(f"const int head = least({self.head}, {plan.heads - 1});")
            open_at(w, self.found.heads, plan.head("head"))
            places = [f"m * 16 + lane % 4 * 2 + {offset}" for offset in OWN]
            names = [w.declare("int", f"least({p}, {rows.length - 1})", "x") for p in places]
            w.here.opened[rows.axis] = Opened(tuple((name, 0) for name in names))
            value = self.expressions.value(rows.other, F32)
            texts = [value.at({rows.axis: k}) for k in range(len(OWN))]
            if plan.held(rows) > rows.pieces:
                texts = [f"({p} < {rows.length} ? {t} : 0.0f)" for p, t in zip(places, texts, strict=True)]
            own = [w.declare("float", text) for text in texts]
            to = f"(u32 *)(pool + {plan.vector(number)}) + (m * {LANES} + lane) * {plan.words}"
            w.line(f"u32 *const to = {to};")
            for group in range(plan.groups):
                for half in range(2):
                    parts = f"parts_of({own[2 * half]}, {own[2 * half + 1]}, {self._part(group)})"
                    w.line(f"to[{2 * group + half}] = {parts};")

    def hold(self, number: int, rows: Rows) -> None:
        """The tiles of parts as registers, unless they are too many."""
        w, plan = self.w, self.plan
        count = plan.tiles(rows) * plan.words
        start = f"(const u32 *)(pool + {plan.vector(number)}) + lane * {plan.words}"
        w.line(f"const u32 *const of{number} = {start};")
        if not plan.rereads(rows):
            w.line(f"u32 q{number}[{count}];")
            w.line(f"#pragma unroll\nfor (int k = 0; k < {count}; k++)")
            place = f"k / {plan.words} * {LANES * plan.words} + k % {plan.words}"
            w.line(f"  q{number}[k] = of{number}[{place}];")

    def _word(self, number: int, word: int) -> str:
        """A word of tile `m` of the parts of vectors."""
        words = self.plan.words
        if self.plan.rereads(self.found.products[number]):
            return f"of{number}[m * {LANES * words} + {word}]"
        return f"q{number}[m * {words} + {word}]"

    def open_positions(self) -> None:
        """Four positions a thread."""
        w = self.w
        places = []
        for k, offset in enumerate(OWN):
            w.line(f"const int own{k} = from + lane % 4 * 2 + {offset};")
            places.append((w.declare("int", f"least(own{k}, last)", "x_"), 0))
        w.here.opened[self.found.axis] = Opened(tuple(places))

    def _place(self, number: int, rows: Rows) -> str:
        """CUDA for the row of the first two pieces that a thread names when tiles are read."""
        row = f"(lane / 16 * 8 + lane % 8) * {self.plan.pitch(rows)}"
        return f"stage + {self.plan.offset(number)} + {row} + lane / 8 % 2 * 16"

    def product(self, number: int, rows: Rows) -> Value:
        """Tiles of columns by positions; the parts of a head are added up over its columns."""
        w, plan, name = self.w, self.plan, self.w.fresh("s")
        w.line(f"float {name}[2][4] = {{}};")
        place = w.declare("u8 *", self._place(number, rows), "rows")
        with w.block(f"#pragma unroll\nfor (int m = 0; m < {self.plan.tiles(rows)}; m++) "):
            w.line(f"u32 t[4];\nread_tiles(t, {place} + m * 32);")
            for group in range(0, plan.groups, 2):
                first, second = (self._vector(number, g) for g in (group, group + 1))
                tile = f"{first[0]}, {second[0]}, {first[1]}, {second[1]}"
                for half in range(2):
                    rest = f"t[{2 * half}], t[{2 * half + 1}]"
                    w.line(f"multiply_tiles({name}[{half}], {tile}, {rest});")
        texts: dict[tuple[int, ...], str] = {}
        for k in range(len(OWN)):
            sums = f"{name}[{k // 2}][{k % 2}] + {name}[{k // 2}][{2 + k % 2}]"
            text = f"above_sum_f32<{4 * plan.slots}>({sums})" if plan.slots < TILE else sums
            texts[(k,)] = w.declare("float", text)
        return Value(F32, (self.found.axis,), texts)

    def _vector(self, number: int, group: int) -> tuple[str, str]:
        """The two words of a tile of parts that a thread has; of no tile, zeros."""
        if group >= self.plan.groups:
            return "0", "0"
        return self._word(number, 2 * group), self._word(number, 2 * group + 1)

    def _own(self, operand: str | float, other: str) -> list[str]:
        """A value at each position of a thread, or `other` past the last one."""
        value = self.expressions.value(operand, F32)
        return [f"(own{k} <= last ? {value.at({self.found.axis: k})} : {other})" for k in range(len(OWN))]

    def reduced(self, statement: Reduce) -> Value:
        """Over the positions of a thread, then over the threads of a column."""
        identity = ctype.literal(float(arithmetic.identity(statement.op, F32)), F32)
        a, b, c, d = self._own(statement.value, identity)
        first, second = (operators.combine(statement.op, *pair, F32) for pair in ((a, b), (c, d)))
        mine = operators.combine(statement.op, first, second, F32)
        return Value(F32, (), {(): self.w.declare("float", f"across_{statement.op}_f32<4>({mine})")})

    def add_rows(self, number: int, update: Update) -> None:
        """Tiles of elements by columns: weights have the places that products have come to."""
        w, plan, rows = self.w, self.plan, update.rows
        own = [w.declare("float", text) for text in self._own(rows.other, "0.0f")]
        if update.factor is not None:
            self._scale(number, update)
        for group in range(plan.groups):
            part = self._part(group)
            for half in range(2):
                a, b = own[2 * half], own[2 * half + 1]
                w.line(f"const u32 w{number}_{group}_{half} = parts_of({a}, {b}, {part});")
        place = w.declare("u8 *", self._place(len(self.found.products) + number, rows), "rows")
        with w.block(f"#pragma unroll\nfor (int m = 0; m < {self.plan.tiles(rows)}; m++) "):
            w.line(f"u32 t[4];\nread_turned(t, {place} + m * 32);")
            for group in range(plan.groups):
                words = f"w{number}_{group}_0, w{number}_{group}_1"
                w.line(f"multiply_tiles(o{number}[m], t[0], t[1], t[2], t[3], {words});")

    def _scale(self, number: int, update: Update) -> None:
        w = self.w
        assert update.factor is not None
        factor = self.one(update.factor)
        w.line(f"const float f0 = __shfl_sync(FULL_WARP, {factor}, lane % 4 * 8);")
        w.line(f"const float f1 = __shfl_sync(FULL_WARP, {factor}, lane % 4 * 8 + 4);")
        with w.block(f"#pragma unroll\nfor (int m = 0; m < {self.plan.tiles(update.rows)}; m++) "):
            for k in range(4):
                w.line(f"o{number}[m][{k}] = o{number}[m][{k}] * f{k % 2};")

    def leave_sums(self, number: int, update: Update, to: str) -> None:
        """The parts of a head are added up over its columns."""
        w, plan, rows = self.w, self.plan, update.rows
        columns = range(1 if plan.slots == 1 else 2)
        every = f"#pragma unroll\nfor (int m = 0; m < {plan.tiles(rows)}; m++) "
        with w.block(every), w.block("#pragma unroll\nfor (int k = 0; k < 4; k += 2) "):
            for k in columns:
                text = (
                    f"o{number}[m][k + {k}]"
                    if len(columns) > 1
                    else f"(o{number}[m][k] + o{number}[m][k + 1])"
                )
                w.line(f"o{number}[m][k + {k}] = {self._over_columns(text)};")
        w.line(f"float *const to{number} = {to} + lane % 4 * {2 * plan.columns} + lane / 4;")
        for k in columns:
            with w.block(f"if (lane % 4 * 2 + {k} < {plan.heads}) "), w.block(every):
                for half in range(2):
                    place = f"to{number}[{k * plan.columns + TILE * half} + m * 16]"
                    inside = (
                        f"if (m * 16 + {TILE * half} < {rows.length}) " if rows.length % 16 and half else ""
                    )
                    w.line(f"{inside}{place} = o{number}[m][{2 * half + k}];")

    def _over_columns(self, text: str) -> str:
        """The sum over the columns of the same head that other threads have."""
        for step in (2, 1):
            if 2 * step >= self.plan.slots:
                text = f"sum_across<{step}>({text})"
        return text
