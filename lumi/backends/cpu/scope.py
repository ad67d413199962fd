"""Where C is being written: as in `clike.scope`, and an axis may be open for the eight lanes of vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import ClassVar

from lumi.backends.clike.scope import BaseWriter, Copy
from lumi.backends.cpu.ctype import LANES
from lumi.dim import Extent
from lumi.dtype import DType
from lumi.llir import spell


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
class Blocking:
    """How many copies of the code a nest of reductions runs at once, along two axes and the lanes.

    What is read once is fetched `ahead` bytes before it is used; 0 leaves that to the processor.  With
    `bytes` sums of products of bytes are computed from vectors of bytes.
    """

    rows: int = 1
    columns: int = 1
    unroll: int = 1
    ahead: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Writer(BaseWriter[Opened, Value]):
    """The state of writing one kernel as C, blocked in some way."""

    integer: ClassVar[str] = "int64_t"

    blocking: Blocking = field(default_factory=Blocking)

    def extent(self, extent: Extent) -> str:
        """C for the number of positions of an axis."""
        return spell.extent(extent)

    def at(self, variable: str) -> Opened:
        """An axis open at the one position in a variable."""
        return Opened(variable)

    def position(self, opened: Opened) -> str:
        """The variable of the first position at which an axis is open."""
        return opened.variable

    def ends(self, opened: Opened) -> tuple[str, str]:
        """The first and the last position at which an axis is open, as doubles."""
        return f"(double){opened.variable}", f"(double)({opened.variable} + {opened.width - 1})"

    def lane(self) -> str | None:
        """The axis along which values here have lanes."""
        for scope in self.scopes:
            for axis, opened in scope.opened.items():
                if opened.lanes:
                    return axis
        return None

    def coordinate(self, axis: str, copy: Copy, lane: int = 0) -> tuple[str, int]:
        """The position along an open axis in a copy, as a C variable and an offset from it."""
        opened = self.opened(axis)
        assert opened is not None, f"axis {axis} is not open"
        return opened.variable, opened.at(copy.get(axis, 0)) + lane
