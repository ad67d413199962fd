"""Turns of a walk whose products threads compute: rows lie across them, in pieces of 16 bytes."""

from __future__ import annotations

from lumi.backends.cuda import ctype, operators
from lumi.backends.cuda.cache import LANES, Rows, Update
from lumi.backends.cuda.scope import Value, neighbours, single
from lumi.backends.cuda.walk_turn import Turns, open_at
from lumi.dtype import F32
from lumi.llir import arithmetic
from lumi.llir.kernel import Reduce


class Lanes(Turns):
    """Every thread has one head and one of the positions of a turn.  Sums of rows stay across threads."""

    @property
    def head(self) -> str:
        """CUDA for the place of a thread's head."""
        return f"lane % {self.plan.slots}"

    @property
    def owner(self) -> str:
        """The first thread of each head."""
        return f"lane < {self.plan.heads}"

    def declare(self) -> None:
        """For each head, the sums of the neighbours that a thread takes."""
        for number, update in enumerate(self.found.updates):
            size = self.plan.heads * self.plan.width(update.rows)
            self.w.line(f"float o{number}[{size}] = {{}};")

    def spread(self, number: int, rows: Rows) -> None:
        """The vector of each head, behind each other."""
        w, plan = self.w, self.plan
        length = plan.vector_row(rows)
        with w.block(f"for (int n = threadIdx.x; n < {plan.heads * length}; n += {plan.threads}) "):
            w.line(f"const int head = n / {length}, place = n % {length};")
            open_at(w, self.found.heads, plan.head("head"))
            x = (
                "place"
                if length == rows.length
                else w.declare("int", f"least(place, {rows.length - 1})", "x")
            )
            w.here.opened[rows.axis] = single(x)
            text = self.one(rows.other)
            if length != rows.length:
                text = f"place < {rows.length} ? {text} : 0.0f"
            w.line(f"((float *)pool)[{plan.vector(number) // 4} + n] = {text};")

    def hold(self, number: int, rows: Rows) -> None:
        """For each head, the neighbours that this thread multiplies."""
        w, plan = self.w, self.plan
        width = plan.width(rows)
        w.line(f"float q{number}[{plan.heads * width}];")
        place = (
            f"{plan.vector(number) // 4} + h * {plan.vector_row(rows)} + lane % {plan.lanes(rows)} * {width}"
        )
        with (
            w.block(f"#pragma unroll\nfor (int h = 0; h < {plan.heads}; h++) "),
            w.block(f"#pragma unroll\nfor (int k = 0; k < {width}; k++) "),
        ):
            w.line(f"q{number}[h * {width} + k] = ((const float *)pool)[{place} + k];")

    def open_positions(self) -> None:
        """One position a thread."""
        w, plan, across = self.w, self.plan, self.plan.across
        at_once = LANES // across
        own = f"lane % {across} / {plan.slots} * {at_once} + lane / {across}"
        w.line(f"const int own = from + {own};")
        w.line("const bool within = own <= last;")
        w.here.opened[self.found.axis] = single(w.declare("int", "least(own, last)", "x_"))

    def _owner_of(self, position: str) -> str:
        """CUDA for the thread that has the first head at a position of the turn."""
        rows, slots = LANES // self.plan.across, self.plan.slots
        if rows == 1:
            return f"{position} * {slots}"
        return f"{position} % {rows} * {self.plan.across} + {position} / {rows} * {slots}"

    def product(self, number: int, rows: Rows) -> Value:
        """Partial sums of a thread, spread so that each thread gets its own head and position."""
        w, plan = self.w, self.plan
        lanes, width, name = plan.lanes(rows), plan.width(rows), w.fresh("p")
        w.line(f"float {name}[{lanes}] = {{}};")
        with w.block(f"#pragma unroll\nfor (int j = 0; j < {plan.turn * lanes // LANES}; j++) "):
            texts = self._elements(number, rows)
            with w.block(f"#pragma unroll\nfor (int h = 0; h < {plan.heads}; h++) "):
                w.line("float a = 0.0f;")
                for k, text in enumerate(texts):
                    held = f"q{number}[h * {width} + {k}]"
                    w.line(f"a = {operators.multiply_add(held, text, 'a', F32)};")
                w.line(f"{name}[j * {plan.slots} + h] = a;")
        return Value(F32, (), {(): w.declare("float", f"spread_sums<{lanes}, {lanes}>({name})")})

    def _elements(self, number: int, rows: Rows) -> list[str]:
        """The elements of row `j` that a thread takes, as values."""
        w, plan, load = self.w, self.plan, rows.load
        lanes, width, dtype = plan.lanes(rows), plan.width(rows), load.access.dtype
        w.line(f"const int place = j * {LANES // lanes} + lane / {lanes};")
        row = f"stage + {plan.offset(number)} + place * {plan.pitch(rows)}"
        w.here.opened |= {self.found.axis: single("0"), rows.axis: neighbours("0", width, width)}
        texts: dict[tuple[int, ...], str] = {}
        for first in range(0, width, rows.piece):
            at = f"{row} + (lane % {lanes} * {width} + {first}) * {dtype.size}"
            raw = w.declare("auto", ctype.wide_load(at, dtype, rows.piece, passing=False), "w")
            for k in range(rows.piece):
                text = ctype.conversion(ctype.part(raw, k, dtype), dtype, load.dtype)
                texts[(first + k,)] = w.declare(ctype.register(load.dtype).type, text)
        w.here.values[load.var] = Value(load.dtype, (rows.axis,), texts)
        value = self.expressions.value(rows.element, F32)
        return [value.at({rows.axis: k}) for k in range(width)]

    def reduced(self, statement: Reduce) -> Value:
        """Over the threads of one head."""
        identity = ctype.literal(float(arithmetic.identity(statement.op, F32)), F32)
        own = f"within ? {self.one(statement.value)} : {identity}"
        text = self.w.declare("float", f"above_{statement.op}_f32<{self.plan.slots}>({own})")
        return Value(F32, (), {(): text})

    def add_rows(self, number: int, update: Update) -> None:
        """By weights that other threads have."""
        w, plan, rows = self.w, self.plan, update.rows
        lanes, width = plan.lanes(rows), plan.width(rows)
        own = w.declare("float", f"within ? {self.one(rows.other)} : 0.0f")
        if update.factor is not None:
            factor = self.one(update.factor)
            with w.block(f"#pragma unroll\nfor (int h = 0; h < {plan.heads}; h++) "):
                w.line(f"const float f = __shfl_sync(FULL_WARP, {factor}, h);")
                with w.block(f"#pragma unroll\nfor (int k = 0; k < {width}; k++) "):
                    w.line(f"o{number}[h * {width} + k] = o{number}[h * {width} + k] * f;")
        with w.block(f"#pragma unroll\nfor (int j = 0; j < {plan.turn * lanes // LANES}; j++) "):
            texts = self._elements(len(self.found.products) + number, rows)
            owner = w.declare("int", self._owner_of("place"), "owner")
            with w.block(f"#pragma unroll\nfor (int h = 0; h < {plan.heads}; h++) "):
                w.line(f"const float p = __shfl_sync(FULL_WARP, {own}, {owner} + h);")
                for k, text in enumerate(texts):
                    target = f"o{number}[h * {width} + {k}]"
                    w.line(f"{target} = {operators.multiply_add('p', text, target, F32)};")

    def leave_sums(self, number: int, update: Update, to: str) -> None:
        """Sums over the threads that took the same pieces of different rows."""
        w, plan, rows = self.w, self.plan, update.rows
        lanes, width = plan.lanes(rows), plan.width(rows)
        size = plan.heads * width
        w.line(f"#pragma unroll\nfor (int k = 0; k < {size}; k++)")
        w.line(f"  o{number}[k] = above_sum_f32<{lanes}>(o{number}[k]);")
        w.line(f"float *const to{number} = {to} + lane * {width};")
        with (
            w.block(f"if (lane < {lanes}) "),
            w.block(f"#pragma unroll\nfor (int k = 0; k < {size}; k++) "),
        ):
            inside = (
                f"if (lane * {width} + k % {width} < {rows.length}) " if lanes * width > rows.length else ""
            )
            place = f"to{number}[k / {width} * {plan.columns} + k % {width}]"
            w.line(f"{inside}{place} = o{number}[k];")
