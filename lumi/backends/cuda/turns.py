"""Kernels that run in turn in one launch, whose blocks wait for each other in between.

There are as many blocks as run at once, and each takes its share of every turn.  Rows of all turns pass
through the same ring: what fills it goes on to the next turn's without a wait where they never change, so
that they come while the others wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from lumi.backends.cuda import frame, matrix, packed, packed_plan, packed_tiles, ring, rings
from lumi.backends.cuda.grid import Grid, blocking_of, write_cells
from lumi.backends.cuda.packed_plan import Plan as PackedPlan
from lumi.backends.cuda.ring import Plan
from lumi.backends.cuda.rings import Rings
from lumi.backends.cuda.rows import LEAST, RowWriter
from lumi.backends.cuda.staged import HEAD, ROOM, STATES, WARP
from lumi.llir.kernel import Step, buffers, dims

TEMPLATES = ("simt", "stream", "ring", "packed")
"""The templates whose kernels can take turns."""

STAGED = TEMPLATES[2:]
"""Those of them whose rows pass through a ring."""

TOLD = 16
"""Bytes behind all else, where a block tells those that fill stages which turn has begun."""

P = TypeVar("P", Plan, PackedPlan)

AnyRings: TypeAlias = "Rings[Plan] | Rings[PackedPlan]"


@dataclass(frozen=True, slots=True)
class Written:
    """A launch as CUDA: its function, threads a block, bytes of shared memory, grids.

    It runs in `resident` blocks a multiprocessor at most.  With `streams` rows pass through a ring.
    """

    text: str
    threads: int
    shared: int
    grids: tuple[Grid, ...]
    resident: int
    streams: bool


@dataclass(frozen=True, slots=True)
class Cells:
    """A turn whose blocks share cells: its functions, what calls them, and what these need."""

    texts: tuple[str, ...]
    calls: tuple[str, ...]
    threads: int
    shared: int
    resident: int
    grids: tuple[Grid, ...]


def write(step: Step, name: str) -> Written:
    """The launch of a step and of what comes then.

    Raises `ValueError` where they cannot share one: it says which template or number is in the way.
    """
    for turn in step.turns:
        if turn.schedule.template not in TEMPLATES:
            raise ValueError(f"kernels take turns as {turn.schedule.template}")
    return _Launch(step, name).write()


class _Launch:
    """Writes a launch; `cells` and `rings` are its turns by their numbers, in the one way or the other."""

    def __init__(self, step: Step, name: str) -> None:
        self.step, self.name = step, name
        self.names = frame.names(step.buffers)
        places = [0]
        for turn in step.turns:
            places.append(places[-1] + len(turn.dims))
        self.dims = places[:-1]
        every = list(enumerate(step.turns))
        self.cells = {k: self._cells(k, turn) for k, turn in every if turn.schedule.template not in STAGED}
        self.rings: dict[int, AnyRings] = {}
        staged = {k: turn for k, turn in every if k not in self.cells}
        held = max((c.shared for c in self.cells.values()), default=0)
        self.shared = self.fillers = 0
        if staged:
            self._stage(staged, held)
        self.shared = self.shared or held
        self.users = max((c.threads for c in self.cells.values()), default=0)
        if self.rings:
            users = self._ring.plans[0].users
            if self.users > users:
                raise ValueError(f"{self.users} threads take turns with the {users} of a ring")
            self.users = users

    @property
    def _ring(self) -> AnyRings:
        """The ring of one of the turns that have one: what all of them share is the same."""
        return next(iter(self.rings.values()))

    def write(self) -> Written:
        """The CUDA of the launch and of all turns."""
        texts = [t for c in self.cells.values() for t in c.texts]
        texts += [r.turn() for r in self.rings.values()]
        text = "\n".join([*texts, self._entry()])
        grids = [g for c in self.cells.values() for g in c.grids]
        grids += [((r.plans[0].cells, 1),) for r in self.rings.values()]
        resident = 1 if self.rings else min(c.resident for c in self.cells.values())
        return Written(text, self._threads, self.shared, tuple(grids), resident, bool(self.rings))

    # -- turns

    def _cells(self, number: int, turn: Step) -> Cells:
        """The functions of a turn whose blocks share cells."""
        blocking, first = blocking_of(dict(turn.schedule.options)), self.dims[number]
        made, calls = [], list[str]()
        for k, kernel in enumerate(turn.kernels):
            name = f"{self.name}_{number}_{k}"
            made.append(write_cells(kernel, blocking, name, self.names, beside=True, partial=True))
            given = ", ".join(f"settled({self.names[b]})" for b in buffers(kernel))
            calls.append(f"before = {name}_cells({given}, dims + {first}, before, rest);")
            first += len(dims(kernel))
        return Cells(
            tuple(text for _, text, _ in made),
            tuple(calls),
            blocking.threads,
            max(writer.most for writer, _, _ in made),
            min(writer.resident for writer, _, _ in made),
            tuple(grid for _, _, grid in made),
        )

    def _stage(self, turns: Mapping[int, Step], held: int) -> None:
        """Let the rows of some turns pass through one ring, in front of the `held` bytes of others."""
        schedules = {turn.schedule for turn in turns.values()}
        if len(schedules) > 1:
            raise ValueError("the rings of kernels that take turns have different numbers")
        (schedule,) = schedules
        kernels, options = [k for turn in turns.values() for k in turn.kernels], dict(schedule.options)
        if schedule.template == "ring":
            found = [m for k in kernels if (m := matrix.find(k)) is not None]
            plans = rings.plans(found, options) if len(found) == len(kernels) else None
            parts = self._parted(turns, plans, held, 1, lambda p: p.results)
            self.rings |= self._written(turns, parts, ring.Ring)
            return
        blocks = [p for k in kernels if (p := packed.find(k)) is not None]
        packings = packed_plan.plans(blocks, options) if len(blocks) == len(kernels) else None
        teams = packings[0].teams if packings else 1
        shares = self._parted(turns, packings, held, teams, lambda p: p.behind)
        self.rings |= self._written(turns, shares, packed_tiles.writer)

    def _parted(
        self,
        turns: Mapping[int, Step],
        plans: Sequence[P] | None,
        held: int,
        teams: int,
        behind: Callable[[P], int],
    ) -> dict[int, list[P]]:
        """The plans of each turn, with pieces of its own rows, for as many stages as there is room for."""
        if plans is None:
            raise ValueError("a kernel whose matrices do not fit a ring is scheduled as one")
        left, parts = iter(plans), dict[int, list[P]]()
        for number, turn in turns.items():
            mine = [next(left) for _ in turn.kernels]
            total = sum(p.found.count for p in mine)
            parts[number] = [replace(p, total=total) for p in mine]
        rest = max(held, *(behind(p) for mine in parts.values() for p in mine))
        slot = max(p.stage for p in plans)
        stages = min(plans[0].stages, (ROOM - HEAD - TOLD - rest) // slot) // teams * teams
        if stages < 2:
            raise ValueError(f"{rest} bytes of kernels that take turns leave no room for a ring")
        self.shared = max(HEAD + stages * slot + -(-rest // TOLD) * TOLD + TOLD, LEAST)
        flight = min(plans[0].flight, stages)
        return {
            k: [replace(p, slot=slot, stages=stages, flight=flight) for p in mine]
            for k, mine in parts.items()
        }

    def _written(
        self,
        turns: Mapping[int, Step],
        parts: Mapping[int, Sequence[P]],
        writer: Callable[[P, str, Mapping[str, str]], RowWriter],
    ) -> dict[int, Rings[P]]:
        """What writes each turn."""
        found = {
            k: Rings(turn, parts[k], writer, f"{self.name}_{k}", self.names) for k, turn in turns.items()
        }
        self.fillers = max(r.whole.fillers for r in found.values())
        return found

    # -- the launch

    def _entry(self) -> str:
        """The kernel itself."""
        given = [p.replace("*__restrict__", "*") for p in frame.declared(self.step.kernels, self.names)]
        given += ["const u32 constant"] if self.rings else []
        lines = [*self._opened(), "let_next_start();", *self._filled(), *self._used()]
        head = f'extern "C" __global__ void __launch_bounds__({self._threads}) {self.name}('
        return "\n".join(
            [f"{head}{', '.join([*given, 'u32 *met'])}) {{", *(f"  {x}" for x in lines), "}", ""]
        )

    @property
    def _threads(self) -> int:
        """Threads of a block: those that work, and a warp that fills stages."""
        return self.users + (WARP if self.rings else 0)

    def _opened(self) -> Iterator[str]:
        """Shared memory, and a ring that is empty."""
        yield "extern __shared__ __align__(128) u8 pool[];"
        if not self.rings:
            yield "u8 *const rest = pool;"
            yield "u32 *const begun = 0;"
            return
        plan, whole = self._ring.plans[0], self._ring.whole
        yield f"u64 *const full = (u64 *)pool, *const empty = full + {plan.stages};"
        yield f"float *const parts = (float *)(pool + {STATES});"
        yield f"u8 *const stages = pool + {HEAD}, *const rest = stages + {plan.stages * plan.stage};"
        yield "float *const results = (float *)rest;"
        yield f"u32 *const begun = (u32 *)(pool + {self.shared - TOLD});"
        yield f"if (threadIdx.x == {self.users}) {{"
        yield f"  for (int k = 0; k < {plan.stages}; k++)"
        yield f"    stage_open(full + k, {self.fillers}), stage_open(empty + k, {whole.sharing});"
        yield "  before_copies();"
        yield "  *begun = 0;"
        yield "}"
        yield "__syncthreads();"

    def _filled(self) -> Iterator[str]:
        """What threads do that fill stages."""
        if not self.rings:
            return
        yield f"if (threadIdx.x >= {self.users}) {{"
        yield f"  if (threadIdx.x >= {self.users + self.fillers}) return;"
        yield f"  {self._ring.filler} filler(stages, full, empty);"
        for number, made in self.rings.items():
            read = {load.access.buffer for load in made.streamed}
            mask = sum(1 << k for k, b in enumerate(self.names) if b in read)
            yield f"  if ((constant & {mask}u) != {mask}u) {{"
            yield f"    {f'turn_await(begun, {number})' if number else 'wait_for_previous()'};"
            yield "    before_copies();"
            yield "  }"
            yield f"  {made.name}_fill({self._given(number)}, filler);"
        yield "  return;"
        yield "}"

    def _used(self) -> Iterator[str]:
        """What all others do: turn after turn."""
        if self.rings:
            yield f"Turn<{self._ring.plans[0].stages}> turn;"
        for number in range(len(self.step.turns)):
            if number:
                yield f"const u32 end{number} = turn_end<{self.users}>(met);"
            if number in self.rings:
                yield f"{self.rings[number].name}_fetch({self._given(number)}, constant);"
            begin = f"turn_begin<{self.users}>(met, end{number}, begun, {number});"
            yield begin if number else "wait_for_previous();"
            yield from self._turn(number)

    def _turn(self, number: int) -> Iterator[str]:
        """What threads do in a turn."""
        if number in self.rings:
            given = self._given(number, "settled({})")
            yield f"{self.rings[number].name}_use({given}, turn, stages, full, empty, parts, results);"
            return
        made = self.cells[number]
        yield f"if (threadIdx.x < {made.threads}) {{" if made.threads < self.users else "{"
        yield "  u32 before = 0;"
        for k, call in enumerate(made.calls):
            if k:
                yield f"  threads_wait<{made.threads}>();"
            yield f"  {call}"
        yield "}"

    def _given(self, number: int, form: str = "{}") -> str:
        """The buffers of a turn, and its dims."""
        named = (form.format(self.names[b]) for b in self.step.turns[number].buffers)
        return ", ".join([*named, f"dims + {self.dims[number]}"])
