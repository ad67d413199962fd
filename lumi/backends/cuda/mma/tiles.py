"""Values of tiles, in the registers of a warp: single ones, of rows, of columns, and of both.

A value of both is an array over the rows and the columns of a thread, written and read by loops that are
unrolled; inside of such a loop the axes of the tile are open, and values are computed as everywhere.
Whoever multiplies tiles in another way may share all of this, as long as its results lie as those here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lumi.backends.cuda import ctype
from lumi.backends.cuda.mma.elements import Elements, Scaled
from lumi.backends.cuda.scope import Opened, Value, Writer, neighbours, single
from lumi.dtype import DType
from lumi.llir import spell
from lumi.llir.program import axes_of, dtype_of


@dataclass(frozen=True, slots=True)
class Along:
    """How the positions of an axis are shared: `count` steps of `step` from `first` on, each of `width`.

    `first` is a thread's first position.  Positions may reach past `stop`, the end of the axis, unless it is
    empty.  With `even` pairs begin at even positions, and are within the axis or beyond it together.
    """

    axis: str
    first: str
    count: int
    step: int
    width: int
    stop: str
    even: bool


@dataclass(frozen=True, slots=True)
class Held:
    """A value in registers: an array over rows, over columns of an axis, or over both; times `scale`."""

    name: str
    dtype: DType
    rows: bool
    columns: str | None
    scale: float = 1.0


@dataclass(slots=True)
class Tiles:
    """Writes loops over the rows and columns of a warp's tile."""

    w: Writer
    elements: Elements
    row: Along
    columns: dict[str, Along] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)

    # -- loops

    @contextmanager
    def rows(self) -> Iterator[None]:
        """A loop over the rows of a thread; inside, `i` is the number of a row."""
        with self.w.block(f"#pragma unroll\nfor (int i = 0; i < {self.row.count}; i++) ") as scope:
            scope.opened[self.row.axis] = self._opened(self.row, "i")
            self._enter(rows=True, columns=None)
            yield

    @contextmanager
    def across(self, axis: str) -> Iterator[None]:
        """A loop over the columns of a thread; inside, `j` is the number of a pair of columns."""
        along = self.columns[axis]
        with self.w.block(f"#pragma unroll\nfor (int j = 0; j < {along.count}; j++) ") as scope:
            scope.opened[axis] = self._opened(along, "j")
            if self.w.opened(self.row.axis) is not None:
                self._enter(rows=True, columns=axis)
            self._enter(rows=False, columns=axis)
            yield

    @contextmanager
    def both(self, axis: str) -> Iterator[None]:
        """A loop over the rows, and in it one over the columns."""
        with self.rows(), self.across(axis):
            yield

    def _opened(self, along: Along, number: str) -> Opened:
        """The positions of a turn, none of which lies behind the end of the axis."""
        w, text = self.w, f"{along.first} + {number} * {along.step}"
        stem = f"x_{spell.identifier(along.axis)}_"
        if along.width == 1:
            return single(w.declare("int", self._clipped(text, along, 1), stem))
        if along.even:
            return neighbours(w.declare("int", self._clipped(text, along, 2), stem), 2, 2)
        places = [w.declare("int", self._clipped(f"{text} + {k}", along, 1), stem) for k in range(2)]
        return Opened(tuple((place, 0) for place in places))

    @staticmethod
    def _clipped(text: str, along: Along, count: int) -> str:
        return f"least({text}, {along.stop} - {count})" if along.stop else text

    def inside(self, along: Along, number: str, copy: int) -> str:
        """CUDA for whether a position of a turn is one of the axis; empty when it always is."""
        if not along.stop:
            return ""
        return f"{along.first} + {number} * {along.step}{f' + {copy}' if copy else ''} < {along.stop}"

    # -- values in registers

    def _enter(self, rows: bool, columns: str | None) -> None:
        """Enter the held values of such tiles into the scope at hand."""
        for var, held in self.held.items():
            if held.rows != rows or held.columns != columns:
                continue
            if columns is None:
                value = Value(held.dtype, (), {(): f"{held.name}[i]"})
            else:
                place = f"{held.name}[i]" if rows else held.name
                value = Value(held.dtype, (columns,), {(k,): f"{place}[j * 2 + {k}]" for k in range(2)})
            if held.scale != 1.0:
                self.elements.scaled[var] = Scaled(value, held.scale)
                value = self.elements.scaled_up(value, held.scale)
            self.w.here.values[var] = value

    def array(self, name: str, dtype: DType, rows: bool, columns: str | None, start: str = "") -> None:
        """Declare an array of such a tile."""
        sizes = [self.row.count] if rows else []
        sizes += [] if columns is None else [2 * self.columns[columns].count]
        ends = "".join(f"[{n}]" for n in sizes)
        self.w.line(f"{ctype.register(dtype).type} {name}{ends}{start};")

    def hold(self, var: str) -> Held:
        """Compute a value of rows, of columns or of both, and keep it in registers."""
        definition = self.w.program.definitions[var]
        dtype, axes = dtype_of(definition), axes_of(definition)
        columns = next((a for a in axes if a in self.columns), None)
        rows = columns is None or self.row.axis in axes
        held = Held(self.w.fresh("t"), dtype, rows, columns)
        self.array(held.name, dtype, rows, columns)
        if columns is None:
            with self.rows():
                self.w.line(f"{held.name}[i] = {self.elements.value(var, dtype).texts[()]};")
        else:
            with self.both(columns) if rows else self.across(columns):
                value = self.elements.value(var, dtype)
                place = f"{held.name}[i]" if rows else held.name
                for copy in self.w.copies((columns,)):
                    text = value.at({a: copy[a] for a in value.axes})
                    self.w.line(f"{place}[j * 2 + {copy[columns]}] = {text};")
        self.held[var] = held
        return held
