"""The line of all positions of a walk: which units a block takes, and which of them hold anything.

A unit is a turn of all warps of a block.  Where there are at least as many blocks as cells, each cell is a
line of its own, shared by as many blocks; else all cells are one line, so that blocks have even shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lumi import dim
from lumi.backends.clike.loops import loop_range
from lumi.backends.cuda.cache import LANES
from lumi.backends.cuda.scope import Writer
from lumi.backends.cuda.walk_plan import BLOCKS, Plan
from lumi.backends.cuda.walk_turn import open_at
from lumi.dim import Extent
from lumi.field.term import Bin, Const, In, Pos, Term
from lumi.llir import skip, spell


class Line:
    """Writes what a block knows of its share of the line."""

    def __init__(self, plan: Plan, w: Writer) -> None:
        self.plan, self.found, self.w = plan, plan.found, w
        self.kernel = plan.found.program.kernel

    def share(self) -> None:
        """Find the share of the block, as the function that returns it."""
        w, plan, found = self.w, self.plan, self.found
        counts = [w.extent(self.kernel.axes[a]) for a in found.cells]
        cells = " * ".join([*counts, str(found.times)] if found.times > 1 or not counts else counts)
        w.line("Share line = {};")
        w.line(f"line.units = ({self._length()} + {plan.unit - 1}) / {plan.unit};")
        guards = [g for g in found.loop.guards if not self._is_sure(g)]
        if found.loop.chunk is None and guards:
            self._living(guards)
        w.line("line.units = most(line.units, 1);")
        w.line(f"const int cells = {cells}, blocks = least(gridDim.x, {BLOCKS});")
        w.line(f"line.deal(cells, blocks, {plan.least});")
        w.line("(void)warp, (void)lane;")
        w.line("return line;")

    def segment(self) -> None:
        """Open the cell of the segment at `at`, find its positions, and those of this warp's turns."""
        w, plan, found = self.w, self.plan, self.found
        w.line("const int cell = line.cell + at / line.units, begun = at % line.units;")
        w.line("const int ended = least(begun + line.end - at, line.units);")
        open_at(w, found.cells, plan.cell)
        span = loop_range(w, found.loop, found.axis)
        start = f"{span.start} + (line.first + begun) * {plan.unit}"
        w.line(f"const int start = {start};")
        w.line(f"const int stop = least({span.stop}, {span.start} + (line.first + ended) * {plan.unit});")
        w.line(f"const int mine = start + warp * {plan.turn}, last = stop - 1;")
        w.line(f"const int count = mine < stop ? (stop - mine + {plan.unit - 1}) / {plan.unit} : 0;")

    def _length(self) -> str:
        """CUDA for the number of positions of a cell."""
        loop, w = self.found.loop, self.w
        extent = w.extent(self.kernel.axes[self.found.axis])
        if loop.chunk is None:
            return extent
        return f"chunk_length({extent}, {spell.extent(self.kernel.axes[loop.chunk])})"

    def _is_sure(self, guard: Term) -> bool:
        """Whether a guard says no more than that positions lie before the end of their axis."""
        match guard:
            case Bin("lt", Pos(axis), bound):
                return _extent_of(bound) == self.kernel.axes[axis]
            case _:
                return False

    def _living(self, guards: Sequence[Term]) -> None:
        """Leave out the units before the first, and behind the last, in which all guards may hold."""
        w, plan, found = self.w, self.plan, self.found
        extent = w.extent(self.kernel.axes[found.axis])
        w.line("int low = 0, high = -1;")
        with w.block(f"for (int base = 0; base < line.units; base += {LANES}) "):
            w.line(f"const int from = (base + lane) * {plan.unit};")

            def ends(axis: str) -> tuple[str, str]:
                if axis == found.axis:
                    return "(double)from", f"(double)(least(from + {plan.unit}, {extent}) - 1)"
                return "0.0", f"(double)({w.extent(self.kernel.axes[axis])} - 1)"

            dead = self._dead(guards, ends)
            w.line(f"const u32 live = __ballot_sync(FULL_WARP, base + lane < line.units && !({dead}));")
            w.line("if (live && high < 0) low = base + __ffs(live) - 1;")
            w.line(f"if (live) high = base + {LANES - 1} - __clz(live);")
        w.line("line.first = low, line.units = high - low + 1;")

    def _dead(self, guards: Sequence[Term], ends: Callable[[str], skip.Ends]) -> str:
        test = skip.holds_nowhere(guards, ends, lambda text, stem: self.w.declare("double", text, stem))
        return test or "false"


def _extent_of(term: Term) -> Extent | None:
    """A term as an extent; None for one that is no sum of dims and whole numbers."""
    match term:
        case Const(value) if value == int(value):
            return int(value)
        case In(name, _, _) if name.startswith("$"):
            return dim.var(name[1:])
        case Bin("add", a, b):
            one, other = _extent_of(a), _extent_of(b)
            return None if one is None or other is None else one + other
        case _:
            return None
