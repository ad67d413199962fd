"""Reductions of long lines, which go from memory straight into registers and stay there.

A block takes one line, or one of the blocks of a cluster its part of one; how many lines are under way at
once, so that memory is never idle, is a matter of how many blocks fit a multiprocessor.  So that two blocks
with long lines fit, threads may put some of their elements aside, into shared memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from lumi.backends.cuda import ctype, frame
from lumi.backends.cuda.expression import chunk
from lumi.backends.cuda.held import Held, registers
from lumi.backends.cuda.line import Lines
from lumi.backends.cuda.matrix import VECTOR
from lumi.backends.cuda.scope import Value
from lumi.backends.cuda.staged import FOLDS, ROOM, WARP
from lumi.llir.kernel import Load, buffers
from lumi.llir.program import Fold

MOST = 48
"""Registers in which a thread may hold elements: more leave too few blocks on a multiprocessor."""

ENOUGH = 32
"""Such registers of a thread beyond which several blocks may share a line, or some of it be put aside."""

EIGHTHS = 8
"""The whole of which the share that is put aside is counted in parts."""

REGISTERS, THREADS, SHARED = 1 << 16, 2048, 228 << 10
"""Of a multiprocessor."""

RESERVED = 2 << 10
"""Bytes of shared memory that a block takes beside those in which it holds elements."""

OWN, EACH = 16, 1.25
"""Registers of a thread: those it has anyway, and for each in which it holds elements."""

GRANULE = 8
"""Registers that a thread is given at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A line is shared by `users` threads of each of `blocks` blocks.

    The elements of the last `aside` turns lie in shared memory.  With `stay` lines stay in the last cache as
    long as they can: results leave it early and evenly then, and none delays the lines to come.
    """

    found: Lines
    users: int
    blocks: int
    aside: int = 0
    stay: bool = False

    @property
    def width(self) -> int:
        """Elements that a thread takes at once."""
        return self.found.width

    @property
    def part(self) -> int:
        """Elements of a line that a block takes."""
        return self.found.length // self.blocks

    @property
    def turns(self) -> int:
        """How often all threads of a block together take elements until its part is done."""
        return -(-self.part // (self.users * self.width))

    @property
    def held(self) -> float:
        """Registers in which a thread holds elements."""
        streams, held = (
            sum(registers(self.found, x) for x in s) for s in (self.found.streams, self.found.held)
        )
        return self.width * ((self.turns - self.aside) * streams + self.turns * held)

    @property
    def shared(self) -> int:
        """Bytes of shared memory in which a block holds elements."""
        return self.aside * self.users * self.width * sum(s.access.dtype.size for s in self.found.streams)


def beside(users: int, held: float, shared: float) -> int:
    """Blocks that a multiprocessor should run side by side, whose threads hold lines in so many registers.

    A block holds `shared` bytes besides.
    """
    each = -(-(OWN + EACH * held) // GRANULE) * GRANULE
    fitting = THREADS // users, int(REGISTERS // (users * each)), int(SHARED // (shared + RESERVED))
    return max(min(fitting), 1)


def plan(found: Lines, options: dict[str, int]) -> Plan | None:
    """So many threads and blocks a line; None where it is too long, or too short, for them.

    A thread has several loads under way at once, or it is not worth its while.
    """
    alone = Plan(found, options.get("users", 256), 1, stay=bool(options.get("stay", 0)))
    aside = alone.turns * options.get("aside", 0) // EIGHTHS
    made = replace(alone, blocks=options.get("blocks", 1), aside=aside)
    if found.length % (made.blocks * made.width) or made.part <= made.users * made.width:
        return None
    if made.held > MOST or made.users * (OWN + EACH * made.held) > REGISTERS or len(found.folds) > FOLDS:
        return None
    if made.shared > ROOM or (options.get("aside", 0) and not aside):
        return None
    return made if made == alone or alone.held > ENOUGH else None


class DirectWriter(Held):
    """Writes the function of a kernel over lines."""

    def __init__(self, plan: Plan, name: str) -> None:
        super().__init__(plan.found, plan, name)
        self.plan, self.blocks, self.values = plan, plan.blocks, plan.users // WARP * plan.blocks
        self.kept = plan.turns - plan.aside
        if plan.blocks > 1:
            self.part, self.first, self.last = plan.part, "first", "last"
            self.chosen += " && first == 0"

    def begin(self) -> None:
        """Begin a function: also find this block's part of every line."""
        super().begin()
        if self.blocks > 1:
            self.w.line(f"const int first = (int)cluster_rank() * {self.part}, last = first + {self.part};")

    def write(self) -> str:
        """The CUDA of the function and of what its parts do."""
        return "\n".join([self.fetch([x.var for x in self.found.held]), self._use(), self._entry()])

    def _use(self) -> str:
        w, found = self.w, self.found
        self.begin()
        self.hold()
        place, step = ("blockIdx.x", "gridDim.x") if self.blocks == 1 else ("cluster_number()", "clusters()")
        self._places_aside()
        with w.block(f"#pragma unroll 1\nfor (int line = {place}; line < {self.lines()}; line += {step}) "):
            if len(found.folds) == 1:  # else a barrier lies between two uses of the same memory
                wait = f"users_wait<{self.users}>();" if self.blocks == 1 else "cluster_wait();"
                w.line(f"if (line != {place}) {wait}")
            self.open_line()
            self.load_single()
            if self.plan.stay:
                w.line("const u64 policy = read_to_stay();")
            if self.plan.aside:
                self._put_aside()
            self.arrays("x", found.streams, self.kept)
            self.take_in("x", found.streams, self.kept)
            if self.plan.aside:
                w.line("await_lots<0>();")
            self.compute()
        return self.end("use", ["float *parts", *(["u8 *pool"] if self.plan.aside else [])])

    # -- elements aside

    def _places_aside(self) -> None:
        """Declare where each stream lies in shared memory: pieces of threads side by side, turn by turn."""
        first = 0
        for number, load in enumerate(self.found.streams if self.plan.aside else ()):
            self.w.line(f"uint4 *const own{number} = (uint4 *)pool + {first} + threadIdx.x;")
            first += self.plan.aside * self.users * self._pieces(load)

    def _pieces(self, load: Load) -> int:
        """Pieces of a stream that a thread copies in a turn."""
        return self.width * load.access.dtype.size // VECTOR

    def _aside(self, number: int, load: Load, k: int) -> str:
        """CUDA for where piece `k` of a turn of a stream lies in shared memory."""
        return f"own{number} + ((t - {self.kept}) * {self._pieces(load)} + {k}) * {self.users}"

    def _put_aside(self) -> None:
        """Copy the elements of the last turns into shared memory, past the registers."""
        with self.turns_of(range(self.kept, self.turns)):
            for number, load in enumerate(self.found.streams):
                pointer = self.expressions.pointer(load.access, {}, {})
                for k, place in enumerate(self.places(load, pointer, 1)):
                    self.w.line(f"copy_piece({self._aside(number, load, k)}, {place}, {VECTOR});")
        self.w.line("close_lot();")

    def stretches(self) -> Iterator[AbstractContextManager[None]]:
        """Loops that together run over the elements of a thread."""
        yield self.stretch(range(self.kept), lambda k, load, inner: self.held(f"x{k}", load, inner))
        if self.plan.aside:
            yield self.stretch(range(self.kept, self.turns), self._element_aside)

    def _element_aside(self, number: int, load: Load, inner: str) -> Value:
        """What a thread has put aside of a stream in a turn."""
        dtype, texts = load.access.dtype, dict[tuple[int, ...], str]()
        per = chunk(dtype, self.width)
        for k in range(self._pieces(load)):
            raw = self.w.declare(
                "auto", ctype.wide_load(self._aside(number, load, k), dtype, per, False), "w"
            )
            for n in range(per):
                text = ctype.conversion(ctype.part(raw, n, dtype), dtype, load.dtype)
                texts[(k * per + n,)] = self.w.declare(ctype.register(load.dtype).type, text)
        return Value(load.dtype, (inner,), texts)

    def read(self, load: Load, place: str) -> str:
        """CUDA for the neighbours that one instruction reads from memory."""
        if self.plan.stay and load in self.found.streams:
            return f"wide_policed((const uint4 *)({place}), policy)"
        return super().read(load, place)

    def join(self, fold: Fold, name: str, place: int) -> None:
        """Combine the accumulators of all users of all blocks into the fold's value."""
        if self.blocks == 1:
            super().join(fold, name, place)
            return
        call = f"blocks_{fold.op}<{self.users}, {self.blocks}>({name}, parts + {place * self.values})"
        text = self.w.declare("float", ctype.rounded(call, fold.dtype))
        self.w.here.values[fold.var] = Value(fold.dtype, (), {(): text})

    def _entry(self) -> str:
        """The kernel itself."""
        w, kernel = self.w, self.kernel
        given = ", ".join([*(w.buffers[b] for b in buffers(kernel)), "dims"])
        parameters = ", ".join([*frame.parameters(kernel, w), "u32 constant"])
        shape = f"__cluster_dims__({self.blocks}, 1, 1) " if self.blocks > 1 else ""
        blocks = beside(self.users, self.plan.held, self.plan.shared)
        bounds = f"__launch_bounds__({self.users}, {blocks})"
        pool = f"  extern __shared__ __align__({frame.ALIGNMENT}) u8 pool[];\n" if self.plan.aside else ""
        more = ", pool" if self.plan.aside else ""
        started = "  cluster_wait();\n" if self.blocks > 1 else ""
        return f"""\
extern "C" __global__ void {shape}{bounds} {self.name}({parameters}) {{
{pool}  __shared__ __align__({frame.ALIGNMENT}) float parts[{len(self.found.folds) * self.values}];
  let_next_start();
  {self.name}_fetch({given}, constant);
{started}  wait_for_previous();
  {self.name}_use({frame.settled(kernel, w)}, parts{more});
}}
"""
