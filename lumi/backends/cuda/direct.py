"""Reductions of long lines, which go from memory straight into registers and stay there.

A block takes one line, or one of the blocks of a cluster its part of one; how many lines are under way at
once, so that memory is never idle, is a matter of how many blocks fit a multiprocessor.
"""

from __future__ import annotations

from dataclasses import dataclass

from lumi.backends.cuda import ctype, frame
from lumi.backends.cuda.held import Held, registers
from lumi.backends.cuda.line import Lines
from lumi.backends.cuda.scope import Value
from lumi.backends.cuda.staged import FOLDS, WARP
from lumi.llir.kernel import buffers
from lumi.llir.program import Fold

MOST = 48
"""Registers in which a thread may hold elements: more leave too few blocks on a multiprocessor."""

ENOUGH = 32
"""Such registers of a thread from which on several blocks may share a line."""

REGISTERS, THREADS = 1 << 16, 2048
"""Of a multiprocessor."""

OWN, EACH = 16, 1.25
"""Registers of a thread: those it has anyway, and for each in which it holds elements."""

GRANULE = 8
"""Registers that a thread is given at once."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A line is shared by `users` threads of each of `blocks` blocks."""

    found: Lines
    users: int
    blocks: int

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
        every = (*self.found.streams, *self.found.held)
        return self.turns * self.width * sum(registers(self.found, x) for x in every)


def beside(users: int, held: float) -> int:
    """Blocks that a multiprocessor should run side by side, whose threads hold lines in so many registers."""
    each = -(-(OWN + EACH * held) // GRANULE) * GRANULE
    return max(min(THREADS // users, int(REGISTERS // (users * each))), 1)


def plan(found: Lines, options: dict[str, int]) -> Plan | None:
    """So many threads and blocks a line; None where it is too long, or too short, for them.

    A thread has several loads under way at once, or it is not worth its while.
    """
    made = Plan(found, options.get("users", 256), options.get("blocks", 1))
    if found.length % (made.blocks * made.width) or made.part <= made.users * made.width:
        return None
    if made.held > MOST or made.users * (OWN + EACH * made.held) > REGISTERS or len(found.folds) > FOLDS:
        return None
    alone = Plan(found, made.users, 1)
    return made if made.blocks == 1 or alone.held > ENOUGH else None


class DirectWriter(Held):
    """Writes the function of a kernel over lines."""

    def __init__(self, plan: Plan, name: str) -> None:
        super().__init__(plan.found, plan, name)
        self.plan, self.blocks, self.values = plan, plan.blocks, plan.users // WARP * plan.blocks
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
        with w.block(f"for (int line = {place}; line < {self.lines()}; line += {step}) "):
            self.open_line()
            self.load_single()
            self.arrays("x", found.streams)
            self.take_in("x", found.streams)
            self.compute()
            if len(found.folds) == 1:  # else a barrier lies between two uses of the same memory
                w.line(f"users_wait<{self.users}>();" if self.blocks == 1 else "cluster_wait();")
        return self.end("use", ["float *parts"])

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
        bounds = f"__launch_bounds__({self.users}, {beside(self.users, self.plan.held)})"
        started = "  cluster_wait();\n" if self.blocks > 1 else ""
        return f"""\
extern "C" __global__ void {shape}{bounds} {self.name}({parameters}) {{
  __shared__ __align__({frame.ALIGNMENT}) float parts[{len(self.found.folds) * self.values}];
  let_next_start();
  {self.name}_fetch({given}, constant);
{started}  wait_for_previous();
  {self.name}_use({frame.settled(kernel, w)}, parts);
}}
"""
