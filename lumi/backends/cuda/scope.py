"""Where code is being written: nested scopes, the axes each opens, the values found in each.

A value is computed in the outermost scope in which all its axes are open.  The threads of a block that
work on one value together are the *team* of a scope: all of the block, a group of neighbours, or one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import TypeAlias

from lumi.dtype import DType
from lumi.llir.program import Program, axes_of

_BARRIER = "__syncthreads();"

CELL = 1
"""The number of the scope of a cell; the function's own is 0."""

Copy: TypeAlias = "Mapping[str, int]"
"""Which copy of each unrolled axis is meant."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value in registers: one CUDA expression for each copy of the unrolled axes it depends on."""

    dtype: DType
    axes: tuple[str, ...]
    texts: Mapping[tuple[int, ...], str]

    def at(self, copy: Copy) -> str:
        """The expression of one copy."""
        return self.texts[tuple(copy[a] for a in self.axes)]


@dataclass(frozen=True, slots=True)
class Opened:
    """An open axis: for each copy of the code its position, as a variable and an offset from it.

    With `adjacent` the copies are neighbours, and the first one is a multiple of `multiple`.
    """

    places: tuple[tuple[str, int], ...]
    adjacent: bool = False
    multiple: int = 1

    @property
    def copies(self) -> int:
        """How many copies of the code there are."""
        return len(self.places)


def single(variable: str) -> Opened:
    """An axis open at one position."""
    return Opened(((variable, 0),))


def neighbours(variable: str, count: int, multiple: int) -> Opened:
    """An axis open at `count` positions from a multiple of `multiple` on."""
    return Opened(tuple((variable, k) for k in range(count)), True, multiple)


@dataclass(frozen=True, slots=True)
class Range:
    """The positions of an axis that are being computed: CUDA for its ends; lengths that are known.

    `length` is exact, `bound` the most there can be; both ends are multiples of `multiple`.
    """

    start: str
    stop: str
    length: int | None = None
    bound: int | None = None
    multiple: int = 1


@dataclass(slots=True)
class Scope:
    """One block of code: the axes it opens, its lines so far, the values computed in it.

    `level` is the number of tile loops around it, `team` the number of threads that compute each value
    together.
    """

    level: int
    team: int
    opened: dict[str, Opened] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Blocking:
    """How a block of threads works: its size, results a group computes at once, loads under way at once."""

    threads: int = 256
    rows: int = 1
    unroll: int = 4


@dataclass(slots=True)
class Writer:
    """The state of writing one kernel: scopes, current ranges, arrays, and fresh names.

    `arrays` maps a value to its variable and the axes it extends along; `shared` are those that all
    threads of a block see.
    """

    program: Program
    blocking: Blocking
    buffers: Mapping[str, str]
    scopes: list[Scope] = field(default_factory=list)
    ranges: dict[str, Range] = field(default_factory=dict)
    arrays: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    count: int = 0

    @property
    def here(self) -> Scope:
        """The innermost scope."""
        return self.scopes[-1]

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        self.count += 1
        return f"{stem}{self.count}"

    def line(self, text: str) -> None:
        """Add a line to the innermost scope."""
        self.here.lines.append(text)

    def barrier(self) -> None:
        """Let all threads of the block wait for each other, unless they just did."""
        if not self.here.lines or self.here.lines[-1] != _BARRIER:
            self.line(_BARRIER)

    def declare(self, kind: str, text: str, stem: str = "v") -> str:
        """A new constant in the innermost scope; its name."""
        name = self.fresh(stem)
        self.line(f"const {kind} {name} = {text};")
        return name

    def opened(self, axis: str) -> Opened | None:
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
        self,
        header: str,
        opened: Mapping[str, Opened] | None = None,
        tile: bool = False,
        team: int | None = None,
    ) -> Iterator[Scope]:
        """Write `header { … }`; the lines go to the scope around it when the block ends."""
        own = self.here.team if team is None else team
        scope = Scope(self.here.level + tile, own, dict(opened or {}))
        self.scopes = [*self.scopes, scope]
        yield scope
        self.scopes = self.scopes[:-1]
        *before, last = header.split("\n")
        self.here.lines += [*before, f"{last}{{", *(f"  {line}" for line in scope.lines), "}"]

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

    def coordinate(self, axis: str, copy: Copy) -> tuple[str, int]:
        """The position along an open axis in a copy, as a variable and an offset from it."""
        opened = self.opened(axis)
        assert opened is not None, f"axis {axis} is not open"
        return opened.places[copy.get(axis, 0)]

    def is_uniform(self) -> bool:
        """Whether all threads of a block run this scope together."""
        return all(s.team == self.blocking.threads for s in self.scopes)
