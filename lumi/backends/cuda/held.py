"""Lines in registers: each thread of a block holds some elements of a line, as they lie in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

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

    def arrays(self, letter: str, loads: Sequence[Load], turns: int) -> None:
        """Declare an array for the elements of each load in so many turns."""
        for number, load in enumerate(loads):
            kind, each = ctype.register(load.dtype).type, self.width
            if is_packed(self.found, load):
                per = chunk(load.access.dtype, self.width)
                kind, each = f"words<{per * load.access.dtype.size // WORD}>", self.width // per
            self.w.line(f"{kind} {letter}{number}[{turns * each}] = {{}};")

    def hold(self) -> None:
        """Take what all lines share into registers."""
        if self.found.held:
            self.arrays("h", self.found.held, self.turns)
            self.take_in("h", self.found.held, self.turns)

    def take_in(self, letter: str, loads: Sequence[Load], turns: int) -> None:
        """Load the elements of a thread in so many turns from memory into arrays."""
        with self.turns_of(range(turns)) as inner:
            for number, load in enumerate(loads):
                array = f"{letter}{number}"
                if not is_whole(self.found, load.access):
                    self.keep(array, self.expressions.value(load.var, load.dtype), inner)
                    continue
                pointer = self.expressions.pointer(load.access, {}, {})
                for k, place in enumerate(self.places(load, pointer, 1)):
                    self.keep_words(array, load, k, self.read(load, place))

    @contextmanager
    def turns_of(self, turns: range) -> Iterator[str]:
        """A loop over turns, written out; yields the axis along which a thread takes neighbours."""
        header = f"#pragma unroll\nfor (int t = {turns.start}; t < {turns.stop}; t++) "
        with self.w.block(header), self.elements() as inner:
            yield inner

    def places(self, load: Load, pointer: str, apart: int) -> list[str]:
        """CUDA for where the pieces of a turn lie; `pointer` counts `apart` for each element."""
        per = chunk(load.access.dtype, self.width)
        return [f"{pointer} + {k * apart}" if k else pointer for k in range(0, self.width, per)]

    def read(self, load: Load, place: str) -> str:
        """CUDA for the neighbours that one instruction reads from memory."""
        dtype = load.access.dtype
        return ctype.wide_load(place, dtype, chunk(dtype, self.width), self.expressions.is_passing(load))

    def keep(self, array: str, value: Value, inner: str) -> None:
        """Put what a thread has taken in a turn into an array."""
        for copy in self.w.copies((inner,)):
            self.w.line(f"{array}[t * {self.width} + {copy[inner]}] = {value.at(copy)};")

    def keep_words(self, array: str, load: Load, k: int, words: str) -> None:
        """Put piece `k` of what a thread takes in a turn into an array."""
        dtype, per = load.access.dtype, chunk(load.access.dtype, self.width)
        if is_packed(self.found, load):
            self.w.line(f"{array}[t * {self.width // per} + {k}] = {words};")
            return
        raw = self.w.declare("auto", words, "w")
        for n in range(per):
            text = ctype.conversion(ctype.part(raw, n, dtype), dtype, load.dtype)
            self.w.line(f"{array}[t * {self.width} + {k * per + n}] = {text};")

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
        for elements in self.stretches():
            with elements:
                for fold, name in zip(folds, names, strict=True):
                    self.take(fold, name)
        for fold, name in zip(folds, names, strict=True):
            self.join(fold, name, self.found.folds.index(fold))

    def stretches(self) -> Iterator[AbstractContextManager[None]]:
        """Loops that together run over the elements of a thread."""
        yield self.stretch(range(self.turns), self._element)

    @contextmanager
    def stretch(self, turns: range, element: Callable[[int, Load, str], Value]) -> Iterator[None]:
        """A loop over the elements of some turns; `element` tells what a thread has of stream k."""
        w, found = self.w, self.found
        with self.turns_of(turns) as inner:
            values = [(s, element(k, s, inner)) for k, s in enumerate(found.streams)]
            values += [(h, self.held(f"h{k}", h, inner)) for k, h in enumerate(found.held)]
            for load, value in values:
                for same in self._same(load):
                    w.here.values[same] = value
            yield

    def _element(self, number: int, load: Load, inner: str) -> Value:
        return self.held(f"x{number}", load, inner)

    def held(self, array: str, load: Load, inner: str) -> Value:
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
        for elements in self.stretches() if self.of_elements else ():
            with elements:
                for store in self.of_elements:
                    self.store(store)
        if self.of_lines:
            with self.w.block(f"if ({self.chosen}) "):
                for store in self.of_lines:
                    self.store(store)
