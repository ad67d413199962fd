"""How the rows of a walk come into the rings of its warps, turn by turn."""

from __future__ import annotations

from abc import ABC, abstractmethod

from lumi.backends.cuda.cache import LANES, Rows
from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.matrix import VECTOR
from lumi.backends.cuda.scope import Writer, neighbours, single
from lumi.backends.cuda.tensormap import LINE
from lumi.backends.cuda.walk_plan import Plan
from lumi.llir import spell


class Copies(ABC):
    """Writes what asks for a turn of this warp, and what waits for one."""

    more: tuple[str, ...] = ()
    """What else the function that asks for a turn is given, for a slot of the ring whose name is {slot}."""

    def __init__(self, plan: Plan, w: Writer, expressions: Expressions) -> None:
        self.plan, self.found, self.w, self.expressions = plan, plan.found, w, expressions

    @property
    def parameters(self) -> tuple[str, ...]:
        """What the function that asks for a turn takes, after what all functions take."""
        return "u8 *to", "int cell", "int from", "int last"

    @property
    def maps(self) -> tuple[str, ...]:
        """What functions that ask for turns take at last: how the copy engine sees each buffer."""
        return ()

    @abstractmethod
    def turn(self) -> None:
        """Ask for all rows of a turn; in place of those past the last come zeros."""

    @abstractmethod
    def asked(self) -> None:
        """After a turn was asked for, or would have been."""

    @abstractmethod
    def wait(self) -> None:
        """Wait until all lanes see the turn that is next."""

    @abstractmethod
    def left(self) -> None:
        """After the last read of a turn, or of states that lie where turns do."""

    @abstractmethod
    def end(self) -> None:
        """After the last turn of a segment."""

    def _piece(self, rows: Rows, row: str, piece: str) -> str:
        """CUDA for the address of a piece of a row."""
        x = self.w.declare("int", f"{piece} * {rows.piece}", f"x_{spell.identifier(rows.axis)}_")
        opened = {self.found.axis: single(self.w.declare("int", row, "row"))}
        self.w.here.opened |= {**opened, rows.axis: neighbours(x, rows.piece, rows.piece)}
        return self.expressions.pointer(rows.load.access, {}, {})


class Pieces(Copies):
    """Every thread copies pieces; those of a turn are one lot."""

    def turn(self) -> None:
        """Ask for all pieces of a turn."""
        for header, whole_turn in ((f"if (from + {self.plan.turn - 1} <= last) ", True), ("else ", False)):
            with self.w.block(header):
                for number, rows in enumerate(self.found.rows):
                    self._pieces(number, rows, whole_turn)

    def asked(self) -> None:
        """Make one lot of them."""
        self.w.line("close_lot();")

    def wait(self) -> None:
        """Wait for all lots but the last ones."""
        self.w.line(f"await_lots<{self.plan.stages - 1}>();")

    def left(self) -> None:
        """Copies by threads are in the order of what their threads read."""

    def end(self) -> None:
        """Wait for the lots of nothing."""
        self.w.line("await_lots<0>();")

    def _pieces(self, number: int, rows: Rows, whole_turn: bool) -> None:
        """Ask for the pieces of rows, neighbours by neighbouring threads."""
        w, plan = self.w, self.plan
        count = plan.turn * rows.pieces
        turns = -(-count // LANES)
        place, piece = f"(j * {LANES} + lane) / {rows.pieces}", f"(j * {LANES} + lane) % {rows.pieces}"
        if LANES % rows.pieces == 0:
            place, piece = f"j * {LANES // rows.pieces} + lane / {rows.pieces}", f"lane % {rows.pieces}"
        step = spell.step(rows.load.access, self.found.axis)
        if whole_turn and LANES % rows.pieces == 0 == count % LANES and isinstance(step, int):
            self._whole_turn(number, rows, turns, LANES // rows.pieces * step)
            return
        with w.block(f"#pragma unroll{'' if whole_turn else ' 1'}\nfor (int j = 0; j < {turns}; j++) "):
            w.line(f"const int place = {place};")
            pointer = self._piece(rows, "from + place" if whole_turn else "least(from + place, last)", piece)
            to = f"to + {plan.offset(number)} + place * {plan.pitch(rows)} + {piece} * {VECTOR}"
            size = f"{VECTOR}" if whole_turn else f"from + place <= last ? {VECTOR} : 0"
            inside = f"if (j * {LANES} + lane < {count}) " if count % LANES else ""
            w.line(f"{inside}copy_piece({to}, {pointer}, {size});")

    def _whole_turn(self, number: int, rows: Rows, turns: int, step: int) -> None:
        """Ask for the pieces of rows as many of which as a turn consists of lie `step` elements apart."""
        w, plan = self.w, self.plan
        place, piece = f"lane / {rows.pieces}", f"lane % {rows.pieces}"
        with w.block(""):
            pointer = self._piece(rows, f"from + {place}", piece)
            w.line(f"const auto *const first = {pointer};")
            to = f"to + {plan.offset(number)} + {place} * {plan.pitch(rows)} + {piece} * {VECTOR}"
            w.line(f"u8 *const at = {to};")
            more = LANES // rows.pieces * plan.pitch(rows)
            w.line(f"#pragma unroll\nfor (int j = 0; j < {turns}; j++)")
            w.line(f"  copy_piece(at + j * {more}, first + j * {step}, {VECTOR});")


class Boxes(Copies):
    """The copy engine brings a turn in boxes, for which one thread asks; a slot knows when it is full."""

    more = ("full + {slot}",)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Also what tells that the slot is full."""
        return (*super().parameters, "u64 *full")

    @property
    def maps(self) -> tuple[str, ...]:
        """One for each of the rows."""
        return tuple(f"const TensorMap &map{n}" for n in range(len(self.plan.boxed)))

    def turn(self) -> None:
        """Tell the slot how much will come, and ask for it; nothing depends on where the segment ends."""
        w, plan = self.w, self.plan
        w.line("(void)last;")
        with w.block("if (lane == 0) "):
            w.line(f"stage_announce(full, {plan.stage});")
            for number, (rows, boxed) in enumerate(zip(self.found.rows, plan.boxed, strict=True)):
                moves = [(w.opened(axis), step) for axis, step in boxed.moves]
                plane = " + ".join(f"{w.position(o)} * {step}" for o, step in moves if o is not None) or "0"
                for box in range(plan.boxes(rows)):
                    to = f"to + {plan.offset(number) + box * plan.turn * LINE}"
                    place = f"{box * LINE // rows.load.access.dtype.size}, from, {plane}"
                    signal = "shared_place(full)"
                    w.line(f"fetch_box(shared_place({to}), &map{number}, {signal}, {place});")

    def asked(self) -> None:
        """Nothing: a slot has been told how much will come."""

    def wait(self) -> None:
        """Wait until the slot is full; what lies behind the end of the walk becomes 0."""
        w, plan = self.w, self.plan
        w.line("stage_await(full + slot, lap);")
        with w.block(f"if (mine + k * {plan.unit} + {plan.turn - 1} > last) "):
            first = f"(last + 1 - mine - k * {plan.unit}) * 8 + lane"
            w.line(f"for (int n = {first}; n < {8 * plan.turn}; n += {LANES})")
            w.line(f"  for (int box = 0; box < {plan.stage // (plan.turn * LINE)}; box++)")
            place = f"ring + slot * {plan.stage} + box * {plan.turn * LINE}"
            w.line(f"    ((uint4 *)({place}))[n] = make_uint4(0, 0, 0, 0);")
        w.line("__syncwarp();")

    def left(self) -> None:
        """Order what threads read and wrote before what the engine writes."""
        self.w.line("before_copies();")

    def end(self) -> None:
        """Nothing: all that was asked for has been awaited."""
