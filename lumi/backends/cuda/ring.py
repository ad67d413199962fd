"""Products of stored matrices with a vector, their rows streamed through a ring in shared memory.

One thread of a block copies rows, far ahead of the others, which hold the vector in registers.  What never
changes is copied before the kernel waits for the one before it, so that memory stays busy from one
kernel to the next.  One block runs on a multiprocessor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from lumi.backends.clike.roots import stored_type
from lumi.backends.clike.scope import Scope
from lumi.backends.cuda import ctype, frame, operators
from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.matrix import VECTOR, Matrices, Matrix
from lumi.backends.cuda.scope import Blocking, Value, Writer, neighbours, single
from lumi.dtype import F32
from lumi.llir import arithmetic, spell
from lumi.llir.kernel import Load, Operand, Store, buffers, dims
from lumi.llir.program import Fold, Nest

WARP = 32

CELLS = 132
"""Pieces that the rows are cut into: one for each multiprocessor of the GPU that this is made for."""

ROOM = 224 << 10
"""Bytes of shared memory that a block takes at most."""

LEAST = 116 << 10
"""Bytes that it takes at least, so that no second block fits beside it."""

STATES = 256
"""Bytes of the states of stages."""

HEAD = 1024
"""Bytes before the stages: their states, then a value a warp for each sum of the vector."""

SUMS = 8
"""Sums of the vector that a kernel may have."""

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
        if held <= HELD and stages >= 2 and len(found.sums) <= SUMS:
            return Plan(found, warps, rows, stages, min(made.flight, stages))
    return None


@dataclass(slots=True)
class Ring:
    """Writes the function of a kernel whose matrices pass through a ring."""

    plan: Plan
    name: str
    w: Writer = field(init=False)
    expressions: Expressions = field(init=False)

    def __post_init__(self) -> None:
        kernel = self.plan.found.program.kernel
        names = {b: f"b{number}_{spell.identifier(b)}" for number, b in enumerate(buffers(kernel))}
        self.w = Writer(self.plan.found.program, names, blocking=Blocking(self.plan.users))
        self.expressions = Expressions(self.w, _no_fold)

    def write(self) -> str:
        """The CUDA of the function and of what its parts do."""
        return "\n".join([self._fill(), self._fetch(), self._use(), self._function(), ""])

    # -- the thread that fills

    def _fill(self) -> str:
        p, kernel = self.plan, self.plan.found.program.kernel
        w = self.w
        w.scopes = [Scope(0)]
        template = f"<{p.stages}, {p.stage}, {p.flight}>"
        w.line(f"Filler{template} filler(stages, full, empty);")
        with w.block(f"for (int cell = blockIdx.x; cell < {p.cells}; cell += gridDim.x) "):
            self._rows_of_cell()
            with w.block(f"for (int row = first; row < last; row += {p.rows}) "):
                w.line(f"const u32 bytes = least({p.rows}, last - row) * {p.row};")
                w.line(f"u8 *const to = filler.claim({len(p.found.matrices)} * bytes);")
                for number, matrix in enumerate(p.found.matrices):
                    place = f"to + {number * p.rows * p.row}" if number else "to"
                    w.line(
                        f"filler.copy({place}, {self._first(matrix)} + (i64)row * {p.found.length}, bytes);"
                    )
                w.line("filler.turn.next();")
        parameters = [*frame.parameters(kernel, w), "u8 *stages", "u64 *full", "u64 *empty"]
        return self._helper("fill", parameters)

    def _first(self, matrix: Matrix) -> str:
        """CUDA for the address of the first row."""
        buffer = self.w.buffers[matrix.load.access.buffer]
        return f"{buffer} + {matrix.offset}" if matrix.offset else buffer

    def _rows_of_cell(self) -> None:
        count, cells = self.plan.found.count, self.plan.cells
        self.w.line(f"const int first = (int)((i64)cell * {count} / {cells});")
        self.w.line(f"const int last = (int)((i64)(cell + 1) * {count} / {cells});")

    # -- the threads that use

    def _use(self) -> str:
        p, w = self.plan, self.w
        kernel = p.found.program.kernel
        w.scopes = [Scope(0)]
        w.here.opened |= {a: single("0") for a, e in kernel.axes.items() if e == 1}
        for number, name in enumerate(dims(kernel)):
            w.line(f"const i64 {spell.dim_name(name)} = dims[{number}];")
        self._load_single_values()
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
        parameters = [*frame.parameters(kernel, w), "u8 *stages", "u64 *full", "u64 *empty"]
        return self._helper("use", [*parameters, "float *parts", "float *results"])

    def _helper(self, what: str, parameters: list[str]) -> str:
        lines = [f"  {line}" for line in self.w.here.lines]
        return "\n".join([f"INLINE void {self.name}_{what}({', '.join(parameters)}) {{", *lines, "}"])

    def _vectors(self) -> None:
        """Take all sums of the vectors, and fill the registers that hold vectors once theirs are known."""
        p, w, found = self.plan, self.w, self.plan.found
        for number in range(len(found.vectors)):
            w.line(f"float x{number}[{p.turns * p.width}] = {{}};")
        sums = [(self._level(f.terms), f) for f in found.sums]
        last = self._level(found.vectors)
        for level in range(max([last, *(k for k, _ in sums)]) + 1):
            self._pass([f for k, f in sums if k == level], found.vectors if level == last else ())

    def _level(self, operands: Sequence[Operand]) -> int:
        """How many passes over the vector must come before values can be computed."""
        found = self.plan.found
        needed = found.folds_of(operands)
        return max((1 + self._level(f.terms) for f in found.sums if f.var in needed), default=0)

    def _pass(self, sums: list[Fold], vectors: Sequence[Operand]) -> None:
        """One loop over the elements of the vector."""
        p, w, found = self.plan, self.w, self.plan.found
        names = [w.fresh("s") for _ in sums]
        for fold, name in zip(sums, names, strict=True):
            start = ctype.literal(float(arithmetic.identity(fold.op, fold.dtype)), fold.dtype)
            w.line(f"float {name} = {start};")
        with w.block(f"#pragma unroll\nfor (int t = 0; t < {p.turns}; t++) "), self._elements() as inner:
            for fold, name in zip(sums, names, strict=True):
                self._take(fold, name)
            for number, vector in enumerate(vectors):
                value = self.expressions.value(vector, found.matrices[0].fold.dtype)
                for copy in w.copies((inner,)):
                    w.line(f"x{number}[t * {p.width} + {copy[inner]}] = {value.at(copy)};")
        for fold, name in zip(sums, names, strict=True):
            place = found.sums.index(fold) * p.warps
            text = f"users_{fold.op}<{p.users}>({name}, parts + {place})"
            text = w.declare("float", ctype.rounded(text, fold.dtype))
            w.here.values[fold.var] = Value(fold.dtype, (), {(): text})

    def _take(self, fold: Fold, name: str) -> None:
        """Let a sum take in the elements of a thread."""
        terms = [self.expressions.value(t, fold.dtype) for t in fold.terms]
        for copy in self.w.copies((self.plan.found.over[-1],)):
            texts = [t.at(copy) for t in terms]
            if len(texts) == 2:
                self.w.line(f"{name} = {operators.multiply_add(texts[0], texts[1], name, fold.dtype)};")
            else:
                self.w.line(f"{name} = {operators.combine(fold.op, name, texts[0], fold.dtype)};")

    @contextmanager
    def _elements(self) -> Iterator[str]:
        """Open the axes of a row at what a thread takes in turn `t`, if that is not past the end of the row.

        Yields the innermost axis, along which it takes neighbours.
        """
        p, w, found = self.plan, self.w, self.plan.found
        w.line(f"const int n = (t * {p.users} + (int)threadIdx.x) * {p.width};")
        names = {a: w.fresh(f"x_{spell.identifier(a)}_") for a in found.over}
        opened = {a: single(name) for a, name in names.items()}
        inner = found.over[-1]
        opened[inner] = neighbours(names[inner], p.width, p.width)
        ragged = found.length % (p.users * p.width) != 0
        with w.block(f"if (n < {found.length}) " if ragged else "", opened):
            self._place("n", names)
            yield inner

    def _place(self, number: str, names: dict[str, str]) -> None:
        """Declare the position along each axis of a point, by its number in the order of the axes."""
        rest, (outermost, *_) = number, names
        for axis in reversed(names):
            size = self.plan.found.size([axis])
            self.w.line(f"const int {names[axis]} = {rest if axis == outermost else f'{rest} % {size}'};")
            if axis != outermost:
                rest = self.w.declare("int", f"{rest} / {size}", "rest")

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
            self._elements() as inner,
        ):
            for number, matrix in enumerate(matrices):
                self._multiply(matrix, number, inner)
        w.line("__syncwarp();")
        w.line(f"if (threadIdx.x % {WARP} == 0) stage_release(empty + turn.slot);")
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
        count, dtype = len(p.found.matrices), p.found.dtype
        place = f"stage + ({number * p.rows} + r) * {p.row} + n * {dtype.size}"
        raw = w.declare("auto", ctype.wide_load(place, dtype, p.width, passing=False), "w")
        texts: dict[tuple[int, ...], str] = {}
        for k in range(p.width):
            text = ctype.conversion(ctype.part(raw, k, dtype), dtype, load.dtype)
            texts[(k,)] = w.declare(ctype.register(load.dtype).type, text)
        w.here.values[load.var] = Value(load.dtype, (inner,), texts)
        value = self.expressions.value(matrix.element, matrix.fold.dtype)
        x = p.found.vectors.index(matrix.vector)
        target = f"v[r * {count} + {number}]"
        for copy in w.copies((inner,)):
            held = f"x{x}[t * {p.width} + {copy[inner]}]"
            w.line(f"{target} = {operators.multiply_add(held, value.at(copy), target, matrix.fold.dtype)};")

    # -- results

    def _stores(self, of_rows: bool) -> list[Store]:
        found = self.plan.found
        items = [i for i in found.program.items if isinstance(i, Nest)]
        stores = [r for i in items for r in i.roots if isinstance(r, Store)]
        return [s for s in stores if bool(set(s.axes) & set(found.rows)) == of_rows]

    def _single_values(self) -> None:
        """Store what is one value, in one thread of all."""
        stores = self._stores(of_rows=False)
        if stores:
            with self.w.block("if (blockIdx.x == 0 && threadIdx.x == 0) "):
                for store in stores:
                    self._store(store)

    def _late_loads(self) -> list[Load]:
        """What the results of rows are made of besides products."""
        return list(self.plan.found.loads_of([s.value for s in self._stores(of_rows=True)]))

    def _load_single_values(self) -> None:
        """Load early what the results of all rows need."""
        for load in self._late_loads():
            if not set(load.axes) & set(self.plan.found.rows):
                self.expressions.value(load.var, load.dtype)

    def _early_loads(self) -> dict[str, str]:
        """Load what a thread's first result needs long before it is ready; the variables by value."""
        w, rows = self.w, self.plan.found.rows
        loads = [x for x in self._late_loads() if set(x.axes) & set(rows) and not x.data]
        names = {x.var: w.fresh("e") for x in loads}
        for load in loads:
            w.line(f"{ctype.register(load.dtype).type} {names[load.var]} = 0;")
        if loads:
            with w.block("if (first + (int)threadIdx.x < last) "):
                self._open_row("first + (int)threadIdx.x")
                for load in loads:
                    w.line(f"{names[load.var]} = {self._loaded(load)};")
        return names

    def _open_row(self, row: str) -> None:
        names = {a: self.w.fresh(f"x_{spell.identifier(a)}_") for a in self.plan.found.rows}
        self._place(self.w.declare("int", row, "row"), names)
        self.w.here.opened |= {a: single(name) for a, name in names.items()}

    def _loaded(self, load: Load) -> str:
        text = ctype.load(self.expressions.pointer(load.access, {}, {}), load.access.dtype)
        return ctype.conversion(text, load.access.dtype, load.dtype)

    def _results(self, early: Mapping[str, str]) -> None:
        """Store what is made of the products of a row, in one thread."""
        p, w, found = self.plan, self.w, self.plan.found
        self._open_row("first + k")
        for number, matrix in enumerate(found.matrices):
            place = f"results + (k * {len(found.matrices)} + {number}) * {p.warps}"
            text = ctype.rounded(f"total_of<{p.warps}>({place})", matrix.fold.dtype)
            w.here.values[matrix.fold.var] = Value(matrix.fold.dtype, (), {(): w.declare("float", text)})
        once = -(-found.count // p.cells) <= p.users
        for load in self._late_loads():
            if load.var in early:
                name = early[load.var]
                text = name if once else f"k < {p.users} ? {name} : {self._loaded(load)}"
                kind = ctype.register(load.dtype).type
                w.here.values[load.var] = Value(load.dtype, (), {(): w.declare(kind, text)})
        for store in self._stores(of_rows=True):
            self._store(store)

    def _store(self, store: Store) -> None:
        value = self.expressions.value(store.value, stored_type(self.plan.found.program, store))
        text = ctype.conversion(value.texts[()], value.dtype, store.access.dtype)
        pointer = self.expressions.pointer(store.access, {}, {})
        self.w.line(ctype.store(pointer, text, store.access.dtype))

    # -- the function

    def _fetch(self) -> str:
        """The function that brings what never changes of the vectors near before the wait."""
        w, found = self.w, self.plan.found
        kernel = found.program.kernel
        w.scopes = [Scope(0)]
        w.here.opened |= {a: single("0") for a, e in kernel.axes.items() if e == 1}
        for number, name in enumerate(dims(kernel)):
            w.line(f"const i64 {spell.dim_name(name)} = dims[{number}];")
        places = {b: k for k, b in enumerate(buffers(kernel))}
        loads = found.loads_of([*found.vectors, *(t for f in found.sums for t in f.terms)])
        with w.block(f"for (int t = 0; t < {self.plan.turns}; t++) "), self._elements():
            for load in loads:
                if not load.data:
                    pointer = self.expressions.pointer(load.access, {}, {})
                    w.line(f"if (constant >> {places[load.access.buffer]} & 1) fetch_early({pointer});")
        return self._helper("fetch", [*frame.parameters(kernel, w), "u32 constant"])

    def _function(self) -> str:
        p, kernel, w = self.plan, self.plan.found.program.kernel, self.w
        read = {m.load.access.buffer for m in p.found.matrices}
        mask = sum(1 << k for k, b in enumerate(buffers(kernel)) if b in read)
        given = ", ".join([*(w.buffers[b] for b in buffers(kernel)), "dims"])
        parameters = ", ".join([*frame.parameters(kernel, w), "u32 constant"])
        return f"""\
extern "C" __global__ void __launch_bounds__({p.users + WARP}) {self.name}({parameters}) {{
  extern __shared__ __align__(128) u8 pool[];
  u64 *const full = (u64 *)pool, *const empty = full + {p.stages};
  float *const parts = (float *)(pool + {STATES});
  u8 *const stages = pool + {HEAD};
  float *const results = (float *)(stages + {p.stages * p.stage});
  if (threadIdx.x == {p.users}) {{
    for (int k = 0; k < {p.stages}; k++) stage_open(full + k, 1), stage_open(empty + k, {p.warps});
    before_copies();
  }}
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= {p.users}) {{
    if (threadIdx.x > {p.users}) return;
    if ((constant & {mask}) != {mask}) {{
      wait_for_previous();
      before_copies();
    }}
    {self.name}_fill({given}, stages, full, empty);
    return;
  }}
  {self.name}_fetch({given}, constant);
  wait_for_previous();
  {self.name}_use({frame.settled(kernel, w)}, stages, full, empty, parts, results);
}}"""


def _no_fold(_: Writer, fold: Fold) -> Value:
    raise AssertionError(f"{fold.var} is computed in turn with the rows")
