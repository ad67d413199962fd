"""Where code is being written: nested scopes, the axes each opens, and the values found in each.

A value is computed in the outermost scope in which all its axes are open, so whatever does not depend
on an inner loop stands before it.  An axis may be open at several positions at once: in copies of the code.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import ClassVar, Generic, Protocol, TypeAlias, TypeVar

from lumi.dim import Extent
from lumi.llir.program import Program, axes_of

CELL = 1
"""The number of the scope of a cell; the function's own is 0."""

Copy: TypeAlias = "Mapping[str, int]"
"""Which copy of each unrolled axis is meant."""


class Open(Protocol):
    """An open axis."""

    @property
    def copies(self) -> int:
        """How many copies of the code there are."""
        ...


Opening = TypeVar("Opening", bound=Open)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Range:
    """The positions of an axis that are being computed: code for its ends; lengths that are known.

    `length` is exact, `bound` the most there can be; both ends are multiples of `multiple`.
    """

    start: str
    stop: str
    length: int | None = None
    bound: int | None = None
    multiple: int = 1


@dataclass(frozen=True, slots=True)
class Held:
    """A value in memory of the cell: its variable, and the axes it extends along with their ranges.

    The ranges are those of its making: inside loops over tiles others are current, its elements stay.
    """

    name: str
    axes: tuple[str, ...]
    ranges: Mapping[str, Range]

    def place(self, at: Callable[[str], tuple[str, int]]) -> str:
        """Code for the address of an element, whose position along an axis `at` tells."""
        parts = []
        for number, axis in enumerate(self.axes):
            variable, offset = at(axis)
            span = self.ranges[axis]
            place = variable if span.start == "0" else f"({variable} - {span.start})"
            place = f"({place} + {offset})" if offset else place
            stride = math.prod(self.ranges[inner].bound or 0 for inner in self.axes[number + 1 :])
            parts.append(place if stride == 1 else f"{place} * {stride}")
        return " + ".join([self.name, *parts])


@dataclass(slots=True)
class Scope(Generic[Opening, V]):
    """One block of code: the axes it opens, its lines so far, the values computed in it.

    `level` is the number of tile loops around it, `team` the number of threads that compute each value
    together.
    """

    level: int
    team: int = 1
    opened: dict[str, Opening] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    values: dict[str, V] = field(default_factory=dict)


@dataclass(slots=True)
class BaseWriter(ABC, Generic[Opening, V]):
    """The state of writing one kernel: scopes, current ranges, arrays, and fresh names.

    `arrays` are the values that lie in memory of the cell.  `integer` is the type of positions.
    """

    integer: ClassVar[str]

    program: Program
    buffers: Mapping[str, str]
    scopes: list[Scope[Opening, V]] = field(default_factory=list)
    ranges: dict[str, Range] = field(default_factory=dict)
    arrays: dict[str, Held] = field(default_factory=dict)
    count: int = 0

    @abstractmethod
    def extent(self, extent: Extent) -> str:
        """Code for the number of positions of an axis."""

    @abstractmethod
    def at(self, variable: str) -> Opening:
        """An axis open at the one position in a variable."""

    @abstractmethod
    def position(self, opened: Opening) -> str:
        """The variable of the first position at which an axis is open."""

    @abstractmethod
    def ends(self, opened: Opening) -> tuple[str, str]:
        """The first and the last position at which an axis is open, as doubles."""

    @property
    def here(self) -> Scope[Opening, V]:
        """The innermost scope."""
        return self.scopes[-1]

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str) -> None:
        """Add a line to the innermost scope."""
        self.here.lines.append(text)

    def declare(self, kind: str, text: str, stem: str = "v") -> str:
        """A new constant in the innermost scope; its name."""
        name = self.fresh(stem)
        self.line(f"const {kind} {name} = {text};")
        return name

    def opened(self, axis: str) -> Opening | None:
        """How an axis is open here, if it is."""
        for scope in reversed(self.scopes):
            if axis in scope.opened:
                return scope.opened[axis]
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
    def outside(self, depth: int) -> Iterator[Scope[Opening, V]]:
        """Write in the scope of that number instead."""
        inner = self.scopes
        self.scopes = inner[: depth + 1]
        try:
            yield self.here
        finally:
            self.scopes = inner

    @contextmanager
    def block(
        self,
        header: str,
        opened: Mapping[str, Opening] | None = None,
        tile: bool = False,
        team: int | None = None,
    ) -> Iterator[Scope[Opening, V]]:
        """Write `header { … }`; the lines go to the scope around it when the block ends."""
        own = self.here.team if team is None else team
        scope: Scope[Opening, V] = Scope(self.here.level + tile, own, dict(opened or {}))
        self.scopes = [*self.scopes, scope]
        yield scope
        self.scopes = self.scopes[:-1]
        *before, last = header.split("\n")
        self.here.lines += [*before, f"{last}{{", *(f"  {line}" for line in scope.lines), "}"]

    def hold(self, var: str, name: str, axes: tuple[str, ...]) -> None:
        """Enter a value into the arrays: it lies in a variable, over the current ranges of its axes."""
        self.arrays[var] = Held(name, axes, {a: self.ranges[a] for a in axes})

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
