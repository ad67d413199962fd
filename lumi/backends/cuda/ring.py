"""Products of stored matrices with a vector, their rows streamed through a ring in shared memory.

One thread of a block copies rows, far ahead of the others, which hold the vector in registers.  What never
changes is copied before the kernel waits for the one before it, so that memory stays busy from one
kernel to the next.  One block runs on a multiprocessor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumi.backends.cuda import ctype, operators
from lumi.backends.cuda.matrix import VECTOR, Matrices, Matrix
from lumi.backends.cuda.scope import Value, single
from lumi.backends.cuda.staged import FOLDS, HEAD, ROOM, WARP, Staged
from lumi.backends.cuda.values import loads_below, long, stores
from lumi.dtype import F32
from lumi.llir import spell
from lumi.llir.kernel import Operand
from lumi.llir.program import Fold

CELLS = 132
"""Pieces that the rows are cut into: one for each multiprocessor of the GPU that this is made for."""

LEAST = 116 << 10
"""Bytes that it takes at least, so that no second block fits beside it."""

HELD = 128
"""Elements of vectors that a thread may hold in registers."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of a ring: warps that use it, rows in a stage, stages, stages on their way at once."""

    found: Matrices
    warps: int
    rows: int
    stages: int
    flight: int

    @property
    def users(self) -> int:
        """Threads that use the ring."""
        return self.warps * WARP

    @property
    def width(self) -> int:
        """Elements that a thread takes at once."""
        return VECTOR // self.found.dtype.size

    @property
    def turns(self) -> int:
        """How often all threads together take elements until a row is done."""
        return -(-self.found.length // (self.users * self.width))

    @property
    def row(self) -> int:
        """Bytes of a row."""
        return self.found.length * self.found.dtype.size

    @property
    def stage(self) -> int:
        """Bytes of a stage."""
        return self.rows * self.row * len(self.found.matrices)

    @property
    def cells(self) -> int:
        """Pieces that the rows are cut into."""
        return min(CELLS, self.found.count)

    @property
    def results(self) -> int:
        """Bytes of the results of a piece, one for each warp."""
        most = -(-self.found.count // self.cells)
        return most * len(self.found.matrices) * self.warps * F32.size

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return max(HEAD + self.stages * self.stage + self.results, LEAST)


def plan(found: Matrices, options: dict[str, int]) -> Plan | None:
    """A ring of about `stages` stages of `stage` KiB; None where the kernel's rows are too long for one."""
    most = options.get("stage", 32) << 10
    row = found.length * found.dtype.size * len(found.matrices)
    rows = 1
    while 2 * rows * row <= most and 2 * rows * len(found.matrices) <= 8:
        rows *= 2
    for warps in (8, 16):
        made = Plan(found, warps, rows, options.get("stages", 6), options.get("flight", 2))
        held = made.turns * made.width * len(found.vectors)
        stages = min(made.stages, (ROOM - HEAD - made.results) // made.stage)
        if held <= HELD and stages >= 2 and len(found.sums) <= FOLDS:
            return Plan(found, warps, rows, stages, min(made.flight, stages))
    return None


class Ring(Staged):
    """Writes the function of a kernel whose matrices pass through a ring."""

    def __init__(self, plan: Plan, name: str) -> None:
        super().__init__(plan.found.program, plan.found.over, plan, name)
        self.plan, self.found = plan, plan.found
        results = stores(self.program)
        self.single = [s for s in results if not long(self.kernel, s.axes)]
        self.of_rows = [s for s in results if long(self.kernel, s.axes)]
        self.late = loads_below(self.program, [s.value for s in self.of_rows], folds=False)

    def write(self) -> str:
        """The CUDA of the function and of what its parts do."""
        p, found = self.plan, self.found
        fetched = self.fetch([*found.vectors, *(f.var for f in found.sums)])
        entry = self.entry(p.stages, p.stage, [m.load for m in found.matrices])
        return "\n".join([self._fill(), fetched, self._use(), entry])

    # -- the thread that fills

    def _fill(self) -> str:
        p, w, matrices = self.plan, self.w, self.found.matrices
        self.begin()
        w.line(f"Filler<{p.stages}, {p.stage}, {p.flight}> filler(stages, full, empty);")
        with w.block(f"for (int cell = blockIdx.x; cell < {p.cells}; cell += gridDim.x) "):
            self._rows_of_cell()
            with w.block(f"for (int row = first; row < last; row += {p.rows}) "):
                w.line(f"const u32 bytes = least({p.rows}, last - row) * {p.row};")
                w.line(f"u8 *const to = filler.claim({len(matrices)} * bytes);")
                for number, matrix in enumerate(matrices):
                    place = f"to + {number * p.rows * p.row}" if number else "to"
                    start = f"{self._first(matrix)} + (i64)row * {self.length}"
                    w.line(f"filler.copy({place}, {start}, bytes);")
                w.line("filler.turn.next();")
        return self.end("fill", ["u8 *stages", "u64 *full", "u64 *empty"])

    def _first(self, matrix: Matrix) -> str:
        """CUDA for the address of the first row."""
        buffer = self.w.buffers[matrix.load.access.buffer]
        return f"{buffer} + {matrix.offset}" if matrix.offset else buffer

    def _rows_of_cell(self) -> None:
        count, cells = self.found.count, self.plan.cells
        self.w.line(f"const int first = (int)((i64)cell * {count} / {cells});")
        self.w.line(f"const int last = (int)((i64)(cell + 1) * {count} / {cells});")

    # -- the threads that use

    def _use(self) -> str:
        p, w = self.plan, self.w
        self.begin()
        for load in self.late:
            if not long(self.kernel, load.axes):
                self.expressions.value(load.var, load.dtype)
        self._vectors()
        self._single_values()
        w.line(f"Turn<{p.stages}> turn;")
        with w.block(f"for (int cell = blockIdx.x; cell < {p.cells}; cell += gridDim.x) "):
            self._rows_of_cell()
            early = self._early_loads()
            with w.block(f"for (int row = first; row < last; row += {p.rows}) "):
                self._stage()
            w.line(f"users_wait<{p.users}>();")
            with w.block(f"for (int k = threadIdx.x; k < last - first; k += {p.users}) "):
                self._results(early)
            w.line(f"users_wait<{p.users}>();")
        return self.end("use", ["u8 *stages", "u64 *full", "u64 *empty", "float *parts", "float *results"])

    def _vectors(self) -> None:
        """Take all sums of the vectors, and fill the registers that hold vectors once theirs are known."""
        found = self.found
        for number in range(len(found.vectors)):
            self.w.line(f"float x{number}[{self.turns * self.width}] = {{}};")
        sums = [(self.level(f.terms, found.sums), f) for f in found.sums]
        last = self.level(found.vectors, found.sums)
        for level in range(max([last, *(k for k, _ in sums)]) + 1):
            self._pass([f for k, f in sums if k == level], found.vectors if level == last else ())

    def _pass(self, sums: Sequence[Fold], vectors: Sequence[Operand]) -> None:
        """One loop over the elements of the vector."""
        w, names = self.w, self.accumulators(sums)
        dtype = self.found.matrices[0].fold.dtype
        with w.block(f"#pragma unroll\nfor (int t = 0; t < {self.turns}; t++) "), self.elements() as inner:
            for fold, name in zip(sums, names, strict=True):
                self.take(fold, name)
            for number, vector in enumerate(vectors):
                value = self.expressions.value(vector, dtype)
                for copy in w.copies((inner,)):
                    w.line(f"x{number}[t * {self.width} + {copy[inner]}] = {value.at(copy)};")
        for fold, name in zip(sums, names, strict=True):
            self.join(fold, name, self.found.sums.index(fold))

    # -- rows

    def _stage(self) -> None:
        """Use the rows of a stage: sums over a warp go to memory."""
        p, w, matrices = self.plan, self.w, self.plan.found.matrices
        count = len(matrices)
        sums = 1 << (p.rows * count - 1).bit_length()
        w.line("stage_await(full + turn.slot, turn.lap);")
        w.line(f"const u8 *const stage = stages + turn.slot * {p.stage};")
        w.line(f"float v[{sums}] = {{}};")
        with (
            w.block(f"#pragma unroll\nfor (int r = 0; r < {p.rows}; r++) "),
            w.block(f"#pragma unroll\nfor (int t = 0; t < {p.turns}; t++) "),
            self.elements() as inner,
        ):
            for number, matrix in enumerate(matrices):
                self._multiply(matrix, number, inner)
        w.line("stage_release(empty + turn.slot);")
        w.line("turn.next();")
        w.line(f"const float total = spread_sums<{sums}>(v);")
        w.line(f"const int place = threadIdx.x % {WARP} / {WARP // sums};")
        mine = [f"row + place / {count} < last"]
        if sums > p.rows * count:
            mine.append(f"place < {p.rows * count}")
        if sums < WARP:
            mine.append(f"threadIdx.x % {WARP // sums} == 0")
        at = f"((row - first) * {count} + place) * {p.warps} + threadIdx.x / {WARP}"
        w.line(f"if ({' && '.join(mine)}) results[{at}] = total;")

    def _multiply(self, matrix: Matrix, number: int, inner: str) -> None:
        """Add the products of what a thread takes of a row."""
        p, w, load = self.plan, self.w, matrix.load
        count = len(p.found.matrices)
        place = f"stage + ({number * p.rows} + r) * {p.row}"
        w.here.values[load.var] = self.staged(load, place)
        value = self.expressions.value(matrix.element, matrix.fold.dtype)
        x = p.found.vectors.index(matrix.vector)
        target = f"v[r * {count} + {number}]"
        for copy in w.copies((inner,)):
            held = f"x{x}[t * {p.width} + {copy[inner]}]"
            w.line(f"{target} = {operators.multiply_add(held, value.at(copy), target, matrix.fold.dtype)};")

    # -- results

    def _single_values(self) -> None:
        """Store what is one value, in one thread of all."""
        if self.single:
            with self.w.block("if (blockIdx.x == 0 && threadIdx.x == 0) "):
                for store in self.single:
                    self.store(store)

    def _early_loads(self) -> dict[str, str]:
        """Load what a thread's first result needs long before it is ready; the variables by value."""
        w = self.w
        loads = [x for x in self.late if long(self.kernel, x.axes) and not x.data]
        names = {x.var: w.fresh("e") for x in loads}
        for load in loads:
            w.line(f"{ctype.register(load.dtype).type} {names[load.var]} = 0;")
        if loads:
            with w.block("if (first + (int)threadIdx.x < last) "):
                self._open_row("first + (int)threadIdx.x")
                for load in loads:
                    w.line(f"{names[load.var]} = {self.loaded(load)};")
        return names

    def _open_row(self, row: str) -> None:
        names = {a: self.w.fresh(f"x_{spell.identifier(a)}_") for a in self.found.rows}
        self.place(self.w.declare("int", row, "row"), names)
        self.w.here.opened |= {a: single(name) for a, name in names.items()}

    def _results(self, early: Mapping[str, str]) -> None:
        """Store what is made of the products of a row, in one thread."""
        p, w, found = self.plan, self.w, self.plan.found
        self._open_row("first + k")
        for number, matrix in enumerate(found.matrices):
            place = f"results + (k * {len(found.matrices)} + {number}) * {p.warps}"
            text = ctype.rounded(f"total_of<{p.warps}>({place})", matrix.fold.dtype)
            w.here.values[matrix.fold.var] = Value(matrix.fold.dtype, (), {(): w.declare("float", text)})
        once = -(-found.count // p.cells) <= p.users
        for load in self.late:
            if load.var in early:
                name = early[load.var]
                text = name if once else f"k < {p.users} ? {name} : {self.loaded(load)}"
                kind = ctype.register(load.dtype).type
                w.here.values[load.var] = Value(load.dtype, (), {(): w.declare(kind, text)})
        for store in self.of_rows:
            self.store(store)
