"""The numbers of a ring that packed matrices pass through: teams, what a thread takes at once, stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lumi.backends.cuda.packed import PIECE, Packed, PackedMatrix, Plane
from lumi.backends.cuda.rows import CELLS, HELD, LEAST
from lumi.backends.cuda.staged import FOLDS, HEAD, ROOM, WARP
from lumi.backends.cuda.unpack import WORD
from lumi.dtype import F32
from lumi.memo import Memo

ALIGNMENT = 128
"""Bytes at whose multiples planes begin in a stage."""

SUMS = 8
"""Sums that a warp takes at once."""

STAGES = 16
"""Stages at most."""

HALF = 8
"""Rows of half a tile of tensor cores."""

LANES = 4
"""Threads that take chunks of one row at once, where tensor cores multiply."""

DIGITS = 4
"""Digits of a vector's elements, each in a byte."""

COLUMNS = 64
"""Words of digits that a thread may hold."""

FEW = 3
"""Stages that there are at least where a stage holds whole tiles."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The numbers of a ring: `teams` of `warps` each, a thread of which takes `width` neighbours at once.

    A stage holds `rows` rows and belongs to one team, so that `stages` are a multiple of teams.  `slot` and
    `total` are as in `ring`.
    """

    found: Packed
    warps: int
    teams: int
    width: int
    rows: int
    stages: int
    flight: int
    slot: int = 0
    total: int = 0

    @property
    def users(self) -> int:
        """Threads that use the ring."""
        return self.teams * self.warps * WARP

    @property
    def chunk(self) -> int:
        """Elements that a thread takes at once: neighbours, and what shares their bytes."""
        return self.width * self.found.size(self.found.copies)

    @property
    def turns(self) -> int:
        """How often a team takes chunks until a row is done."""
        return -(-self.found.length // (self.warps * WARP * self.chunk))

    @property
    def held(self) -> int:
        """Elements of vectors that a thread holds."""
        return self.turns * self.chunk * len(self.found.vectors)

    def place(self, matrix: int, plane: Plane) -> int:
        """Where in a stage a plane of a matrix begins."""
        every = [(k, p) for k, m in enumerate(self.found.matrices) for p in m.planes]
        return sum(self._size(k, p) for k, p in every[: every.index((matrix, plane))])

    def apart(self, matrix: int, plane: Plane) -> int:
        """Bytes from one row of a plane to the next in a stage."""
        return plane.row

    def _size(self, matrix: int, plane: Plane) -> int:
        """Bytes that the rows of a plane take in a stage; one that starts anywhere takes a piece more."""
        size = self.rows * self.apart(matrix, plane) + (0 if plane.is_even else PIECE)
        return -(-size // ALIGNMENT) * ALIGNMENT

    @property
    def stage(self) -> int:
        """Bytes of a stage."""
        every = ((k, p) for k, m in enumerate(self.found.matrices) for p in m.planes)
        return max(self.slot, sum(self._size(k, p) for k, p in every))

    @property
    def cells(self) -> int:
        """Pieces that the rows are cut into."""
        return min(CELLS, self.total or self.found.count)

    @property
    def most(self) -> int:
        """Rows of a piece at most."""
        return -(-(self.total or self.found.count) // self.cells)

    @property
    def results(self) -> int:
        """Bytes of the results of a piece, one for each warp of a team."""
        return self.most * len(self.found.matrices) * self.warps * F32.size

    @property
    def pitch(self) -> int:
        """Quadruples of a vector in shared memory from one part of chunks to the next: an odd number."""
        return self.found.length // self.chunk | 1

    @property
    def vector(self) -> int:
        """Floats that a vector takes in shared memory, from where several teams fetch their chunks."""
        return self.chunk // WORD * self.pitch * WORD if self.teams > 1 else 0

    @property
    def behind(self) -> int:
        """Bytes behind the stages: results, then vectors."""
        aligned = -(-self.results // ALIGNMENT) * ALIGNMENT
        return aligned + len(self.found.vectors) * self.vector * F32.size

    @property
    def shared(self) -> int:
        """Bytes of shared memory."""
        return max(HEAD + self.stages * self.stage + self.behind, LEAST)


@dataclass(frozen=True, slots=True)
class Tiles(Plan):
    """The same where tensor cores multiply tiles of rows, whose halves are each of one matrix.

    Of each row `LANES` threads of a warp take a chunk each.  A vector lies in shared memory as records.  With
    `spread` each row of the largest planes is copied by itself, to where no two that follow meet in a bank.
    """

    spread: bool = False

    @property
    def chunks(self) -> int:
        """Chunks of a row."""
        return self.found.length // self.chunk

    @property
    def turns(self) -> int:
        """How often a team takes chunks until a row is done."""
        return -(-self.chunks // (self.warps * LANES))

    @property
    def held(self) -> int:
        """Words of digits that a thread holds."""
        return self.turns * DIGITS // 2 * self.chunk // WORD

    @property
    def halves(self) -> int:
        """Halves of tiles that a stage holds."""
        return self.rows // HALF * len(self.found.matrices)

    @property
    def pitch(self) -> int:
        """Bytes of a record: digits, then the unit and sums; records that follow lie in other banks."""
        tail = (1 + self.chunk // self.width) * F32.size
        size = -(-(DIGITS * self.chunk + tail) // PIECE) * PIECE
        return size + (ALIGNMENT // 4 - size) % (ALIGNMENT // 2)

    @property
    def zeros(self) -> int:
        """Bytes of zeros behind the records."""
        return DIGITS * self.chunk

    @property
    def vector(self) -> int:
        """Floats that a vector takes in shared memory."""
        return (self.chunks * self.pitch + self.zeros) // F32.size

    def apart(self, matrix: int, plane: Plane) -> int:
        """Bytes from one row of a plane to the next in a stage."""
        is_main = plane.buffer == self.found.matrices[matrix].main.access.buffer
        if not (self.spread and is_main and plane.is_even):
            return plane.row
        return plane.row + (ALIGNMENT // 2 - plane.row) % ALIGNMENT


def plan(found: Packed, options: dict[str, int]) -> Plan | None:
    """A ring of stages of about `stage` KiB, `flight` KiB of which are on their way; None if none fits."""
    made = plans([found], options)
    return made[0] if made is not None else None


def plans(found: Sequence[Packed], options: dict[str, int]) -> tuple[Plan, ...] | None:
    """The plans of kernels that share a ring; None where one fits none, or they differ in their teams."""
    alone = [_team_of(one, options) for one in found]
    made = [p for p in alone if p is not None]
    if not made or len(made) < len(alone) or len({(p.warps, p.teams) for p in made}) > 1:
        return None
    total, most = sum(p.found.count for p in made), options.get("stage", 32) << 10
    tall = [_tall(replace(p, total=total), most) for p in made]
    slot, teams = max(p.stage for p in tall), tall[0].teams
    room = ROOM - HEAD - max(p.behind for p in tall)
    stages = min(room // slot, STAGES) // teams * teams
    if stages < 2:
        return None
    flight = min(max(2, (options.get("flight", 64) << 10) // slot), stages)
    return tuple(replace(p, stages=stages, flight=flight, slot=slot) for p in tall)


@Memo
def _teams(found: Packed) -> dict[tuple[tuple[str, int], ...], Plan | None]:
    """The teams that are known for packed matrices, by the numbers of a schedule."""
    return {}


def _team_of(found: Packed, options: dict[str, int]) -> Plan | None:
    known, key = _teams(found), tuple(sorted(options.items()))
    if key not in known:
        known[key] = _team(found, options)
    return known[key]


def _team(found: Packed, options: dict[str, int]) -> Plan | None:
    """The teams that take rows one by one with the least work; None where vectors are too long for them."""
    planes = sum(len(m.planes) for m in found.matrices)
    if len(found.sums) > FOLDS or len(found.matrices) > SUMS or planes > WARP:
        return None
    width, block = found.size([found.inner]), options.get("warps", 15)
    while width > options.get("width", 16) and width % 2 == 0:
        width //= 2
    if options.get("tiles"):
        return _tiles(found, width, block, bool(options.get("spread")))
    first = Plan(found, 1, 1, width, 1, 1, 1)
    every = [replace(first, warps=warps, teams=block // warps) for warps in range(1, block + 1)]
    fitting = [p for p in every if p.held <= HELD]
    return min(fitting, key=lambda p: (p.turns * p.warps, p.held)) if fitting and width % WORD == 0 else None


def _tiles(found: Packed, width: int, block: int, spread: bool) -> Plan | None:
    """The team of most warps among those that take rows with the least work, for tensor cores."""
    fits = width % (2 * WORD) == 0 and width & (width - 1) == 0 and width <= WORD * WARP
    if not fits or len(found.vectors) > 1 or not all(map(_is_of_bytes, found.matrices)):
        return None
    first = Tiles(found, 1, 1, width, HALF, 1, 1, spread=spread)
    every = [replace(first, warps=warps, teams=block // warps) for warps in range(1, block + 1)]
    fitting = [p for p in every if p.held <= COLUMNS]
    return min(fitting, key=lambda p: (p.turns * p.warps, -p.warps)) if fitting else None


def _is_of_bytes(matrix: PackedMatrix) -> bool:
    """Whether a matrix has one part with quants, and bytes hold these."""
    return matrix.in_bytes and sum(bool(p.quants) for p in matrix.parts) == 1


def _tall(made: Plan, most: int) -> Plan:
    """With as many rows in a stage of at most `most` bytes as leave every team some stages."""
    if isinstance(made, Tiles):
        whole = replace(made, rows=2 * HALF)
        fits = (ROOM - HEAD - whole.behind) // whole.stage // made.teams * made.teams >= FEW
        return whole if made.halves % 2 and fits else made
    rows, count = made.most // made.teams, len(made.found.matrices)
    while 2 * made.rows * count <= SUMS and 2 * made.rows <= rows:
        higher = replace(made, rows=2 * made.rows)
        if higher.stage > most:
            break
        made = higher
    return made
