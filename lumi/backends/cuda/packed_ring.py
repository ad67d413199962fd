"""Products of packed matrices with a vector, their planes streamed through a ring in shared memory.

As in `ring`; but a stage is used by one team of warps, the next stage by the next team.  Each thread of a
team takes a chunk of a row: neighbours of the largest plane with everything that shares their bytes.  So
bytes are unpacked a word at a time, and what belongs to a block is unpacked once a chunk.  Where there are
several teams, all threads make the vectors together, in shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from lumi.backends.clike.scope import Copy
from lumi.backends.cuda import operators
from lumi.backends.cuda.packed import PIECE, PackedMatrix, Part
from lumi.backends.cuda.packed_plan import Plan
from lumi.backends.cuda.quants import Bytes
from lumi.backends.cuda.rows import RowWriter
from lumi.backends.cuda.scope import Opened, neighbours, single
from lumi.backends.cuda.staged import WARP
from lumi.backends.cuda.staging import Staging
from lumi.backends.cuda.unpack import PLACES, TINY, WORD, Unpacking
from lumi.dtype import F32
from lumi.llir import spell
from lumi.llir.kernel import Operand
from lumi.llir.program import Fold

RAISED = 120
"""Vectors are multiplied by two to this, so that their products with tiny floats are none."""


class PackedRing(RowWriter):
    """Writes the function of a kernel whose packed matrices pass through a ring."""

    def __init__(self, plan: Plan, name: str, names: Mapping[str, str] | None = None) -> None:
        super().__init__(plan.found, plan, name, names)
        self.plan, self.found = plan, plan.found
        self.expressions: Staging = Staging(
            self.w, self.expressions.fold, self.found.rows, self.found.inner, self.width
        )
        self.unrolled = (*self.found.copies, self.found.inner)
        self.team, self.sharing, self.most = plan.warps * WARP, plan.warps, plan.most
        self.neighbours, self.sharers = plan.width, self.team
        self.planes = [(k, p) for k, m in enumerate(self.found.matrices) for p in m.planes]
        self.fillers = len(self.planes)
        held = Bytes(self.program, self.found.inner)
        self.unpacking = Unpacking(self.expressions, held, self.width, self.expressions.words)
        self.in_bytes = all(m.in_bytes for m in self.found.matrices)

    def fetched(self) -> str:
        """The function that brings the vectors near."""
        with self._together():
            return self.fetch(
                [*(v for vector in self.found.vectors for v in vector), *(f.var for f in self.found.sums)]
            )

    # -- chunks

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Let all threads share a row, however many teams there are; each takes few neighbours at once."""
        before = self.neighbours, self.sharers, self.turns
        if self.plan.teams > 1:
            self.neighbours, self.sharers = WORD, self.users
            self.turns = -(-self._chunks() // self.users)
        yield
        self.neighbours, self.sharers, self.turns = before

    def _chunks(self) -> int:
        """Chunks of a row."""
        return self.length // (self.neighbours * self.found.size(self.found.copies))

    @contextmanager
    def elements(self) -> Iterator[str]:
        """Open the axes of a row at the chunk that a thread takes in turn `t`, unless the row has ended."""
        w, found, width, chunks = self.w, self.found, self.neighbours, self._chunks()
        lanes = [a for a in self.over if a not in found.copies]
        names = {a: w.fresh(f"x_{spell.identifier(a)}_") for a in lanes}
        opened = {a: single(name) for a, name in names.items()}
        opened[found.inner] = neighbours(names[found.inner], width, width)
        for axis in found.copies:
            opened[axis] = Opened(tuple(("0", k) for k in range(found.size([axis]))))
        w.line(f"const int n = t * {self.sharers} + (int)threadIdx.x % {self.sharers};")
        with w.block(f"if (n < {chunks}) " if chunks % self.sharers else "", opened):
            self.place_chunk(lanes, names)
            yield found.inner

    def place_chunk(self, lanes: Sequence[str], names: Mapping[str, str]) -> None:
        """Declare the position along each axis of chunk `n`."""
        w, found, rest = self.w, self.found, "n"
        for axis in reversed(lanes):
            width = self.neighbours if axis == found.inner else 1
            extent = found.size([axis]) // width
            text = rest if axis == lanes[0] else f"{rest} % {extent}"
            w.line(f"const int {names[axis]} = {text}{f' * {width}' if width > 1 else ''};")
            if axis != lanes[0]:
                rest = w.declare("int", f"{rest} / {extent}", "rest")

    def take(self, fold: Fold, name: str) -> None:
        """Let the accumulator of a fold take in the elements of a thread."""
        terms = [self.expressions.value(t, fold.dtype) for t in fold.terms]
        for copy in self.w.copies(self.unrolled):
            texts = [t.at(copy) for t in terms]
            if len(texts) == 2:
                text = operators.multiply_add(texts[0], texts[1], name, fold.dtype)
            else:
                text = operators.combine(fold.op, name, texts[0], fold.dtype)
            self.w.line(f"{name} = {text};")

    # -- the threads that fill

    def fill_rows(self) -> None:
        """Fill stages with the rows from `first` up to `last`: a thread for each plane."""
        w = self.w
        w.line("const u8 *from = 0;")
        w.line("i64 origin = 0;")
        w.line("int size = 0, place = 0;")
        for number, (matrix, plane) in enumerate(self.planes):
            values = f"origin = {plane.first * plane.row}, size = {plane.row}"
            values += f", place = {self.plan.place(matrix, plane)}"
            test = f"if (threadIdx.x == {self.users + number})"
            w.line(f"{test} from = (const u8 *){w.buffers[plane.buffer]}, {values};")
        super().fill_rows()

    def fill_stage(self) -> None:
        """Copy rows from number `row` on into a stage: whole pieces of memory around those of a plane."""
        w = self.w
        w.line("const i64 start = origin + (i64)row * size;")
        w.line(f"const i64 stop = start + (i64)least({self.plan.rows}, last - row) * size;")
        w.line(f"const i64 begin = start / {PIECE} * {PIECE};")
        w.line(f"const u32 bytes = (u32)((stop + {PIECE - 1}) / {PIECE} * {PIECE} - begin);")
        w.line("u8 *const to = filler.claim(bytes) + place;")
        self.copy_rows()

    def copy_rows(self) -> None:
        """Copy the rows of a plane to where they have their place in a stage."""
        self.w.line("if (bytes) filler.copy(to, from + begin, bytes);")

    # -- vectors

    def hold_vectors(self) -> None:
        """Take all sums of the vectors, and fill the registers that hold vectors once theirs are known."""
        found, p = self.found, self.plan
        for number in range(len(found.vectors)):
            self.w.line(f"float x{number}[{p.turns * p.chunk}] = {{}};")
            if p.teams > 1:
                start = (p.behind - (len(found.vectors) - number) * p.vector * F32.size) // F32.size
                self.w.line(f"float *const made{number} = results + {start};")
        operands = [v for vector in found.vectors for v in vector]
        levels = [(self.level(f.terms, found.sums), f) for f in found.sums]
        last = self.level(operands, found.sums)
        with self._together():
            for level in range(max([last, *(k for k, _ in levels)]) + 1):
                self._pass([f for k, f in levels if k == level], level == last)
        if p.teams > 1:
            self.w.line(f"users_wait<{p.users}>();")
            self._take_chunks()
        for number in range(len(found.vectors)):
            self._scale(number)

    def _take_chunks(self) -> None:
        """Fetch the chunks of a thread from vectors in shared memory."""
        w, p = self.w, self.plan
        with w.block(f"#pragma unroll\nfor (int t = 0; t < {p.turns}; t++) "):
            w.line(f"const int n = t * {self.sharers} + (int)threadIdx.x % {self.sharers};")
            with w.block(f"if (n < {self._chunks()}) "):
                for number in range(len(self.found.vectors)):
                    for part in range(p.chunk // WORD):
                        place = f"made{number} + ({part * p.pitch} + n) * {WORD}"
                        four = w.declare("float4", f"*(const float4 *)({place})", "four")
                        for k, field in enumerate("xyzw"):
                            w.line(f"x{number}[t * {p.chunk} + {part * WORD + k}] = {four}.{field};")

    def _scale(self, number: int) -> None:
        """Bring a thread's part of a vector to where its sums are exact, and sum it over neighbours.

        `unit` is the power of two that it is divided by; where bytes are no factors, it stays as it is.
        """
        w, p = self.w, self.plan
        held, groups = p.turns * p.chunk, p.turns * p.chunk // p.width
        w.line(f"float most{number} = 0;")
        every = f"#pragma unroll\nfor (int k = 0; k < {held}; k++) "
        with w.block(every):
            w.line(f"most{number} = fmaxf(most{number}, fabsf(x{number}[k]));")
        w.line(f"const float unit{number} = {f'power_within(most{number})' if self.in_bytes else '1.0f'};")
        w.line(f"float s{number}[{groups}] = {{}};")
        with w.block(every):
            w.line(f"x{number}[k] *= power_inverse(unit{number});")
            w.line(f"s{number}[k / {p.width}] += x{number}[k];")
            if self.in_bytes:
                places = ", ".join(f"0x1p{RAISED - place}f" for place in PLACES)
                w.line(f"constexpr float raised[] = {{{places}}};")
                w.line(f"x{number}[k] *= raised[k % {WORD}];")

    def _pass(self, sums: Sequence[Fold], is_last: bool) -> None:
        """One loop over the chunks of a thread."""
        w, names = self.w, self.accumulators(sums)
        header = f"#pragma unroll\nfor (int t = 0; t < {self.turns}; t++) "
        with w.block(header), self.held(is_last), self.elements():
            for fold, name in zip(sums, names, strict=True):
                self.take(fold, name)
            for number, vector in enumerate(self.found.vectors if is_last else ()):
                self._hold(number, vector)
        for fold, name in zip(sums, names, strict=True):
            self.join(fold, name, self.found.sums.index(fold))

    @contextmanager
    def held(self, is_last: bool) -> Iterator[None]:
        """Around the code of a turn, in the last of which vectors are held."""
        yield

    def _hold(self, number: int, vector: tuple[Operand, ...]) -> None:
        """Keep a chunk of a vector, in registers or where all teams find it."""
        w, p = self.w, self.plan
        values = [self.expressions.value(v, F32) for v in vector]
        texts = [" * ".join(v.at(copy) for v in values) for copy in w.copies(self.unrolled)]
        if p.teams == 1:
            for place, text in enumerate(texts):
                w.line(f"x{number}[t * {p.chunk} + {place}] = {text};")
            return
        parts = p.width // WORD
        for part in range(len(texts) // WORD):
            at = f"made{number} + (({part * parts} + n % {parts}) * {p.pitch} + n / {parts}) * {WORD}"
            four = ", ".join(texts[part * WORD : (part + 1) * WORD])
            w.line(f"*(float4 *)({at}) = make_float4({four});")

    # -- rows

    def use_stage(self) -> None:
        """Multiply the rows of a stage from number `row` on: sums over a warp go to memory."""
        p, w, count = self.plan, self.w, len(self.found.matrices)
        sums = 1 << (p.rows * count - 1).bit_length()
        mine = f"turn.slot % {p.teams} == (int)threadIdx.x / {self.team}"
        with w.block(f"if ({mine}) " if p.teams > 1 else ""):
            w.line("stage_await(full + turn.slot, turn.lap);")
            w.line(f"const u8 *const stage = stages + turn.slot * {p.stage};")
            w.line(f"float v[{sums}] = {{}};")
            with w.block(f"#pragma unroll\nfor (int r = 0; r < {p.rows}; r++) "):
                self.open_row("row + r")
                for number, matrix in enumerate(self.found.matrices):
                    self._open_planes(number, matrix)
                with w.block(f"#pragma unroll\nfor (int t = 0; t < {p.turns}; t++) "), self.elements():
                    for number, matrix in enumerate(self.found.matrices):
                        self._multiply(number, matrix)
            w.line("stage_release(empty + turn.slot);")
            self._keep(sums)
        w.line("turn.next();")

    def _keep(self, sums: int) -> None:
        """Bring the sums of a stage, over all threads of a warp, into memory."""
        p, w, count = self.plan, self.w, len(self.found.matrices)
        w.line(f"const float total = spread_sums<{sums}>(v);")
        w.line(f"const int place = threadIdx.x % {WARP} / {WARP // sums};")
        mine = [f"row + place / {count} < last"]
        if sums > p.rows * count:
            mine.append(f"place < {p.rows * count}")
        if sums < WARP:
            mine.append(f"threadIdx.x % {WARP // sums} == 0")
        at = f"((row - first) * {count} + place) * {p.warps} + threadIdx.x % {self.team} / {WARP}"
        w.line(f"if ({' && '.join(mine)}) results[{at}] = total;")

    def _open_planes(self, number: int, matrix: PackedMatrix) -> None:
        """Declare where a row begins in each plane."""
        for plane in matrix.planes:
            place = f"stage + {self.plan.place(number, plane)} + r * {self.plan.apart(number, plane)}"
            if not plane.is_even:
                place += f" + ((u32)(row + {plane.first}) * {plane.row} & {PIECE - 1})"
            name = self.w.declare("u8 *const", place, "plane")
            for load in matrix.loads:
                if load.access.buffer == plane.buffer:
                    before = plane.first * plane.row // load.access.dtype.size
                    self.expressions.places[load.var] = name, before

    def _multiply(self, number: int, matrix: PackedMatrix) -> None:
        """Add the products of a chunk of a row."""
        target, vector = self._target(number), self.found.vectors.index(matrix.vector)
        for part in matrix.parts:
            if part.quants:
                self._add_quants(part, number, vector, target)
            else:
                self._add_sums(part, vector, target)

    def _target(self, number: int) -> str:
        """Where the products of a row of a matrix add up."""
        return f"v[r * {len(self.found.matrices)} + {number}]"

    def _add_sums(self, part: Part, vector: int, target: str) -> None:
        """Add the sums of the vector, times the coefficients of a part without quants."""
        for place, copy in enumerate(self.w.copies(self.found.copies)):
            self._add(part, copy, vector, self._sum(vector, place), target)

    def _sum(self, vector: int, place: int) -> str:
        """The sum of neighbours of a vector."""
        return f"s{vector}[t * {self.plan.chunk // self.plan.width} + {place}]"

    def _add_quants(self, part: Part, number: int, vector: int, target: str) -> None:
        """Add Σ vector · quants over neighbours, times the coefficients that they share."""
        w = self.w
        for place, copy in enumerate(w.copies(self.found.copies)):
            name = w.fresh("sum")
            self._products(name, part, number, vector, copy, place)
            bias = self.unpacking.held.bias(part.quants[0]) if self.in_bytes else 0
            if bias:
                added = operators.multiply_add(f"{bias}.0f", self._sum(vector, place), name, F32)
                w.line(f"{name} = {added};")
            self._add(part, copy, vector, name, target)

    def _products(self, name: str, part: Part, number: int, vector: int, copy: Copy, place: int) -> None:
        """Declare Σ vector · quants over neighbours, over the unit, the quants without their bias."""
        p, w = self.plan, self.w
        w.line(f"float {name} = 0;")
        for k, text in enumerate(self._quants(part, copy)):
            held = f"x{vector}[t * {p.chunk} + {place * p.width + k}]"
            w.line(f"{name} = {operators.multiply_add(held, text, name, F32)};")
        if self.in_bytes:
            w.line(f"{name} *= 0x1p{TINY - RAISED}f;")

    def _unit(self, vector: int) -> str:
        """What a vector is divided by."""
        return f"unit{vector}"

    def _quants(self, part: Part, copy: Copy) -> list[str]:
        """CUDA for the products of the quants of neighbours."""
        if self.in_bytes:
            return self.unpacking.floats(part.quants[0], copy)
        values = [self.expressions.value(q, F32) for q in part.quants]
        each = ({**copy, self.found.inner: k} for k in range(self.width))
        return [" * ".join(v.at(c) for v in values) for c in each]

    def _add(self, part: Part, copy: Copy, vector: int, text: str, target: str) -> None:
        """Add a sum times the coefficients of a part."""
        values = [self.expressions.value(c, F32) for c in part.coefficients]
        factor = " * ".join([self._unit(vector), *(v.at(copy) for v in values)])
        factor = f"-({factor})" if part.negative else factor
        self.w.line(f"{target} = {operators.multiply_add(factor, text, target, F32)};")
