"""A turn of a walk: the statements of its loop in order, whatever threads have which values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from lumi.backends.cuda import ctype
from lumi.backends.cuda.cache import Rows, Update
from lumi.backends.cuda.expression import Expressions
from lumi.backends.cuda.scope import Value, Writer
from lumi.backends.cuda.scope import single as opened
from lumi.backends.cuda.walk_plan import Plan
from lumi.dtype import F32
from lumi.llir import arithmetic, spell
from lumi.llir.kernel import Dot, Operand, Reduce


class Turns(ABC):
    """Writes turns.  What is single for a head is one register of each thread that has the head."""

    def __init__(self, plan: Plan, w: Writer, expressions: Expressions) -> None:
        self.plan, self.found, self.w, self.expressions = plan, plan.found, w, expressions

    def begin(self) -> None:
        """Declare what is carried, and hold the vectors as threads multiply them."""
        for single in self.found.singles:
            op = single.carry.op
            start = ctype.literal(float(arithmetic.identity(op, F32)), F32)
            self.w.line(f"float {carried(single.carry.previous)} = {start};")
        self.declare()
        for number, rows in enumerate(self.found.products):
            self.hold(number, rows)

    def share(self) -> None:
        """Let the whole block put the vectors of all heads into shared memory."""
        for number, rows in enumerate(self.found.products):
            self.spread(number, rows)
        if self.found.products:
            self.w.line("__syncthreads();")

    def turn(self) -> None:
        """The statements of the loop at the positions from `from` on, whose rows lie in `stage`."""
        w, found = self.w, self.found
        self.open_positions()
        for single in found.singles:
            previous = single.carry.previous
            w.here.values[previous] = Value(F32, (), {(): carried(previous)})
        products = {r.dot.var: (n, r) for n, r in enumerate(found.products)}
        for statement in found.loop.body:
            if isinstance(statement, Dot) and statement.var in products:
                number, rows = products[statement.var]
                w.here.values[rows.dot.var] = self.product(number, rows)
            elif isinstance(statement, Reduce):
                w.here.values[statement.var] = self.reduced(statement)
        values = [self.one(s.carry.next) for s in found.singles]
        for number, update in enumerate(found.updates):
            self.add_rows(number, update)
        for single, text in zip(found.singles, values, strict=True):
            w.line(f"{carried(single.carry.previous)} = {text};")

    def one(self, operand: Operand) -> str:
        """CUDA for a value that is the same at all positions of a turn."""
        return self.expressions.value(operand, F32).texts[()]

    def leave(self) -> None:
        """Put what this warp has carried into its state."""
        w, plan = self.w, self.plan
        w.line(f"float *const state = (float *)(pool + {plan.ring}) + warp * {plan.state};")
        with w.block(f"if ({self.owner}) "):
            for number, single in enumerate(self.found.singles):
                place = f"state[{number * plan.heads} + {self.head}]"
                w.line(f"{place} = {carried(single.carry.previous)};")
        for number, update in enumerate(self.found.updates):
            first = plan.head_of_state + number * plan.heads * plan.columns
            self.leave_sums(number, update, f"state + {first}")

    @property
    @abstractmethod
    def head(self) -> str:
        """CUDA for the place of the head that a thread has."""

    @property
    @abstractmethod
    def owner(self) -> str:
        """CUDA for "this thread is the one that tells the values of its head"."""

    @abstractmethod
    def declare(self) -> None:
        """Declare the sums of rows."""

    @abstractmethod
    def spread(self, number: int, rows: Rows) -> None:
        """Put the vectors of a product into shared memory, with zeros behind them."""

    @abstractmethod
    def hold(self, number: int, rows: Rows) -> None:
        """Take the vectors of a product from shared memory into registers."""

    @abstractmethod
    def open_positions(self) -> None:
        """Open the axis of the walk at the positions that a thread has, none past the last."""

    @abstractmethod
    def product(self, number: int, rows: Rows) -> Value:
        """The products of the vectors with all rows of a turn, at the heads and positions of each thread."""

    @abstractmethod
    def reduced(self, statement: Reduce) -> Value:
        """A reduction along the walk, which every thread of a head has."""

    @abstractmethod
    def add_rows(self, number: int, update: Update) -> None:
        """Scale the sums of rows so far, and add the rows of this turn by their weights."""

    @abstractmethod
    def leave_sums(self, number: int, update: Update, to: str) -> None:
        """Put this warp's sums of rows into shared memory, those of each head behind each other."""


def open_at(w: Writer, axes: Sequence[str], number: str) -> None:
    """Open axes at the point of a number, the last axis running fastest."""
    rest = number
    for place, axis in reversed(list(enumerate(axes))):
        extent, x = w.extent(w.program.kernel.axes[axis]), f"x_{spell.identifier(axis)}_"
        text = f"({rest}) % {extent}" if place else rest
        w.here.opened[axis] = opened(w.declare("int", text, x))
        if place:
            rest = w.declare("int", f"({rest}) / {extent}", "rest")


def carried(var: str) -> str:
    """The register of a single value that is carried."""
    return f"c_{spell.identifier(var)}"
