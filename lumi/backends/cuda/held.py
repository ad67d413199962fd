"""Lines in registers: each thread of a block holds some elements of a line, as they lie in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lumi.backends.cuda import ctype
from lumi.backends.cuda.expression import chunk
from lumi.backends.cuda.line import Lines, is_whole
from lumi.backends.cuda.scope import Value, single
from lumi.backends.cuda.staged import Numbers, Staged
from lumi.backends.cuda.values import long, stores
from lumi.llir import spell
from lumi.llir.kernel import Load
from lumi.llir.program import Fold

MOST = 96
"""Registers in which a thread may hold elements."""

WORD = 4
"""Bytes of a register."""


def registers(found: Lines, load: Load) -> float:
    """Registers in which an element of a load is held: less than one where a word holds several."""
    return load.access.dtype.size / WORD if is_packed(found, load) else 1.0


def is_packed(found: Lines, load: Load) -> bool:
    """Whether a register holds several elements of a load, as memory does."""
    return load.access.dtype.size < WORD and is_whole(found, load.access)


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

    def load_single(self) -> None:
        """Load what a line has one element of: behind a reduction threads would wait for it once more."""
        for load in self.found.single:
            self.expressions.value(load.var, load.dtype)

    # -- taking in

    def arrays(self, letter: str, loads: Sequence[Load]) -> None:
        """Declare an array for each load."""
        for number, load in enumerate(loads):
            kind, each = ctype.register(load.dtype).type, self.width
            if is_packed(self.found, load):
                per = chunk(load.access.dtype, self.width)
                kind, each = f"words<{per * load.access.dtype.size // WORD}>", self.width // per
            self.w.line(f"{kind} {letter}{number}[{self.turns * each}] = {{}};")

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
                if is_packed(self.found, load):
                    pointer = self.expressions.pointer(load.access, {}, {})
                    self.keep_words(f"{letter}{number}", load, pointer, 1, self.expressions.is_passing(load))
                else:
                    self.keep(f"{letter}{number}", self.expressions.value(load.var, load.dtype), inner)

    def keep(self, array: str, value: Value, inner: str) -> None:
        """Put what a thread has taken in a turn into an array."""
        for copy in self.w.copies((inner,)):
            self.w.line(f"{array}[t * {self.width} + {copy[inner]}] = {value.at(copy)};")

    def keep_words(self, array: str, load: Load, pointer: str, apart: int, passing: bool = False) -> None:
        """Put the neighbours of a turn into an array of words; `pointer` counts `apart` for each of them."""
        dtype, per = load.access.dtype, chunk(load.access.dtype, self.width)
        for number in range(self.width // per):
            place = f"{pointer} + {number * per * apart}" if number else pointer
            words = ctype.wide_load(place, dtype, per, passing)
            self.w.line(f"{array}[t * {self.width // per} + {number}] = {words};")

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
        texts: dict[tuple[int, ...], str] = {(k,) * len(axes): self._number(array, load, k) for k in numbers}
        return Value(load.dtype, axes, texts)

    def _number(self, array: str, load: Load, k: int) -> str:
        """CUDA for neighbour `k` of a turn."""
        if not is_packed(self.found, load):
            return f"{array}[t * {self.width} + {k}]"
        dtype = load.access.dtype
        per = chunk(dtype, self.width)
        words = f"{array}[t * {self.width // per} + {k // per}]"
        return ctype.conversion(ctype.part(words, k % per, dtype), dtype, load.dtype)

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
