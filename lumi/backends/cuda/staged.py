"""What the functions of kernels have in common whose operands pass through stages in shared memory.

One thread of a block fills stages; all others, its users, each take neighbours of a long line of
elements, turn by turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from lumi.backends.clike.scope import Scope
from lumi.backends.cuda import ctype, frame, operators
from lumi.backends.cuda.expression import Expressions, chunk
from lumi.backends.cuda.scope import Blocking, Value, Writer, neighbours, single
from lumi.backends.cuda.storing import store_all, stored
from lumi.backends.cuda.values import folds_below, loads_below, long, size
from lumi.llir import arithmetic, spell
from lumi.llir.kernel import Kernel, Load, Operand, Store, buffers, dims
from lumi.llir.program import Fold, Program

WARP = 32

ROOM = 224 << 10
"""Bytes of shared memory that a block takes at most."""

STATES = 256
"""Bytes of the states of stages."""

HEAD = 1024
"""Bytes before the stages: their states, then a value a warp for each fold over the line."""

FOLDS = 8
"""Folds over the line that a kernel may have."""


class Numbers(Protocol):
    """How the users of a block share a line: so many, each taking `width` neighbours, in `turns`."""

    @property
    def users(self) -> int:
        """Threads."""
        ...

    @property
    def width(self) -> int:
        """Elements that a thread takes at once."""
        ...

    @property
    def turns(self) -> int:
        """How often all threads together take elements until the line is done."""
        ...


class Staged:
    """Writes the functions of one kernel; `over` are the axes of the line, outermost first.

    A block takes `part` elements of a line, from number `first` to `last`, as CUDA: all of them, unless
    several blocks share a line.  A stage is filled by `fillers` threads, which
    stand behind the users, and used by `sharing` warps.
    """

    def __init__(
        self,
        program: Program,
        over: tuple[str, ...],
        numbers: Numbers,
        name: str,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """`names` are what the buffers of the launch are called in CUDA, in its order."""
        self.program, self.kernel, self.over, self.name = program, program.kernel, over, name
        self.users, self.width, self.turns = numbers.users, numbers.width, numbers.turns
        self.length = self.part = size(self.kernel, over)
        self.first, self.last = "", str(self.part)
        self.fillers, self.sharing = 1, self.users // WARP
        called = names or frame.names(buffers(self.kernel))
        self.w = Writer(program, called, blocking=Blocking(self.users))
        self.expressions = Expressions(self.w, _no_fold)

    # -- functions

    def begin(self) -> None:
        """Begin a function: declare the dims, open the axes that have one position."""
        self.w.scopes = [Scope(0)]
        self.w.here.opened |= {a: single("0") for a, e in self.kernel.axes.items() if e == 1}
        for number, name in enumerate(dims(self.kernel)):
            self.w.line(f"const i64 {spell.dim_name(name)} = dims[{number}];")

    def end(self, what: str, more: Sequence[str]) -> str:
        """The function that was begun: it does `what`, and takes `more` after what all of them take."""
        parameters = ", ".join([*frame.parameters(self.kernel, self.w), *more])
        lines = [f"  {line}" for line in self.w.here.lines]
        return "\n".join([f"INLINE void {self.name}_{what}({parameters}) {{", *lines, "}"])

    def entry(
        self,
        stages: int,
        stage: int,
        constant: Sequence[Load],
        beside: Sequence[Kernel] = (),
    ) -> str:
        """The kernel itself, whose stages are filled from `constant` loads, before the wait where it may.

        It has the buffers of kernels `beside` its own, too.
        """
        called = self.w.buffers
        read = {load.access.buffer for load in constant}
        mask = sum(1 << k for k, b in enumerate(called) if b in read)
        given = ", ".join([*called.values(), "dims"])
        parameters = ", ".join([*frame.declared((self.kernel, *beside), called), "u32 constant"])
        settled = ", ".join([*(f"settled({name})" for name in called.values()), "dims"])
        opened = f"stage_open(full + k, {self.fillers}), stage_open(empty + k, {self.sharing})"
        return f"""\
extern "C" __global__ void __launch_bounds__({self.users + WARP}) {self.name}({parameters}) {{
  extern __shared__ __align__(128) u8 pool[];
  u64 *const full = (u64 *)pool, *const empty = full + {stages};
  float *const parts = (float *)(pool + {STATES});
  u8 *const stages = pool + {HEAD};
  float *const results = (float *)(stages + {stages * stage});
  if (threadIdx.x == {self.users}) {{
    for (int k = 0; k < {stages}; k++) {opened};
    before_copies();
  }}
  __syncthreads();
  let_next_start();
  if (threadIdx.x >= {self.users}) {{
    if (threadIdx.x > {self.users + self.fillers - 1}) return;
    if ((constant & {mask}) != {mask}) {{
      wait_for_previous();
      before_copies();
    }}
    {self.name}_fill({given}, stages, full, empty);
    return;
  }}
  {self.name}_fetch({given}, constant);
  wait_for_previous();
  {self.name}_use({settled}, stages, full, empty, parts, results);
}}
"""

    def fetch(self, operands: Sequence[Operand]) -> str:
        """The function that brings what never changes of some values over the line near before the wait."""
        self.begin()
        places = {b: k for k, b in enumerate(self.w.buffers)}
        lines = [x for x in self.loads_along(operands) if not x.data]
        if not lines:
            return self.end("fetch", ["u32 constant"])
        with self.w.block(f"for (int t = 0; t < {self.turns}; t++) "), self.elements():
            for load in lines:
                pointer = self.expressions.pointer(load.access, {}, {})
                self.w.line(f"if (constant >> {places[load.access.buffer]} & 1) fetch_early({pointer});")
        return self.end("fetch", ["u32 constant"])

    def loads_along(self, operands: Sequence[Operand]) -> list[Load]:
        """The loads of some values that extend along the line alone."""
        found = ((x, set(long(self.kernel, x.axes))) for x in loads_below(self.program, operands))
        return [load for load, axes in found if axes and axes <= set(self.over)]

    # -- elements of the line

    @contextmanager
    def elements(self) -> Iterator[str]:
        """Open the axes of the line at what a thread takes in turn `t`, unless the line has ended.

        Yields the innermost axis, along which it takes neighbours.
        """
        w = self.w
        before = f"{self.first} + " if self.first else ""
        w.line(f"const int n = {before}(t * {self.users} + (int)threadIdx.x) * {self.width};")
        names = {a: w.fresh(f"x_{spell.identifier(a)}_") for a in self.over}
        opened = {a: single(name) for a, name in names.items()}
        inner = self.over[-1]
        opened[inner] = neighbours(names[inner], self.width, self.width)
        ragged = self.part % (self.users * self.width) != 0
        with w.block(f"if (n < {self.last}) " if ragged else "", opened):
            self.place("n", names)
            yield inner

    def place(self, number: str, names: dict[str, str]) -> None:
        """Declare the position along each axis of a point, by its number in the order of the axes."""
        rest, (outermost, *_) = number, names
        for axis in reversed(names):
            text = rest if axis == outermost else f"{rest} % {self.extent(axis)}"
            self.w.line(f"const int {names[axis]} = {text};")
            if axis != outermost:
                rest = self.w.declare("int", f"{rest} / {self.extent(axis)}", "rest")

    def extent(self, axis: str) -> str:
        """CUDA for the number of positions of an axis."""
        return self.w.extent(self.kernel.axes[axis])

    # -- folds over the line

    def level(self, operands: Sequence[Operand], folds: Sequence[Fold]) -> int:
        """How many passes over the line, for `folds`, must come before values can be computed."""
        needed = folds_below(self.program, operands)
        return max((1 + self.level(f.terms, folds) for f in folds if f.var in needed), default=0)

    def take(self, fold: Fold, name: str) -> None:
        """Let the accumulator of a fold take in the elements of a thread."""
        terms = [self.expressions.value(t, fold.dtype) for t in fold.terms]
        for copy in self.w.copies((self.over[-1],)):
            texts = [t.at(copy) for t in terms]
            if len(texts) == 2:
                self.w.line(f"{name} = {operators.multiply_add(texts[0], texts[1], name, fold.dtype)};")
            else:
                self.w.line(f"{name} = {operators.combine(fold.op, name, texts[0], fold.dtype)};")

    def accumulators(self, folds: Sequence[Fold]) -> list[str]:
        """Declare a variable for each fold, with the identity of its operator."""
        names = [self.w.fresh("s") for _ in folds]
        for fold, name in zip(folds, names, strict=True):
            start = ctype.literal(float(arithmetic.identity(fold.op, fold.dtype)), fold.dtype)
            self.w.line(f"float {name} = {start};")
        return names

    def join(self, fold: Fold, name: str, place: int) -> None:
        """Combine the accumulators of all users into the fold's value; `place` tells its part of memory."""
        part = f"parts + {place * (self.users // WARP)}"
        text = ctype.rounded(f"users_{fold.op}<{self.users}>({name}, {part})", fold.dtype)
        self.w.here.values[fold.var] = Value(fold.dtype, (), {(): self.w.declare("float", text)})

    # -- memory

    def staged(self, load: Load, place: str) -> Value:
        """The elements of a load that a thread takes from a stage, `place` being the first of the line."""
        w, dtype = self.w, load.access.dtype
        per, texts = chunk(dtype, self.width), dict[tuple[int, ...], str]()
        for first in range(0, self.width, per):
            at = f"{place} + (n + {first}) * {dtype.size}" if first else f"{place} + n * {dtype.size}"
            raw = w.declare("auto", ctype.wide_load(at, dtype, per, passing=False), "w")
            for k in range(per):
                text = ctype.conversion(ctype.part(raw, k, dtype), dtype, load.dtype)
                texts[(first + k,)] = w.declare(ctype.register(load.dtype).type, text)
        return Value(load.dtype, (self.over[-1],), texts)

    def loaded(self, load: Load) -> str:
        """CUDA for one element of a load."""
        text = ctype.load(self.expressions.pointer(load.access, {}, {}), load.access.dtype)
        return ctype.conversion(text, load.access.dtype, load.dtype)

    def store(self, store: Store) -> None:
        """Store one value, or the neighbours that a thread has taken."""
        store_all(self.expressions, store, stored(self.expressions, store))


def _no_fold(_: Writer, fold: Fold) -> Value:
    raise AssertionError(f"{fold.var} is computed in turn with the line")
