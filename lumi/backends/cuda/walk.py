"""Blocks walk along the rows of a cache: weigh them by their products with others, and sum them up.

All positions of all cells are one line, cut into as many even segments as there are blocks, so that all
are busy whatever the number of cells and their length.  The warps of a block take turns of positions, which
each copies ahead into a ring of its own.  What warps, and then blocks, have carried is joined by the
rescaling of the loop itself; the last block that comes to a cell does so and computes the results.
"""

from __future__ import annotations

from collections.abc import Sequence

from lumi.backends.clike.loops import whole
from lumi.backends.clike.scope import Scope
from lumi.backends.cuda import frame
from lumi.backends.cuda.cache import LANES, Rows
from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.scope import Blocking, Value, Writer, neighbours, single
from lumi.backends.cuda.walk_join import Join
from lumi.backends.cuda.walk_lanes import Lanes
from lumi.backends.cuda.walk_line import Line
from lumi.backends.cuda.walk_plan import BLOCKS, Plan
from lumi.backends.cuda.walk_tiles import Tiles
from lumi.backends.cuda.walk_turn import Turns, open_at
from lumi.llir import spell
from lumi.llir.kernel import buffers, dims
from lumi.llir.program import Fold

TOGETHER = 16
"""Turns after which the warps of a block wait for each other: warps that drift apart read in many places at
once, which memory is slower at."""


class Walker:
    """Writes the functions of a walk."""

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan, self.found, self.name = plan, plan.found, name
        self.kernel = plan.found.program.kernel
        names = {b: f"b{number}_{spell.identifier(b)}" for number, b in enumerate(buffers(self.kernel))}
        self.w = Writer(plan.found.program, names, blocking=Blocking(plan.threads))
        self.expressions = Expressions(self.w, _no_fold)
        turns: type[Turns] = Tiles if plan.tensor else Lanes
        self.turns = turns(plan, self.w, self.expressions)
        self.join, self.line = Join(plan, self.w, self.expressions), Line(plan, self.w)

    def write(self) -> str:
        """The CUDA of the kernel and of what its parts do."""
        return "\n".join(
            [self._memory(), self._copy(), self._line(), self._ahead(), self._walk(), self._entry()]
        )

    def _memory(self) -> str:
        """Device memory for what blocks leave to each other: two states each, and who came to a cell."""
        return (
            f"__device__ float {self.name}_left[{2 * BLOCKS} * {self.plan.state}];\n"
            f"__device__ u32 {self.name}_arrived[{BLOCKS}];"
        )

    # -- functions

    def _begin(self) -> None:
        """Begin a function: declare the dims, open the axes that have one position."""
        w, kernel = self.w, self.kernel
        w.scopes = [Scope(0, 1)]
        w.ranges = {a: whole(w, a) for a in kernel.axes}
        w.here.opened |= {a: single("0") for a, e in kernel.axes.items() if e == 1}
        for number, name in enumerate(dims(kernel)):
            w.line(f"const i64 {spell.dim_name(name)} = dims[{number}];")
        w.line(f"const int lane = threadIdx.x % {LANES}, warp = threadIdx.x / {LANES};")

    def _end(self, kind: str, what: str, more: Sequence[str] = ()) -> str:
        """The function that was begun: it does `what`, and takes `more` after what all of them take."""
        parameters = ", ".join([*frame.parameters(self.kernel, self.w), *more])
        lines = [f"  {line}" for line in self.w.here.lines]
        return "\n".join([f"INLINE {kind} {self.name}_{what}({parameters}) {{", *lines, "}"])

    def _given(self) -> str:
        """The arguments of a function that are its caller's own."""
        return ", ".join([*(self.w.buffers[b] for b in buffers(self.kernel)), "dims"])

    # -- copies

    def _copy(self) -> str:
        """The function that asks for all rows of a turn; in place of those past the last come zeros."""
        w, found = self.w, self.found
        self._begin()
        open_at(w, found.cells, self.plan.cell)
        for header, whole_turn in ((f"if (from + {self.plan.turn - 1} <= last) ", True), ("else ", False)):
            with w.block(header):
                for number, rows in enumerate(found.rows):
                    self._pieces(number, rows, whole_turn)
        w.line("(void)warp;")
        return self._end("void", "copy", ["u8 *to", "int cell", "int from", "int last"])

    def _pieces(self, number: int, rows: Rows, whole_turn: bool) -> None:
        """Ask for the pieces of rows, neighbours by neighbouring threads."""
        w, plan = self.w, self.plan
        count = plan.turn * rows.pieces
        turns = -(-count // LANES)
        place, piece = f"(j * {LANES} + lane) / {rows.pieces}", f"(j * {LANES} + lane) % {rows.pieces}"
        if LANES % rows.pieces == 0:
            place, piece = f"j * {LANES // rows.pieces} + lane / {rows.pieces}", f"lane % {rows.pieces}"
        step = spell.step(rows.load.access, self.found.axis)
        if whole_turn and LANES % rows.pieces == 0 == count % LANES and isinstance(step, int):
            self._whole_turn(number, rows, turns, LANES // rows.pieces * step)
            return
        with w.block(f"#pragma unroll{'' if whole_turn else ' 1'}\nfor (int j = 0; j < {turns}; j++) "):
            w.line(f"const int place = {place};")
            pointer = self._piece(rows, "from + place" if whole_turn else "least(from + place, last)", piece)
            to = f"to + {plan.offset(number)} + place * {plan.pitch(rows)} + {piece} * 16"
            size = "16" if whole_turn else "from + place <= last ? 16 : 0"
            inside = f"if (j * {LANES} + lane < {count}) " if count % LANES else ""
            w.line(f"{inside}copy_piece({to}, {pointer}, {size});")

    def _whole_turn(self, number: int, rows: Rows, turns: int, step: int) -> None:
        """Ask for the pieces of rows as many of which as a turn consists of lie `step` elements apart."""
        w, plan = self.w, self.plan
        place, piece = f"lane / {rows.pieces}", f"lane % {rows.pieces}"
        with w.block(""):
            pointer = self._piece(rows, f"from + {place}", piece)
            w.line(f"const auto *const first = {pointer};")
            w.line(
                f"u8 *const at = to + {plan.offset(number)} + {place} * {plan.pitch(rows)} + {piece} * 16;"
            )
            more = LANES // rows.pieces * plan.pitch(rows)
            w.line(f"#pragma unroll\nfor (int j = 0; j < {turns}; j++)")
            w.line(f"  copy_piece(at + j * {more}, first + j * {step}, 16);")

    def _piece(self, rows: Rows, row: str, piece: str) -> str:
        """CUDA for the address of a piece of a row."""
        x = self.w.declare("int", f"{piece} * {rows.piece}", f"x_{spell.identifier(rows.axis)}_")
        opened = {self.found.axis: single(self.w.declare("int", row, "row"))}
        self.w.here.opened |= {**opened, rows.axis: neighbours(x, rows.piece, rows.piece)}
        return self.expressions.pointer(rows.load.access, {}, {})

    def _copies(self, turn: str, slot: str) -> None:
        """Ask for a turn of this warp, if there is one more, as one lot."""
        w, plan = self.w, self.plan
        with w.block(f"if ({turn} < count) "):
            to = f"ring + {slot} * {plan.stage}"
            w.line(f"{self.name}_copy({self._given()}, {to}, cell, mine + {turn} * {plan.unit}, last);")
        w.line("close_lot();")

    def _line(self) -> str:
        """The function that finds the share of a block."""
        self._begin()
        self.line.share()
        return self._end("Share", "line")

    # -- the function before the wait

    def _ahead(self) -> str:
        """The function that copies the first turns of a block; false where they may not lie there yet."""
        w, plan = self.w, self.plan
        self._begin()
        w.line("const int at = line.begin;")
        self.line.segment()
        reach = f"start + {(plan.stages - 1) * plan.unit}"
        w.line(f"if (least(stop, {reach}) > unchanged) return false;")
        w.line(f"u8 *const ring = pool + {plan.ring} + warp * {plan.stages * plan.stage};")
        self._first_copies()
        w.line("(void)lane;")
        w.line("return true;")
        return self._end("bool", "ahead", ["u8 *pool", "const Share &line", "int unchanged"])

    def _first_copies(self) -> None:
        with self.w.block(f"#pragma unroll\nfor (int k = 0; k < {self.plan.stages - 1}; k++) "):
            self._copies("k", "k")

    # -- the function itself

    def _walk(self) -> str:
        w, plan, found = self.w, self.plan, self.found
        self._begin()
        w.line(f"u8 *const ring = pool + {plan.ring} + warp * {plan.stages * plan.stage};")
        with w.block("for (int at = line.begin; at < line.end; ) "):
            self.line.segment()
            self._zeros()
            with w.block("if (!ahead) "):
                self._first_copies()
            w.line("ahead = false;")
            self.turns.share()
            head = (
                self.turns.head if plan.slots == plan.heads else f"least({self.turns.head}, {plan.heads - 1})"
            )
            open_at(w, found.heads, plan.head(head))
            self.turns.begin()
            self._loop()
            w.line("await_lots<0>();")
            w.line("__syncthreads();")
            self.turns.leave()
            w.line("__syncthreads();")
            self._results()
            w.line("at += ended - begun;")
            w.line("if (at < line.end) __syncthreads();")
        return self._end("void", "walk", ["u8 *pool", "const Share &line", "bool ahead"])

    def _zeros(self) -> None:
        """Zeros in stages behind the rows that do not fill their places."""
        plan, w = self.plan, self.w
        for number, rows in enumerate(self.found.rows):
            more = plan.held(rows) - rows.pieces
            if more == 0:
                continue
            count = plan.stages * plan.turn * more
            with w.block(f"for (int n = lane; n < {count}; n += {LANES}) "):
                w.line(f"const int place = n / {more}, piece = {rows.pieces} + n % {more};")
                stage = f"place / {plan.turn} * {plan.stage} + {plan.offset(number)}"
                row = f"place % {plan.turn} * {plan.pitch(rows)} + piece * 16"
                w.line(f"*(uint4 *)(ring + {stage} + {row}) = make_uint4(0, 0, 0, 0);")

    def _loop(self) -> None:
        w, plan = self.w, self.plan
        w.line("int slot = 0;")
        with w.block("for (int k = 0; k < count; k++) ", tile=True):
            w.line(f"const int free = slot ? slot - 1 : {plan.stages - 1};")
            self._copies(f"(k + {plan.stages - 1})", "free")
            w.line(f"await_lots<{plan.stages - 1}>();")
            w.line(f"const u8 *const stage = ring + slot * {plan.stage};")
            w.line(f"slot = slot == {plan.stages - 1} ? 0 : slot + 1;")
            w.line(f"const int from = mine + k * {plan.unit};")
            self.turns.turn()
            w.line(
                f"if (k % {TOGETHER} == {TOGETHER - 1} && k < (stop - start) / {plan.unit}) __syncthreads();"
            )
            w.line("else __syncwarp();")

    # -- results

    def _results(self) -> None:
        """Join what the warps have carried; where other blocks have parts of the cell, the last joins all."""
        w, plan = self.w, self.plan
        states = f"(const float *)(pool + {plan.ring})"
        with w.block("if (ended - begun == line.units) "):
            self.join.write(states, str(plan.state), str(plan.warps), "shared_value", None)
        with w.block("else "):
            w.line("const int low = (cell - line.cell) * line.units;")
            w.line(
                "const int first = line.part_of(low), parts = line.part_of(low + line.units - 1) - first + 1;"
            )
            w.line("const int number = blockIdx.x - line.part + first;")
            w.line("const int behind = line.begin_of(first) < low ? 1 : 0;")
            own = f"(2 * blockIdx.x + (line.part == first ? behind : 0)) * {plan.state}"
            w.line(f"float *const left = {self.name}_left + {own};")
            self.join.write(states, str(plan.state), str(plan.warps), "shared_value", "left")
            with w.block(f"if (comes_last({self.name}_arrived + number, parts)) "):
                w.line(f"const float *const all = {self.name}_left + 2 * number * {plan.state};")
                self.join.write("all", f"{2 * plan.state}", "parts", "written_by_others", None, "behind")

    # -- the kernel

    def _entry(self) -> str:
        w, plan = self.w, self.plan
        places = {b: k for k, b in enumerate(buffers(self.kernel))}
        mask = sum({1 << places[r.load.access.buffer] for r in self.found.rows})
        parameters = ", ".join([*frame.parameters(self.kernel, w), "u32 constant", "int since"])
        return f"""\
extern "C" __global__ void __launch_bounds__({plan.threads}, 1) {self.name}({parameters}) {{
  extern __shared__ __align__({frame.ALIGNMENT}) u8 pool[];
  let_next_start();
  const Share line = {self.name}_line({self._given()});
  const int unchanged = (constant & {mask}) == {mask} ? INT32_MAX : since < 0 ? 0 : (int)dims[since];
  const bool ahead = line.begin < line.end && {self.name}_ahead({self._given()}, pool, line, unchanged);
  wait_for_previous();
  {self.name}_walk({frame.settled(self.kernel, w)}, pool, line, ahead);
}}
"""


def _no_fold(_: Writer, fold: Fold) -> Value:
    raise AssertionError(f"{fold.var} is computed in turn with the walk")
