"""Products of several matrices with vectors in one launch: their rows pass through the same ring.

The rows of all kernels are cut into pieces for the multiprocessors as if they were those of one: most
blocks see a single kernel, and a block that two of them share goes on to the second without a pause in
what it copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from lumi.backends.cuda import frame, ring
from lumi.backends.cuda.matrix import Matrices
from lumi.backends.cuda.packed_plan import Plan as PackedPlan
from lumi.backends.cuda.ring import Plan
from lumi.backends.cuda.rows import RowWriter
from lumi.backends.cuda.staged import HEAD, ROOM
from lumi.llir.kernel import Load, Step, buffers, dims

MARKS = 32
"""Buffers that a launch tells to be constant or not."""

_ROWS = ["const int first", "const int last"]
_STATES = ["u8 *stages", "u64 *full", "u64 *empty"]
_RESULTS = ["float *parts", "float *results"]


def plans(found: Sequence[Matrices], options: dict[str, int]) -> tuple[Plan, ...] | None:
    """The plans of kernels that share a ring; None where one fits none, or they differ in their warps."""
    alone = [ring.plan(one, options) for one in found]
    made = [p for p in alone if p is not None]
    if not made or len(made) < len(alone) or len({p.warps for p in made}) > 1:
        return None
    slot, total = max(p.stage for p in made), sum(p.found.count for p in made)
    wide = [replace(p, slot=slot, total=total) for p in made]
    room = ROOM - HEAD - max(p.results for p in wide)
    stages = min(options.get("stages", 6), room // slot)
    if stages < 2:
        return None
    flight = min(options.get("flight", 2), stages)
    return tuple(replace(p, stages=stages, flight=flight) for p in wide)


P = TypeVar("P", bound=Plan | PackedPlan)


class Rings(Generic[P]):
    """Writes the function of a step whose kernels share a ring; `writer` writes one of them by its plan."""

    def __init__(
        self,
        step: Step,
        plans: Sequence[P],
        writer: Callable[[P, str, Mapping[str, str]], RowWriter],
        name: str,
        names: Mapping[str, str] | None = None,
    ) -> None:
        """`names` are those of the buffers of the whole launch, where the step is one of its turns."""
        self.step, self.plans, self.name = step, plans, name
        self.names: Mapping[str, str] = names or frame.names(step.buffers)
        if len(self.names) > MARKS:
            raise ValueError(f"kernels with {len(self.names)} buffers run together")
        self.members = [writer(p, f"{name}_{k}", self.names) for k, p in enumerate(plans)]
        self.whole = writer(plans[0], name, self.names)
        self.whole.fillers = max(m.fillers for m in self.members)

    def write(self) -> str:
        """The CUDA of the function and of what its parts do."""
        p = self.plans[0]
        filler = f"{self.filler} filler(stages, full, empty);"
        given = "turn, stages, full, empty, parts, results, first, last"
        return "\n".join(
            [
                *map(self._member, self.members),
                self._all("fill", _STATES, "filler, first, last", filler),
                self._all("fetch", ["u32 constant"], "constant"),
                self._all("use", [*_STATES, *_RESULTS], given, f"Turn<{p.stages}> turn;"),
                self.whole.entry(p.stages, p.stage, self.streamed, self.step.beside),
            ]
        )

    def turn(self) -> str:
        """What its parts do in a turn of a launch: stages go on where the turn before left them."""
        given = "turn, stages, full, empty, parts, results, first, last"
        using = [f"Turn<{self.plans[0].stages}> &turn", *_STATES, *_RESULTS]
        return "\n".join(
            [
                *map(self._member, self.members),
                self._all("fill", [f"{self.filler} &filler"], "filler, first, last"),
                self._all("fetch", ["u32 constant"], "constant"),
                self._all("use", using, given),
            ]
        )

    @property
    def filler(self) -> str:
        """The type of what fills stages."""
        p = self.plans[0]
        return f"Filler<{p.stages}, {p.stage}, {p.flight}>"

    @property
    def streamed(self) -> list[Load]:
        """What passes through the stages."""
        return [x for m in self.members for matrix in m.all.matrices for x in matrix.loads]

    def _member(self, member: RowWriter) -> str:
        """The functions of one of the kernels: each does some of its rows."""
        p = member.numbers
        member.begin()
        member.fill_rows()
        filled = member.end("fill", [f"{self.filler} &filler", *_ROWS])
        fetched = member.fetched()
        member.begin()
        member.use_vectors("first == 0")
        member.use_rows()
        used = member.end("use", [f"Turn<{p.stages}> &turn", *_STATES, *_RESULTS, *_ROWS])
        return "\n".join([filled, fetched, used])

    def _all(self, what: str, more: Sequence[str], given: str, before: str = "") -> str:
        """The function that does `what` for the rows of all kernels that a block has."""
        parameters = ", ".join([*frame.declared(self.step.kernels, self.names), *more])
        cells, total = self.plans[0].cells, self.plans[0].total
        lines = [
            *([before] if before else []),
            f"for (int cell = blockIdx.x; cell < {cells}; cell += gridDim.x) {{",
            f"  const int from = (int)((i64)cell * {total} / {cells});",
            f"  const int to = (int)((i64)(cell + 1) * {total} / {cells});",
            *(f"  {line}" for line in self._members(what, given)),
            "}",
        ]
        return "\n".join(
            [f"INLINE void {self.name}_{what}({parameters}) {{", *(f"  {x}" for x in lines), "}"]
        )

    def _members(self, what: str, given: str) -> Iterator[str]:
        """A call for each kernel, of whose rows a block has those from `first` up to `last`."""
        start = place = 0
        for number, (kernel, plan) in enumerate(zip(self.step.kernels, self.plans, strict=True)):
            own = ", ".join([*(self.names[b] for b in buffers(kernel)), f"dims + {place}", given])
            yield "{"
            yield f"  const int first = from > {start} ? from - {start} : 0;"
            yield f"  const int last = least(to - {start}, {plan.found.count});"
            yield f"  if (first < last) {self.name}_{number}_{what}({own});"
            yield "}"
            start, place = start + plan.found.count, place + len(dims(kernel))
