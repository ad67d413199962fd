"""The blocks of a kernel while it is written, from its body to the innermost open loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from lumi.field.axis import LIMIT
from lumi.llir.kernel import Dot, Load, Map, Operand, Position, Reduce, Statement, Symbol
from lumi.search.dag import AXES
from lumi.search.draft import InfeasibleError

Definition: TypeAlias = "Load | Position | Symbol | Map | Reduce | Dot"
"""A statement that names a value."""


@dataclass(slots=True, eq=False)
class Scope:
    """A block being written: the kernel's body, or that of a loop over `axes` (a mask).

    `domain` is the accumulators' domain when the loop carries any.  `roots` are the values it is for.
    The rest remembers what already stands in it.
    """

    axes: int
    roots: tuple[int, ...]
    domain: int | None = None
    statements: list[Statement] = field(default_factory=list)
    values: dict[int, Operand] = field(default_factory=dict)
    finals: dict[int, str] = field(default_factory=dict)
    previous: dict[int, str] = field(default_factory=dict)
    running: dict[int, str] = field(default_factory=dict)


class Scopes:
    """The open blocks, outermost first; `always` are the axes open everywhere (a mask)."""

    def __init__(self, top: Scope, always: int) -> None:
        self.open, self.always, self.variables = [top], always, 0

    @property
    def innermost(self) -> Scope:
        """The block that statements go to."""
        return self.open[-1]

    def fresh(self) -> str:
        """A new name."""
        self.variables += 1
        return f"v{self.variables}"

    def emit(self, statement: Definition) -> str:
        """Write a definition; its name."""
        self.innermost.statements.append(statement)
        return statement.var

    def depth(self, free: int) -> int:
        """The number of the innermost block whose loop a value with these axes depends on."""
        for depth in range(len(self.open) - 1, 0, -1):
            axes = self.open[depth].axes
            if free & (axes | axes << LIMIT):
                return depth
        return 0

    def covers(self, free: int) -> bool:
        """Whether every axis is a grid axis, held whole, or the axis of an open loop."""
        opened = self.always
        for scope in self.open:
            opened |= scope.axes
        return not free & AXES & ~opened

    def loop_of(self, accumulator: int, domain: int) -> Scope:
        """The open loop that advances an accumulator over a domain."""
        for scope in reversed(self.open):
            if scope.domain == domain:
                if accumulator in scope.previous:
                    return scope
                break
        raise InfeasibleError("a running value is used outside its loop")
