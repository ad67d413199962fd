"""The numbers of a walk: how its heads, rows and turns lie on threads and in shared memory."""

from __future__ import annotations

from dataclasses import dataclass

from lumi.backends.cuda.cache import LANES, Rows, Walk
from lumi.backends.cuda.matrix import VECTOR
from lumi.backends.cuda.staged import ROOM
from lumi.dtype import F32

PARTS = 3
"""bf16 that add up to a f32."""

TILE = 8
"""Rows, or pieces' elements, of a tile that tensor cores take."""

HELD = 48
"""Words of tiles of parts that a thread holds in registers; of larger vectors it reads them again."""

BLOCKS = 264
"""Blocks that share the positions of a cell at most: two for each multiprocessor of an H200."""


@dataclass(frozen=True, slots=True)
class Plan:
    """`warps` of a block take turns of positions, each with a ring of `stages` turns.

    With `tensor` the products run on tensor cores, else thread by thread.  A block takes `least` turns of all
    its warps at least, so that few parts are to be joined where there is little to do.
    """

    found: Walk
    warps: int
    stages: int
    tensor: bool
    least: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps * LANES

    @property
    def heads(self) -> int:
        """Heads of a block."""
        return self.found.together // self.found.times

    def head(self, place: str) -> str:
        """CUDA for the number, among all heads, of one of the block's."""
        return place if self.found.times == 1 else f"cell % {self.found.times} * {self.heads} + {place}"

    @property
    def cell(self) -> str:
        """CUDA for the number of a block's cell, where each stands for as many as rows are read for."""
        return "cell" if self.found.times == 1 else f"cell / {self.found.times}"

    @property
    def slots(self) -> int:
        """Places for heads among the threads of a warp, or the columns of a tile: a power of two."""
        return 1 << (self.heads - 1).bit_length()

    @property
    def turn(self) -> int:
        """Positions that a warp takes at once."""
        return 2 * TILE if self.tensor else LANES // self.slots

    @property
    def unit(self) -> int:
        """Positions that a block takes at once."""
        return self.turn * self.warps

    @property
    def groups(self) -> int:
        """Tiles of columns that the parts of all heads fill."""
        return -(-PARTS * self.slots // TILE)

    @property
    def across(self) -> int:
        """Threads that share a row that is multiplied, each with as many pieces; all, if there are none."""
        if not self.found.products:
            return LANES
        return max(map(self.lanes, self.found.products))

    def lanes(self, rows: Rows) -> int:
        """Threads that share a row: as many for all that are multiplied, at least one for each head."""
        alike = self.found.products if rows in self.found.products else (rows,)
        return max(self.slots, *(min(LANES, 1 << (r.pieces - 1).bit_length()) for r in alike))

    def width(self, rows: Rows) -> int:
        """Neighbours that a thread takes of a row."""
        return -(-rows.pieces // self.lanes(rows)) * rows.piece

    def held(self, rows: Rows) -> int:
        """Pieces that a row has in shared memory: those beyond its own are zeros."""
        if self.tensor:
            return rows.pieces + rows.pieces % 2
        return self.lanes(rows) * self.width(rows) // rows.piece

    def pitch(self, rows: Rows) -> int:
        """Bytes from row to row in shared memory: odd in pieces, so that eight rows meet no bank twice."""
        return VECTOR * (self.held(rows) | 1)

    def offset(self, number: int) -> int:
        """Where rows begin in a stage, in bytes."""
        return sum(self.turn * self.pitch(r) for r in self.found.rows[:number])

    @property
    def stage(self) -> int:
        """Bytes of a stage."""
        return self.offset(len(self.found.rows))

    def tiles(self, rows: Rows) -> int:
        """Tiles of 16 elements of a row."""
        return self.held(rows) * rows.piece // (2 * TILE)

    @property
    def words(self) -> int:
        """Words that a thread has of a tile of the parts of vectors."""
        return 2 * self.groups

    def rereads(self, rows: Rows) -> bool:
        """Whether tiles of parts stay in shared memory, so that registers are left for sums."""
        return self.words * self.tiles(rows) > HELD

    def vector(self, number: int) -> int:
        """Where the vectors of a product begin in shared memory, in bytes."""
        return sum(self._vector_size(r) for r in self.found.products[:number])

    def _vector_size(self, rows: Rows) -> int:
        if self.tensor:
            return self.tiles(rows) * LANES * self.words * F32.size
        return self.heads * self.vector_row(rows) * F32.size

    def vector_row(self, rows: Rows) -> int:
        """Elements of the vector of a head in shared memory, for products by threads."""
        return self.held(rows) * rows.piece

    @property
    def ring(self) -> int:
        """Where the stages begin in shared memory, in bytes."""
        return self.vector(len(self.found.products))

    @property
    def columns(self) -> int:
        """Elements of a sum of rows."""
        return self.found.updates[0].rows.length

    @property
    def head_of_state(self) -> int:
        """Numbers of a state before its sums: the single values of all heads, and what aligns the rest."""
        return -(-len(self.found.singles) * self.heads // 4) * 4

    @property
    def state(self) -> int:
        """Numbers that tell what was carried: single values, then the sums of each head."""
        return self.head_of_state + len(self.found.updates) * self.heads * self.columns

    @property
    def shared(self) -> int:
        """Bytes of shared memory; when a segment has been walked, states lie where stages were."""
        return self.ring + max(self.warps * self.stages * self.stage, self.warps * self.state * F32.size)


def plan(found: Walk, options: dict[str, int]) -> Plan | None:
    """The plan with about so many warps and stages; None where two stages do not fit."""
    for warps in (options.get("warps", 4), 4, 2, 1):
        for stages in range(options.get("stages", 4), 1, -1):
            made = Plan(found, warps, stages, found.is_bf16, options.get("least", 4))
            if made.shared <= ROOM:
                return made
    return None
