"""Where CUDA is being written: as in `clike.scope`, by threads of a block.

The threads that work on one value together are the *team* of a scope: all of the block, a group of
neighbours, or one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from lumi.backends.clike.scope import BaseWriter, Copy
from lumi.dim import Extent
from lumi.dtype import DType
from lumi.llir import spell

_BARRIER = "__syncthreads();"


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
class Blocking:
    """How a block of threads works: its size, results a group computes at once, loads under way at once."""

    threads: int = 256
    rows: int = 1
    unroll: int = 4


@dataclass(slots=True)
class Writer(BaseWriter[Opened, Value]):
    """The state of writing one kernel as CUDA; `shared` are the values that all threads of a block see.

    With `apart` the threads of a team are as far from each other as they can be, else side by side.  With
    `partial` the block has other threads behind those, which take no part.
    """

    integer: ClassVar[str] = "int"

    blocking: Blocking = field(default_factory=Blocking)
    shared: set[str] = field(default_factory=set)
    apart: bool = False
    partial: bool = False

    def extent(self, extent: Extent) -> str:
        """CUDA for the number of positions of an axis."""
        return str(extent) if isinstance(extent, int) else f"(int){spell.extent(extent)}"

    def at(self, variable: str) -> Opened:
        """An axis open at the one position in a variable."""
        return single(variable)

    def position(self, opened: Opened) -> str:
        """The variable of the first position at which an axis is open."""
        return opened.places[0][0]

    def ends(self, opened: Opened) -> tuple[str, str]:
        """The first and the last position at which an axis is open, as doubles."""
        (first, before), (last, behind) = opened.places[0], opened.places[-1]
        return f"(double)({first} + {before})", f"(double)({last} + {behind})"

    def barrier(self) -> None:
        """Let all threads of the block wait for each other, unless they just did."""
        text = f"threads_wait<{self.blocking.threads}>();" if self.partial else _BARRIER
        if not self.here.lines or self.here.lines[-1] != text:
            self.line(text)

    def coordinate(self, axis: str, copy: Copy) -> tuple[str, int]:
        """The position along an open axis in a copy, as a variable and an offset from it."""
        opened = self.opened(axis)
        assert opened is not None, f"axis {axis} is not open"
        return opened.places[copy.get(axis, 0)]

    def is_uniform(self) -> bool:
        """Whether all threads of a block run this scope together."""
        return all(s.team == self.blocking.threads for s in self.scopes)
