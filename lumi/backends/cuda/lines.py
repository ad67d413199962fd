"""Reductions of long lines, which pass through stages in shared memory and then stay in registers.

A line is copied ahead, read into registers, reduced as often as its results need, and never read again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lumi.backends.cuda import ctype
from lumi.backends.cuda.expression import chunk
from lumi.backends.cuda.held import MOST, Held, registers
from lumi.backends.cuda.line import Lines
from lumi.backends.cuda.scope import single
from lumi.backends.cuda.staged import FOLDS, HEAD, ROOM, WARP
from lumi.llir.kernel import Load

PIECE = 48 << 10
"""Bytes of a line that a stage holds at most: of longer ones it holds a piece."""

STAGES = 16
"""Stages at most."""

THREADS = 1536
"""Threads that a multiprocessor should run: more leave too few registers for lines."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of a kernel over lines: threads that share a line, stages, blocks a multiprocessor.

    A stage holds one of the `pieces` of a line, each but the last of `parts` turns.
    """

    found: Lines
    users: int
    stages: int
    pieces: int
    resident: int

    @property
    def width(self) -> int:
        """Elements that a thread takes at once."""
        return self.found.width

    @property
    def turns(self) -> int:
        """How often all threads together take elements until the line is done."""
        return -(-self.found.length // (self.users * self.width))

    @property
    def parts(self) -> int:
        """Turns of a piece."""
        return -(-self.turns // self.pieces)

    @property
    def stage(self) -> int:
        """Bytes of a stage."""
        elements = min(self.parts * self.users * self.width, self.found.length)
        return sum(elements * s.access.dtype.size for s in self.found.streams)

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return HEAD + self.stages * self.stage

    def span(self, piece: int) -> tuple[int, int]:
        """The elements of a line that a piece holds."""
        each = self.parts * self.users * self.width
        return piece * each, min((piece + 1) * each, self.found.length)


def plan(found: Lines, options: dict[str, int]) -> Plan | None:
    """So many threads a line, up to `stages` stages; None where lines are too long, or too short for it."""
    users = options.get("users", 128)
    turns = -(-found.length // (users * found.width))
    held = turns * found.width * sum(registers(found, x) for x in (*found.streams, *found.held))
    if held > MOST or found.length < users * found.width or len(found.folds) > FOLDS:
        return None
    made = Plan(found, users, 1, 1, 1)
    while made.stage > PIECE and made.parts > 1:
        made = replace(made, pieces=made.pieces + 1)
    made = replace(made, pieces=-(-made.turns // made.parts))
    half, most = ((room - HEAD) // made.stage for room in (ROOM // 2, ROOM))
    stages = min(options.get("stages", 4), half) if made.pieces == 1 and half > 1 else most
    if stages < min(made.pieces, 2):
        return None
    stages = min(stages, STAGES)
    blocks = min((ROOM + HEAD) // (2 * HEAD + stages * made.stage), THREADS // (users + WARP))
    return replace(made, stages=stages, resident=max(blocks, 1))


class LineWriter(Held):
    """Writes the function of a kernel over lines."""

    def __init__(self, plan: Plan, name: str) -> None:
        super().__init__(plan.found, plan, name)
        self.plan = plan

    def write(self) -> str:
        """The CUDA of the function and of what its parts do."""
        fetched = self.fetch([x.var for x in self.found.held])
        entry = self.entry(self.plan.stages, self.plan.stage, self.found.streams)
        return "\n".join([self._fill(), fetched, self._use(), entry])

    # -- the thread that fills

    def _fill(self) -> str:
        p, w = self.plan, self.w
        self.begin()
        lines = self.lines()
        w.line(f"Filler<{p.stages}, {p.stage}, {p.stages}> filler(stages, full, empty);")
        with w.block(f"for (int line = blockIdx.x; line < {lines}; line += gridDim.x) "):
            self.open_line()
            w.here.opened |= {a: single("0") for a in self.over}
            for piece in range(p.pieces):
                self._fill_piece(*p.span(piece))
        return self.end("fill", ["u8 *stages", "u64 *full", "u64 *empty"])

    def _fill_piece(self, first: int, last: int) -> None:
        """Copy some elements of the line of each stream into a stage."""
        sizes = [(last - first) * s.access.dtype.size for s in self.found.streams]
        with self.w.block(""):
            self.w.line(f"u8 *const to = filler.claim({sum(sizes)});")
            for (load, place), size in zip(self._places(first, last), sizes, strict=True):
                pointer = self.expressions.pointer(load.access, {}, {})
                self.w.line(f"filler.copy(to + {place}, {pointer} + {first}, {size});")
            self.w.line("filler.turn.next();")

    def _places(self, first: int, last: int) -> list[tuple[Load, int]]:
        """Where in a stage the elements of each stream begin."""
        places, place = [], 0
        for load in self.found.streams:
            places.append((load, place))
            place += (last - first) * load.access.dtype.size
        return places

    # -- the threads that use

    def _use(self) -> str:
        p, w, found = self.plan, self.w, self.found
        self.begin()
        self.hold()
        w.line(f"Turn<{p.stages}> turn;")
        with w.block(f"for (int line = blockIdx.x; line < {self.lines()}; line += gridDim.x) "):
            self.open_line()
            self.load_single()
            self.arrays("x", found.streams, self.turns)
            for piece in range(p.pieces):
                with w.block(""):
                    self._read(piece)
            self.compute()
            if len(found.folds) == 1:  # else a barrier lies between two uses of the same memory
                w.line(f"users_wait<{p.users}>();")
        return self.end("use", ["u8 *stages", "u64 *full", "u64 *empty", "float *parts", "float *results"])

    def _read(self, piece: int) -> None:
        """Take a piece of a line out of its stage, which can then be filled anew."""
        w, (first, last) = self.w, self.plan.span(piece)
        turns = range(self.turns)[piece * self.plan.parts : (piece + 1) * self.plan.parts]
        w.line("stage_await(full + turn.slot, turn.lap);")
        w.line(f"const u8 *const stage = stages + turn.slot * {self.plan.stage};")
        with self.turns_of(turns):
            for number, (load, place) in enumerate(self._places(first, last)):
                size = load.access.dtype.size
                at = f"stage + ({place - first * size}) + n * {size}"
                for k, part in enumerate(self.places(load, at, size)):
                    per = chunk(load.access.dtype, self.width)
                    self.keep_words(
                        f"x{number}", load, k, ctype.wide_load(part, load.access.dtype, per, False)
                    )
        w.line("stage_release(empty + turn.slot);")
        w.line("turn.next();")
