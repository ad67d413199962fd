"""The numbers of a kernel whose products groups of four warps compute: tiles, groups, stages.

`groups` of four warps have 64 rows each; four more warps copy.  A cascade has a ring of stages for the
factors of its first products and one for those of what it sums up, and keeps the rows' factors beside them:
of two cells, where it begins one `ahead` of the end of the other.  Where it `sends` them, results go through
the stages too, if they can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lumi.backends.cuda.mma import plan as common
from lumi.backends.cuda.mma.form import Form, RefusalError, Stored
from lumi.backends.cuda.mma.plan import STEP, WARP, Placing, Plan, Tile, pitch, up
from lumi.backends.cuda.tensormap import Box
from lumi.backends.cuda.wgmma import box, sent
from lumi.backends.cuda.wgmma.box import Boxed
from lumi.backends.cuda.wgmma.instruction import GRAIN, ROWS, WIDEST
from lumi.backends.cuda.wgmma.sent import Sent
from lumi.llir.interval import interval
from lumi.llir.kernel import Schedule, dims

TEMPLATE = "wgmma"

ARCH = "sm_90a"
"""The only architecture that has the instruction."""

GROUP = 4 * WARP
"""Threads of a group."""

PANEL = 64
"""Halves of a line of a panel."""

ROOM = 227 << 10
"""Bytes of shared memory that a block takes at most."""

SIGNALS = 1024
"""Bytes of shared memory that signals take, and as many that its alignment may."""

SHARES = {1: (40, 248), 2: (40, 232), 3: (32, 160)}
"""Registers of a thread that copies, and of one that multiplies, by the number of groups."""

OTHERS = {True: 28, False: 34}
"""Registers that addresses and counters take, about, where the copy engine copies and where threads do."""


class PanelPlacing(Placing):
    """Lays tiles out in panels, each from a multiple of 1024 bytes on."""

    align: ClassVar[int] = 1024

    def shape(self, factor: Stored, across: int, down: int) -> tuple[int, int]:
        """Lines, and halves of a line, of a factor."""
        if factor.is_summed_along:
            return up(across, GRAIN), up(down, PANEL)
        return down, up(across, PANEL)


@dataclass(frozen=True, slots=True)
class GroupPlan(Plan):
    """The numbers of a form; `wide` is 1, and the warps of `high` are those of all groups."""

    in_order: bool = True
    bulk: bool = False
    ahead: bool = False
    sends: bool = False
    boxes: Mapping[tuple[str, str], Boxed] = field(init=False)
    sent: Sent | None = field(init=False)

    placing: ClassVar[type[Placing]] = PanelPlacing

    def __post_init__(self) -> None:
        super(GroupPlan, self).__post_init__()
        kernel = self.form.program.kernel
        tiles = self.tiles.items() if self.bulk else ()
        made = {key: box.find(kernel, tile, self._brought(tile)) for key, tile in tiles}
        object.__setattr__(self, "boxes", {key: b for key, b in made.items() if b is not None})
        may = self.sends and self.bulk and self.columns % sent.WIDTH == 0
        object.__setattr__(self, "sent", sent.find(self.form, self.rows, self.stage) if may else None)

    @property
    def copiers(self) -> int:
        """Threads that tell that a stage is full: one, where the copy engine brings it."""
        return 1 if self.bulk else GROUP

    @property
    def groups(self) -> int:
        """Groups that multiply."""
        return self.high // 4

    @property
    def readers(self) -> int:
        """How often the columns of a stage are read from shared memory: by each group."""
        return self.groups

    @property
    def threads(self) -> int:
        """Threads of a block, those that copy among them."""
        return GROUP * (self.groups + 1)

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return 2 * SIGNALS + self.turns_place + self.stages * self.stage

    @property
    def clears(self) -> bool:
        """Whether the copy engine may bring, of what a cascade sums up, more than the loop has positions.

        Where dims say how many these are, the buffer may have more, of which nothing is known.
        """
        cascade = self.form.cascade
        axes = self.form.program.kernel.axes
        return self.bulk and cascade is not None and not isinstance(axes[cascade.axis], int)

    @property
    def signalled(self) -> int:
        """Stages of all rings."""
        return self.stages if self.form.cascade is None else self.cells_kept + 2 * self.stages

    @property
    def aside(self) -> int:
        """Where, among the signals, that of a stage lies which is to be cleared before it is full."""
        return 16 * self.signalled

    @property
    def cells_kept(self) -> int:
        """Cells whose rows are kept at once."""
        return 2 if self.ahead else 1

    @property
    def turns_place(self) -> int:
        """Where the stages of turns begin."""
        return self.cells_kept * self.kept

    @property
    def registers(self) -> int:
        """Registers that a thread which multiplies needs, about."""
        form, others = self.form, OTHERS[self.bulk]
        if form.cascade is None:
            results = {(p.var, p.columns) for p in form.products}
            return sum(self.width_of(c) // 2 for _, c in results) + others
        turn = sum(self.columns // 2 for _ in form.cascade.products)
        sums = sum(self.width_of(u.product.columns) // 2 for u in form.cascade.updates)
        factors = sum(self.columns // 4 for _ in form.cascade.updates)
        return turn + sums + factors + 2 * len(form.cascade.rows) + others

    def boxed(self, tile: Tile) -> Boxed:
        """The box that a tile is brought by."""
        return self.boxes[tile.factor.load.var, tile.factor.outer]

    def _brought(self, tile: Tile) -> int:
        """Lines of a tile that are brought: in whole sums none of rows, or columns, that there are not."""
        extent = self.form.program.kernel.axes[tile.lines_axis]
        is_outer = self.form.cascade is None and tile.lines_axis == tile.factor.outer
        return min(tile.lines, up(extent, GRAIN)) if is_outer and isinstance(extent, int) else tile.lines

    def size_of(self, tile: Tile) -> int:
        """Bytes of a tile that the copy engine brings."""
        return self.boxed(tile).box.height * pitch(tile.chunks)

    @property
    def maps(self) -> tuple[Box, ...]:
        """Every box, each once: further parameters of the kernel."""
        pieces = (*self.sent.loads.values(), *self.sent.stores) if self.sent is not None else ()
        return tuple(dict.fromkeys(b.box for b in (*self.boxes.values(), *(p.boxed for p in pieces))))

    def tile_panels(self, tile: Tile) -> int:
        """Bytes from one panel of a tile to the next."""
        return tile.lines * 2 * PANEL


def plan(form: Form, options: Mapping[str, int]) -> GroupPlan:
    """The plan of a form under the options of a schedule.  Raises `RefusalError` when it does not fit."""
    groups = options.get("groups", 2)
    made = GroupPlan(
        form,
        ROWS * groups,
        options.get("columns", 128),
        options.get("depth", PANEL),
        4 * groups,
        1,
        options.get("stages", 2),
        1,
        False,
        bool(options.get("ordered", 1)) and groups > 1,
        bool(options.get("bulk", 0)),
        bool(options.get("ahead", 0)),
        bool(options.get("sends", 0)) and form.cascade is None,
    )
    reason = _fault(made)
    if reason:
        raise RefusalError(reason)
    return made


def _fault(made: GroupPlan) -> str:
    """Why numbers do not fit a form, or the GPU; empty when they do."""
    form = made.form
    if made.columns % STEP or made.columns > WIDEST or made.depth % PANEL:
        return "no instruction has its tile"
    if any(t.width < 8 for t in made.tiles.values()):
        return "neighbours of a factor are not copied 16 bytes at once"
    if made.bulk and len(made.boxes) < len(made.tiles):
        return "the copy engine cannot bring its factors"
    if made.bulk and _ends_within(form):
        return "what lies behind the end of a sum would be brought too"
    if made.ahead and not (made.bulk and _has_turns(form)):
        return "a cell may have nothing to begin with"
    if any(not c.exact for c in form.computed) and not common.may_have(form, 1):
        return f"a computed factor would be rounded to {form.dtype}"
    if made.shared > ROOM:
        return f"its tiles take {made.shared} bytes of shared memory"
    if made.registers > SHARES[made.groups][1]:
        return f"its tiles take {made.registers} registers"
    if form.cascade is None and made.stages < (2 if made.bulk else 3):
        return "a stage would be awaited that nobody tells to be full"
    return ""


def _ends_within(form: Form) -> bool:
    """Whether a sum, or the loop, ends before its axis does, or a sum before what its buffer has room for."""
    axes = form.program.kernel.axes
    if any(not isinstance(axes[s.summed], int) for s in form.sums):
        return True
    loops = [s.loop for s in form.sums] if form.cascade is None else [form.cascade.loop]
    return any(loop is not None and loop.chunk is not None for loop in loops)


def _has_turns(form: Form) -> bool:
    """Whether a cascade takes in its first position for each row, so that no cell is without turns."""
    kernel = form.program.kernel
    sizes = {a: e for a, e in kernel.axes.items() if isinstance(e, int)}
    if form.cascade is None or dims(kernel) or len(sizes) < len(kernel.axes):
        return False
    places = {a: (0.0, size - 1.0) for a, size in sizes.items()} | {form.cascade.axis: (0.0, 0.0)}
    return all(interval(guard, places, {})[0] > 0 for guard in form.cascade.loop.guards)


SUMS = tuple(
    dict(zip(("groups", "columns", "depth", "stages"), numbers, strict=True))
    for numbers in (
        (2, 256, 64, 4),
        (2, 128, 64, 6),
        (2, 128, 64, 4),
        (2, 112, 64, 5),
        (1, 128, 64, 6),
        (1, 112, 64, 6),
        (1, 64, 128, 4),
        (1, 32, 128, 6),
    )
)
"""Tiles, groups and stages that are tried for sums."""

_WITHIN = (
    (2, 128, 2, 1),
    (3, 128, 2, 1),
    (2, 128, 2, 0),
    (2, 112, 2, 1),
    (2, 64, 2, 1),
    (2, 64, 3, 0),
    (1, 128, 2, 0),
    (3, 64, 2, 1),
    (2, 80, 2, 1),
)

_AHEAD = ((2, 128, 2, 1), (3, 128, 3, 1), (3, 128, 2, 1), (2, 160, 2, 1), (3, 96, 3, 1))

CASCADES = tuple(
    dict(zip(("groups", "columns", "stages", "ordered"), numbers, strict=True)) | ahead
    for every, ahead in ((_WITHIN, {}), (_AHEAD, {"ahead": 1}))
    for numbers in every
)
"""Tiles, groups and stages that are tried for cascades."""


def schedules(form: Form) -> tuple[Schedule, ...]:
    """The schedules of a form that fit it; with `parts` they round what the kernel does not."""
    found = []
    exact = all(c.exact for c in form.computed)
    for numbers in SUMS if form.cascade is None else CASCADES:
        for bulk in (1, 0):
            sends = {"sends": 1} if bulk and form.cascade is None else {}
            options = numbers | {"bulk": bulk} | sends | ({} if exact else {"parts": 1})
            try:
                plan(form, options)
            except RefusalError:
                continue
            found.append(Schedule(TEMPLATE, tuple(sorted(options.items()))))
            break
    return tuple(found)
