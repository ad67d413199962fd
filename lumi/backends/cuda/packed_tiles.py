"""Products of packed matrices with a vector by tensor cores, 16 rows at once.

As in `packed_ring`; but a thread of a warp takes chunks of two rows, and the other threads of four take the
next chunks of them.  The vector is a number of digits (`digits.cuh`), which tensor cores multiply with the
bytes of quants: a thread's two columns of a result are two digits of its own chunk, since all others are zero
there.  So sums over neighbours are exact, and what threads do by themselves is to unpack quants, four in an
instruction, and to take sums times the coefficients of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lumi.backends.clike.scope import Copy
from lumi.backends.cuda.packed import PackedMatrix, Part
from lumi.backends.cuda.packed_plan import DIGITS, HALF, LANES, Plan, Tiles
from lumi.backends.cuda.packed_ring import PackedRing
from lumi.backends.cuda.scope import Opened, neighbours, single
from lumi.backends.cuda.staged import WARP
from lumi.backends.cuda.unpack import WORD
from lumi.dtype import F32
from lumi.llir import spell
from lumi.llir.kernel import Operand

FRACTION = 29
"""Bits of digits behind the point, where what they stand for is below two."""

PAIRS = DIGITS // 2
"""Products for all digits: each has two columns a chunk."""


class PackedTiles(PackedRing):
    """Writes the function of a kernel whose packed rows pass through a ring to tensor cores."""

    def __init__(self, plan: Tiles, name: str, names: Mapping[str, str] | None = None) -> None:
        super().__init__(plan, name, names)
        self.tiles = plan
        self.copies = plan.chunk // plan.width
        self.words = plan.width // WORD

    # -- chunks

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Let all threads make the vectors, each few neighbours at once."""
        before = self.neighbours, self.sharers, self.turns
        self.neighbours, self.sharers = WORD, self.users
        self.turns = -(-self._chunks() // self.users)
        yield
        self.neighbours, self.sharers, self.turns = before

    # -- vectors

    def hold_vectors(self) -> None:
        """Take all sums of the vector, make its digits, and fetch those that a thread multiplies with."""
        w, found, p = self.w, self.found, self.tiles
        (vector,) = found.vectors
        w.line(f"const int lane = (int)threadIdx.x % {LANES}, high = (int)threadIdx.x % {WARP} / {LANES};")
        w.line(f"const int warp = (int)threadIdx.x % {self.team} / {WARP};")
        w.line(f"u8 *const made = (u8 *)results + {p.behind - p.vector * F32.size};")
        levels = [(self.level(f.terms, found.sums), f) for f in found.sums]
        last = self.level(vector, found.sums)
        with self._together():
            for level in range(max([last, *(k for k, _ in levels)]) + 1):
                self._pass([f for k, f in levels if k == level], level == last)
        with w.block(f"for (int k = threadIdx.x; k < {p.zeros // WORD}; k += {p.users}) "):
            w.line(f"((u32 *)(made + {p.chunks * p.pitch}))[k] = 0;")
        w.line(f"users_wait<{p.users}>();")
        self._fetch()

    @contextmanager
    def held(self, is_last: bool) -> Iterator[None]:
        """Around what a thread takes of the vector: the numbers whose digits it makes in the last pass."""
        if is_last:
            self.w.line(f"float y[{WORD * self.copies}] = {{}};")
        yield
        if is_last:
            numbers = f"{self.copies}, {self.width}, {self.tiles.pitch}"
            self.w.line(f"digits_keep<{numbers}>(y, made, n, n < {self._chunks()});")

    def _hold(self, number: int, vector: tuple[Operand, ...]) -> None:
        """Bring a few neighbours of the vector to where their digits are made."""
        values = [self.expressions.value(v, F32) for v in vector]
        for place, copy in enumerate(self.w.copies(self.unrolled)):
            self.w.line(f"y[{place}] = {' * '.join(v.at(copy) for v in values)};")

    def _fetch(self) -> None:
        """Fetch a thread's columns, zeros but for the chunks of its row, and units and sums of these."""
        w, p, count = self.w, self.tiles, self.copies * self.words
        part = self.copies * self.width
        w.line(f"u32 digits[{p.turns}][{PAIRS}][{count}];")
        w.line(f"float unit[{p.turns}], s[{p.turns}][{self.copies}];")
        with w.block(f"#pragma unroll\nfor (int t = 0; t < {p.turns}; t++) "):
            self._open_chunk()
            w.line(f"const u8 *const record = made + n * {p.pitch};")
            w.line(f"const float *const tail = (const float *)(record + {DIGITS * p.chunk});")
            w.line("unit[t] = tail[0];")
            for copy in range(self.copies):
                w.line(f"s[t][{copy}] = tail[{1 + copy}];")
            mine = f"high / 2 == lane{f' && m < {p.chunks}' if self._is_ragged else ''}"
            own = f"record + high % 2 * {part}"
            w.line(f"const u8 *const from = {mine} ? {own} : made + {p.chunks * p.pitch};")
            for pair in range(PAIRS):
                for k in range(0, count, WORD):
                    place = f"from + {2 * pair * part + k * WORD}"
                    four = w.declare("uint4", f"*(const uint4 *)({place})", "four")
                    for j, field in enumerate("xyzw"):
                        w.line(f"digits[t][{pair}][{k + j}] = {four}.{field};")

    def _open_chunk(self) -> None:
        """Declare the number `m` of a thread's chunk, and `n`: the same, or another where there is none."""
        p, w = self.tiles, self.w
        w.line(f"const int m = (t * {p.warps} + warp) * {LANES} + lane;")
        w.line(f"const int n = {f'least(m, {p.chunks - 1})' if self._is_ragged else 'm'};")

    @property
    def _is_ragged(self) -> bool:
        """Whether some threads have no chunk in the last turn."""
        return self.tiles.chunks % (self.tiles.warps * LANES) > 0

    # -- the threads that fill

    def copy_rows(self) -> None:
        """Copy the rows of a plane to their place in a stage, those that lie apart one by one."""
        before, p = "", self.tiles
        lengths = {(q.row, p.apart(k, q)) for k, q in self.planes if p.apart(k, q) > q.row}
        for length, apart in sorted(lengths):
            header = f"for (int k = 0; k < (int)bytes / {length}; k++) "
            with self.w.block(f"{before}if (size == {length}) {header}"):
                self.w.line(f"filler.copy(to + k * {apart}, from + begin + k * {length}, {length});")
            before = "else "
        self.w.line(f"{before}if (bytes) filler.copy(to, from + begin, bytes);")

    # -- rows

    def use_stage(self) -> None:
        """Multiply the rows of a stage from number `row` on: sums over a warp go to memory."""
        p, w = self.tiles, self.w
        mine = f"turn.slot % {p.teams} == (int)threadIdx.x / {self.team}"
        with w.block(f"if ({mine}) " if p.teams > 1 else ""):
            w.line("stage_await(full + turn.slot, turn.lap);")
            w.line(f"const u8 *const stage = stages + turn.slot * {p.stage};")
            w.line(f"float v[{p.halves}] = {{}};")
            with w.block(f"#pragma unroll\nfor (int t = 0; t < {p.turns}; t++) "):
                self._use_chunk()
            w.line("stage_release(empty + turn.slot);")
            self._keep_rows()
        w.line("turn.next();")

    def _use_chunk(self) -> None:
        """Multiply a chunk of all rows of a stage: quants, then what becomes of their sums."""
        p, w, tiles = self.tiles, self.w, -(-self.tiles.halves // 2)
        self._open_chunk()
        w.line(f"u32 a[{2 * tiles}][{self.copies * self.words}] = {{}};")
        w.line(f"int sums[{tiles}][{self.copies}][{PAIRS}][4] = {{}};")
        for number, matrix in enumerate(self.found.matrices):
            with self._row(number, matrix):
                self._unpack(number, matrix)
        self._multiply_tiles()
        with w.block(f"if (m < {p.chunks}) " if self._is_ragged else ""):
            for number, matrix in enumerate(self.found.matrices):
                with self._row(number, matrix):
                    self._multiply(number, matrix)

    @contextmanager
    def _row(self, number: int, matrix: PackedMatrix) -> Iterator[None]:
        """Open the row of a matrix that a thread takes of each half, at its chunk."""
        w, found = self.w, self.found
        lanes = [a for a in self.over if a not in found.copies]
        names = {a: w.fresh(f"x_{spell.identifier(a)}_") for a in lanes}
        opened = {a: single(name) for a, name in names.items()}
        opened[found.inner] = neighbours(names[found.inner], self.width, self.width)
        for axis in found.copies:
            opened[axis] = Opened(tuple(("0", k) for k in range(found.size([axis]))))
        header = f"#pragma unroll\nfor (int h = 0; h < {self.plan.rows // HALF}; h++) "
        with w.block(header), w.block("", opened):
            w.line(f"const int r = h * {HALF} + high;")
            self.place_chunk(lanes, names)
            self.open_row("row + r")
            self.expressions.forget()
            self._open_planes(number, matrix)
            yield

    def _half(self, number: int) -> str:
        """The number of a half that is open."""
        return f"{number * (self.plan.rows // HALF)} + h"

    def _unpack(self, number: int, matrix: PackedMatrix) -> None:
        """Bring the bytes of a chunk of quants into registers."""
        (part,) = (p for p in matrix.parts if p.quants)
        for place, copy in enumerate(self.w.copies(self.found.copies)):
            for k, text in enumerate(self.unpacking.standing(part.quants[0], copy)):
                self.w.line(f"a[{self._half(number)}][{place * self.words + k}] = {text};")

    def _multiply_tiles(self) -> None:
        """Multiply the bytes of quants with digits, two halves of the rows at once."""
        for tile in range(-(-self.tiles.halves // 2)):
            for copy in range(self.copies):
                for k in range(copy * self.words, (copy + 1) * self.words, 2):
                    rows = ", ".join(f"a[{2 * tile + h}][{k + j}]" for j in range(2) for h in range(2))
                    for pair in range(PAIRS):
                        columns = f"digits[t][{pair}][{k}], digits[t][{pair}][{k + 1}]"
                        self.w.line(f"multiply_bytes(sums[{tile}][{copy}][{pair}], {rows}, {columns});")

    def _sum(self, vector: int, place: int) -> str:
        """The sum of neighbours of the vector, over its unit."""
        return f"s[t][{place}]"

    def _unit(self, vector: int) -> str:
        """What the vector is divided by."""
        return "unit[t]"

    def _target(self, number: int) -> str:
        """Where the products of a row add up."""
        return f"v[{self._half(number)}]"

    def _products(self, name: str, part: Part, number: int, vector: int, copy: Copy, place: int) -> None:
        """Declare the sum of the products of quants and a vector over neighbours, over the vector's unit."""
        half = self._half(number)
        digits = [f"sums[({half}) / 2][{place}][{d // 2}][({half}) % 2 * 2 + {d % 2}]" for d in range(DIGITS)]
        unit = f"0x1p{-FRACTION - self.unpacking.up(part.quants[0], copy)}f"
        self.w.line(f"float {name} = digits_sum({', '.join(digits)}, {unit});")

    def _keep_rows(self) -> None:
        """Bring the sums of rows over the threads of a warp into memory."""
        p, w, count = self.tiles, self.w, len(self.found.matrices)
        with w.block(f"#pragma unroll\nfor (int k = 0; k < {p.halves}; k++) "):
            w.line(f"const float total = across_sum_f32<{LANES}>(v[k]);")
            per = p.rows // HALF
            w.line(f"const int r = k % {per} * {HALF} + high;")
            at = f"((row - first + r) * {count} + k / {per}) * {p.warps} + warp"
            w.line(f"if (lane == 0 && row + r < last) results[{at}] = total;")


def writer(plan: Plan, name: str, names: Mapping[str, str] | None = None) -> PackedRing:
    """What writes a kernel by its plan."""
    return PackedTiles(plan, name, names) if isinstance(plan, Tiles) else PackedRing(plan, name, names)
