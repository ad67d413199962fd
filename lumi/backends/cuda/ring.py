"""Products of stored matrices with a vector, their rows streamed through a ring in shared memory.

One thread of a block copies rows, far ahead of the others, which hold the vector in registers.  What never
changes is copied before the kernel waits for the one before it, so that memory stays busy from one
kernel to the next.  One block runs on a multiprocessor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumi.backends.cuda import operators
from lumi.backends.cuda.matrix import VECTOR, Matrices, Matrix
from lumi.backends.cuda.rows import CELLS, HELD, LEAST, RowWriter
from lumi.backends.cuda.staged import FOLDS, HEAD, ROOM, WARP
from lumi.dtype import F32
from lumi.llir.kernel import Operand
from lumi.llir.program import Fold


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of a ring: warps that use it, rows in a stage, stages, stages on their way at once.

    Where several kernels share the ring, a stage has the bytes `slot`, and `total` are the rows of all.
    """

    found: Matrices
    warps: int
    rows: int
    stages: int
    flight: int
    slot: int = 0
    total: int = 0

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
        return max(self.slot, self.rows * self.row * len(self.found.matrices))

    @property
    def cells(self) -> int:
        """Pieces that the rows are cut into."""
        return min(CELLS, self.total or self.found.count)

    @property
    def most(self) -> int:
        """Rows of a piece at most."""
        return -(-(self.total or self.found.count) // self.cells)

    @property
    def results(self) -> int:
        """Bytes of the results of a piece, one for each warp."""
        return self.most * len(self.found.matrices) * self.warps * F32.size

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


class Ring(RowWriter):
    """Writes the function of a kernel whose matrices pass through a ring."""

    def __init__(self, plan: Plan, name: str, names: Mapping[str, str] | None = None) -> None:
        super().__init__(plan.found, plan, name, names)
        self.plan, self.found, self.most = plan, plan.found, plan.most

    def fetched(self) -> str:
        """The function that brings the vectors near."""
        return self.fetch([*self.found.vectors, *(f.var for f in self.found.sums)])

    def fill_stage(self) -> None:
        """Copy rows from number `row` on into a stage."""
        p, w, matrices = self.plan, self.w, self.found.matrices
        w.line(f"const u32 bytes = least({p.rows}, last - row) * {p.row};")
        w.line(f"u8 *const to = filler.claim({len(matrices)} * bytes);")
        for number, matrix in enumerate(matrices):
            place = f"to + {number * p.rows * p.row}" if number else "to"
            start = f"{self._first(matrix)} + (i64)row * {self.length}"
            w.line(f"filler.copy({place}, {start}, bytes);")

    def _first(self, matrix: Matrix) -> str:
        """CUDA for the address of the first row."""
        buffer = self.w.buffers[matrix.load.access.buffer]
        return f"{buffer} + {matrix.offset}" if matrix.offset else buffer

    # -- the threads that use

    def hold_vectors(self) -> None:
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

    def use_stage(self) -> None:
        """Multiply the rows of a stage from number `row` on: sums over a warp go to memory."""
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
