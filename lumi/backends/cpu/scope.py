"""Where code is being written: nested scopes, the axes each opens, and the values found in each.

A value is computed in the outermost scope in which all its axes are open, so whatever does not depend
on an inner loop stands before it.  An axis may be open for several positions at once: `copies` of the
code, or the eight lanes of vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import product
from typing import TypeAlias

from lumi.backends.cpu.ctype import LANES
from lumi.dtype import DType
from lumi.llir.program import Program, axes_of

CELL = 1
"""The number of the scope of a cell; the function's own is 0."""

Copy: TypeAlias = "Mapping[str, int]"
"""Which copy of each unrolled axis is meant."""


class Form(Enum):
    """What the lanes of a value are."""

    SCALAR = auto()
    LANES = auto()
    PARTIAL = auto()
    """Eight addends, whose sum is the value."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value in registers: one C expression for each copy of the unrolled axes it depends on."""

    dtype: DType
    form: Form
    axes: tuple[str, ...]
    texts: Mapping[tuple[int, ...], str]

    def at(self, copy: Copy) -> str:
        """The C expression of one copy."""
        return self.texts[tuple(copy[a] for a in self.axes)]

    def copies(self) -> Iterator[Copy]:
        """Every copy it has."""
        return (dict(zip(self.axes, key, strict=True)) for key in self.texts)


@dataclass(frozen=True, slots=True)
class Opened:
    """An open axis: its C variable, how many copies of the code, whether each copy is eight lanes."""

    variable: str
    copies: int = 1
    lanes: bool = False

    @property
    def width(self) -> int:
        """Positions that one turn of the loop covers."""
        return self.copies * (LANES if self.lanes else 1)

    def at(self, number: int) -> int:
        """The offset of the first position of a copy from the variable."""
        return number * (LANES if self.lanes else 1)


@dataclass(frozen=True, slots=True)
class Range:
    """The positions of an axis that are being computed: C for its ends; lengths that are known.

    `length` is exact, `bound` the most there can be.
    """

    start: str
    stop: str
    length: int | None = None
    bound: int | None = None


@dataclass(slots=True)
class Scope:
    """One block of C: the axes it opens, its lines so far, the values computed in it.

    `level` is the number of tile loops around it.
    """

    level: int
    opened: dict[str, Opened] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blocking:
    """How many copies of the code a nest of reductions runs at once, along two axes and the lanes.

    What is read once is fetched `ahead` bytes before it is used; 0 leaves that to the processor.
    """

    rows: int = 1
    columns: int = 1
    unroll: int = 1
    ahead: int = 0


@dataclass(slots=True)
class Writer:
    """The state of writing one kernel: scopes, current ranges, arrays, and fresh names."""

    program: Program
    blocking: Blocking
    buffers: Mapping[str, str]
    scopes: list[Scope] = field(default_factory=list)
    ranges: dict[str, Range] = field(default_factory=dict)
    arrays: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    count: int = 0

    @property
    def here(self) -> Scope:
        """The innermost scope."""
        return self.scopes[-1]

    def fresh(self, stem: str) -> str:
        """A C name that nothing else has."""
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str) -> None:
        """Add a line to the innermost scope."""
        self.here.lines.append(text)

    def declare(self, ctype: str, text: str, stem: str = "v") -> str:
        """A new constant in the innermost scope; its name."""
        name = self.fresh(stem)
        self.line(f"const {ctype} {name} = {text};")
        return name

    def opened(self, axis: str) -> Opened | None:
        """How an axis is open here, if it is."""
        for scope in reversed(self.scopes):
            if axis in scope.opened:
                return scope.opened[axis]
        return None

    def lane(self) -> str | None:
        """The axis along which values here have lanes."""
        for scope in self.scopes:
            for axis, opened in scope.opened.items():
                if opened.lanes:
                    return axis
        return None

    def depth(self, var: str) -> int:
        """The number of the scope that a value belongs to."""
        axes = axes_of(self.program.definitions[var])
        level = self.program.levels[var]
        depth = next(k for k, s in enumerate(self.scopes) if s.level >= level)
        for k, scope in enumerate(self.scopes):
            if any(a in scope.opened for a in axes):
                depth = max(depth, k)
        return max(depth, CELL) if var in self.program.carried else depth

    @contextmanager
    def outside(self, depth: int) -> Iterator[Scope]:
        """Write in the scope of that number instead."""
        inner = self.scopes
        self.scopes = inner[: depth + 1]
        try:
            yield self.here
        finally:
            self.scopes = inner

    @contextmanager
    def block(
        self, header: str, opened: Mapping[str, Opened] | None = None, tile: bool = False
    ) -> Iterator[Scope]:
        """Write `header { … }`; the lines go to the scope around it when the block ends."""
        scope = Scope(self.here.level + tile, dict(opened or {}))
        self.scopes = [*self.scopes, scope]
        yield scope
        self.scopes = self.scopes[:-1]
        self.here.lines += [f"{header}{{", *(f"  {line}" for line in scope.lines), "}"]

    def unrolled(self, axes: tuple[str, ...]) -> tuple[str, ...]:
        """Those of `axes` that are open with more than one copy."""
        found = ((a, self.opened(a)) for a in axes)
        return tuple(a for a, o in found if o is not None and o.copies > 1)

    def copies(self, axes: tuple[str, ...]) -> Iterator[Copy]:
        """Every copy of the unrolled `axes`."""
        numbers = []
        for axis in axes:
            opened = self.opened(axis)
            numbers.append(range(opened.copies if opened else 1))
        return (dict(zip(axes, key, strict=True)) for key in product(*numbers))

    def coordinate(self, axis: str, copy: Copy, lane: int = 0) -> tuple[str, int]:
        """The position along an open axis in a copy, as a C variable and an offset from it."""
        opened = self.opened(axis)
        assert opened is not None, f"axis {axis} is not open"
        return opened.variable, opened.at(copy.get(axis, 0)) + lane
