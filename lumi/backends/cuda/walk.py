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
from lumi.backends.cuda.cache import LANES
from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.scope import Blocking, Value, Writer, single
from lumi.backends.cuda.walk_copy import Boxes, Copies, Pieces
from lumi.backends.cuda.walk_join import Join
from lumi.backends.cuda.walk_lanes import Lanes
from lumi.backends.cuda.walk_line import Line
from lumi.backends.cuda.walk_plan import BLOCKS, Plan
from lumi.backends.cuda.walk_tiles import Tiles
from lumi.backends.cuda.walk_turn import Turns, open_at
from lumi.llir import spell
from lumi.llir.kernel import buffers, dims
from lumi.llir.program import Fold


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
        copies: type[Copies] = Boxes if plan.bulk else Pieces
        self.copies = copies(plan, self.w, self.expressions)
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
        self._begin()
        open_at(self.w, self.found.cells, self.plan.cell)
        self.copies.turn()
        self.w.line("(void)warp;")
        return self._end("void", "copy", [*self.copies.parameters, *self.copies.maps])

    def _copies(self, turn: str, slot: str) -> None:
        """Ask for a turn of this warp, if there is one more, as one lot."""
        w, plan = self.w, self.plan
        with w.block(f"if ({turn} < count) "):
            to, more = f"ring + {slot} * {plan.stage}", [m.format(slot=slot) for m in self.copies.more]
            given = [self._given(), to, "cell", f"mine + {turn} * {plan.unit}", "last", *more, *self._maps()]
            w.line(f"{self.name}_copy({', '.join(given)});")
        self.copies.asked()

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
        self._ring()
        self._first_copies("k")
        w.line("(void)lane;")
        w.line("return true;")
        more = ["u8 *pool", "const Share &line", "int unchanged", *self.copies.maps]
        return self._end("bool", "ahead", more)

    def _maps(self) -> list[str]:
        """The names of how the copy engine sees buffers."""
        return [f"map{number}" for number in range(len(self.copies.maps))]

    def _ring(self) -> None:
        """Declare the stages of this warp, and what tells whether they are full."""
        w, plan = self.w, self.plan
        w.line(f"u8 *const ring = pool + {plan.ring} + warp * {plan.stages * plan.stage};")
        if plan.bulk:
            w.line(f"u64 *const full = (u64 *)(pool + {plan.full}) + warp * {plan.stages};")

    def _first_copies(self, slot: str) -> None:
        with self.w.block(f"#pragma unroll\nfor (int k = 0; k < {self.plan.stages - 1}; k++) "):
            self._copies("k", slot)

    # -- the function itself

    def _walk(self) -> str:
        w, plan, found = self.w, self.plan, self.found
        self._begin()
        self._ring()
        w.line(f"int slot = 0;{' u32 lap = 0;' if plan.bulk else ''}")
        with w.block("for (int at = line.begin; at < line.end; ) "):
            self.line.segment()
            if not plan.bulk:
                self._zeros()
            with w.block("if (!ahead) "):
                self._first_copies(f"((slot + k) % {plan.stages})")
            w.line("ahead = false;")
            self.turns.share()
            head = (
                self.turns.head if plan.slots == plan.heads else f"least({self.turns.head}, {plan.heads - 1})"
            )
            open_at(w, found.heads, plan.head(head))
            self.turns.begin()
            self._loop()
            self.copies.end()
            w.line("__syncthreads();")
            self.turns.leave()
            w.line("__syncthreads();")
            self._results()
            w.line("at += ended - begun;")
            with w.block("if (at < line.end) "):
                self.copies.left()
                w.line("__syncthreads();")
        more = ["u8 *pool", "const Share &line", "bool ahead", *self.copies.maps]
        return self._end("void", "walk", more)

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
        with w.block("for (int k = 0; k < count; k++) ", tile=True):
            w.line(f"const int free = slot ? slot - 1 : {plan.stages - 1};")
            self._copies(f"(k + {plan.stages - 1})", "free")
            self.copies.wait()
            w.line(f"const u8 *const stage = ring + slot * {plan.stage};")
            w.line(f"if (++slot == {plan.stages}) slot = 0{', lap ^= 1' if plan.bulk else ''};")
            w.line(f"const int from = mine + k * {plan.unit};")
            self.turns.turn()
            self.copies.left()
            w.line("__syncwarp();")

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
        maps = [f"const __grid_constant__ TensorMap {name}" for name in self._maps()]
        parameters = ", ".join([*frame.parameters(self.kernel, w), "u32 constant", "int since", *maps])
        given = "".join(f", {name}" for name in self._maps())
        return f"""\
extern "C" __global__ void __launch_bounds__({plan.threads}, 1) {self.name}({parameters}) {{
  extern __shared__ __align__({plan.alignment}) u8 pool[];
  let_next_start();
{self._open()}  const Share line = {self.name}_line({self._given()});
  const int unchanged = (constant & {mask}) == {mask} ? INT32_MAX : since < 0 ? 0 : (int)dims[since];
  const bool ahead =
      line.begin < line.end && {self.name}_ahead({self._given()}, pool, line, unchanged{given});
  wait_for_previous();
  {self.name}_walk({frame.settled(self.kernel, w)}, pool, line, ahead{given});
}}
"""

    def _open(self) -> str:
        """Each warp opens its own slots."""
        plan = self.plan
        if not plan.bulk:
            return ""
        slots = f"(u64 *)(pool + {plan.full}) + threadIdx.x / {LANES} * {plan.stages}"
        return f"""\
  if (threadIdx.x % {LANES} == 0)
    for (int k = 0; k < {plan.stages}; k++) stage_open({slots} + k, 1);
  before_copies();
  __syncwarp();
"""


def _no_fold(_: Writer, fold: Fold) -> Value:
    raise AssertionError(f"{fold.var} is computed in turn with the walk")
