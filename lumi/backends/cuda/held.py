"""Lines in registers: each thread of a block holds some elements of a line, and what is computed of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lumi.backends.cuda import ctype
from lumi.backends.cuda.line import Lines
from lumi.backends.cuda.scope import Value, single
from lumi.backends.cuda.staged import Numbers, Staged
from lumi.backends.cuda.values import long, stores
from lumi.llir import spell
from lumi.llir.kernel import Load
from lumi.llir.program import Fold

MOST = 96
"""Elements that a thread may hold."""


class Held(Staged):
    """Writes what the users of a block do with a line: take it in, reduce it as often as needed, store.

    Arrays `x0`, `x1`, … hold the streams of a line, `h0`, … what all lines share.  What there is one of for
    each line is stored by the thread that `chosen` is true in, as CUDA.
    """

    chosen = "threadIdx.x == 0"

    def __init__(self, found: Lines, numbers: Numbers, name: str) -> None:
        super().__init__(found.program, found.over, numbers, name)
        self.found = found
        results = stores(self.program)
        self.of_elements = [s for s in results if set(long(self.kernel, s.axes)) & set(self.over)]
        self.of_lines = [s for s in results if s not in self.of_elements]

    # -- lines

    def lines(self) -> str:
        """CUDA for the number of lines."""
        return " * ".join(self.extent(a) for a in self.found.rows) or "1"

    def open_line(self) -> None:
        """Open the axes of the lines at the one whose number is `line`."""
        names = {a: self.w.fresh(f"x_{spell.identifier(a)}_") for a in self.found.rows}
        if names:
            self.place("line", names)
        self.w.here.opened |= {a: single(name) for a, name in names.items()}

    # -- taking in

    def arrays(self, letter: str, loads: Sequence[Load]) -> None:
        """Declare an array for each load."""
        for number, load in enumerate(loads):
            kind = ctype.register(load.dtype).type
            self.w.line(f"{kind} {letter}{number}[{self.turns * self.width}] = {{}};")

    def hold(self) -> None:
        """Take what all lines share into registers."""
        if self.found.held:
            self.arrays("h", self.found.held)
            self.take_in("h", self.found.held)

    def take_in(self, letter: str, loads: Sequence[Load]) -> None:
        """Load the elements of a thread from memory into arrays."""
        w = self.w
        with w.block(f"#pragma unroll\nfor (int t = 0; t < {self.turns}; t++) "), self.elements() as inner:
            for number, load in enumerate(loads):
                self.keep(f"{letter}{number}", self.expressions.value(load.var, load.dtype), inner)

    def keep(self, array: str, value: Value, inner: str) -> None:
        """Put what a thread has taken in a turn into an array."""
        for copy in self.w.copies((inner,)):
            self.w.line(f"{array}[t * {self.width} + {copy[inner]}] = {value.at(copy)};")

    # -- computing

    def compute(self) -> None:
        """Reduce the line, pass by pass, then store the results."""
        found = self.found
        levels = [(self.level(f.terms, found.folds), f) for f in found.folds]
        for level in range(max(k for k, _ in levels) + 1):
            self._pass([f for k, f in levels if k == level])
        self._results()

    def _pass(self, folds: Sequence[Fold]) -> None:
        """One loop over the elements of the line for some folds."""
        names = self.accumulators(folds)
        with self._held_elements():
            for fold, name in zip(folds, names, strict=True):
                self.take(fold, name)
        for fold, name in zip(folds, names, strict=True):
            self.join(fold, name, self.found.folds.index(fold))

    @contextmanager
    def _held_elements(self) -> Iterator[None]:
        """A loop over the elements of a thread, whose operands lie in registers."""
        w, found = self.w, self.found
        with w.block(f"#pragma unroll\nfor (int t = 0; t < {self.turns}; t++) "), self.elements() as inner:
            arrays = [(f"x{k}", s) for k, s in enumerate(found.streams)]
            for array, load in [*arrays, *((f"h{k}", h) for k, h in enumerate(found.held))]:
                value = self._element(array, load, inner)
                for same in self._same(load):
                    w.here.values[same] = value
            yield

    def _element(self, array: str, load: Load, inner: str) -> Value:
        """What a thread holds of a load: neighbours, or one value that all of them share."""
        axes = (inner,) if inner in load.axes else ()
        numbers = range(self.width) if axes else range(1)
        texts: dict[tuple[int, ...], str] = {
            (k,) * len(axes): f"{array}[t * {self.width} + {k}]" for k in numbers
        }
        return Value(load.dtype, axes, texts)

    def _same(self, load: Load) -> list[str]:
        """Every load of the same elements."""
        table = self.program.definitions.values()
        loads = [d for d in table if isinstance(d, Load)]
        return [d.var for d in loads if (d.access, d.dtype) == (load.access, load.dtype)]

    def _results(self) -> None:
        if self.of_elements:
            with self._held_elements():
                for store in self.of_elements:
                    self.store(store)
        if self.of_lines:
            with self.w.block(f"if ({self.chosen}) "):
                for store in self.of_lines:
                    self.store(store)
