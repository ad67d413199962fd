"""Values whose operands lie in shared memory: the loads of some rows read a stage."""

from __future__ import annotations

from lumi.backends.clike.scope import Copy
from lumi.backends.cuda import ctype
from lumi.backends.cuda.expression import WIDEST, Expressions, FoldWriter, divides
from lumi.backends.cuda.scope import Value, Writer
from lumi.backends.cuda.unpack import WORD
from lumi.llir import spell
from lumi.llir.kernel import Load


class Staging(Expressions):
    """Computes values; what `places` name reads shared memory, where the row lies that is open.

    `places` are by load: a pointer to the row, and the elements before the first row.  `rows` are the axes
    of rows, `inner` the one along which `width` neighbours are open.
    """

    def __init__(
        self, writer: Writer, fold: FoldWriter, rows: tuple[str, ...], inner: str, width: int
    ) -> None:
        super().__init__(writer, fold)
        self.rows, self.inner, self.width = rows, inner, width
        self.places: dict[str, tuple[str, int]] = {}
        self._known: dict[tuple[str, tuple[tuple[str, int], ...]], list[str]] = {}

    def forget(self) -> None:
        """Let what was read be read anew: the row is another, or where it was declared is closed."""
        self._known.clear()

    def load(self, definition: Load) -> Value:
        """The elements of a load at all open positions."""
        if definition.var not in self.places:
            return super().load(definition)
        w, dtype, texts = self.w, definition.access.dtype, dict[tuple[int, ...], str]()
        axes = w.unrolled(definition.axes)
        pair = next((a for a in axes if self._is_pair(definition, a)), None)
        lane = self.inner if pair is None else pair
        for copy in w.copies(tuple(a for a in axes if a != lane)):
            found = self._elements(definition, copy) if pair is None else self._pair(definition, copy, pair)
            for k, text in enumerate(found):
                text = ctype.conversion(text, dtype, definition.dtype)
                key = tuple(({**copy, lane: k})[a] for a in axes)
                texts[key] = w.declare(ctype.register(definition.dtype).type, text)
        return Value(definition.dtype, axes, texts)

    def words(self, load: Load, copy: Copy) -> list[str]:
        """CUDA for the words of the bytes of neighbours, in one copy of the code."""
        count = self._together(load)
        if count < WORD:
            texts = self._elements(load, copy)
            return [f"four({', '.join(texts[k : k + WORD])})" for k in range(0, self.width, WORD)]
        return [f"{raw}.w[{k}]" for raw in self._raw(load, count, copy) for k in range(count // WORD)]

    def _elements(self, load: Load, copy: Copy) -> list[str]:
        """CUDA for neighbours, or for the one element that all of them share."""
        dtype, count = load.access.dtype, self._together(load)
        if count * dtype.size >= WORD:
            return [ctype.part(raw, k, dtype) for raw in self._raw(load, count, copy) for k in range(count)]
        numbers = range(self.width if self.inner in load.axes else 1)
        pointers = (self._pointer(load, {**copy, self.inner: k}) for k in numbers)
        return [ctype.load(f"(const {ctype.memory(dtype)} *)({p})", dtype) for p in pointers]

    def _is_pair(self, load: Load, axis: str) -> bool:
        """Whether the copies of an axis are two bytes side by side, which one instruction reads."""
        opened = self.w.opened(axis)
        if self.inner in load.axes or load.access.dtype.size > 1 or opened is None or opened.copies != 2:
            return False
        beside = spell.step(load.access, axis) == 1
        return beside and divides(load.access, 2, lambda a: 2 if a == axis else 1)

    def _pair(self, load: Load, copy: Copy, axis: str) -> list[str]:
        """CUDA for two bytes side by side."""
        raw = self.w.declare("words<1>", f"{{*(const u16 *)({self._pointer(load, {**copy, axis: 0})})}}", "w")
        return [ctype.part(raw, k, load.access.dtype) for k in range(2)]

    def _raw(self, load: Load, count: int, copy: Copy) -> list[str]:
        """Variables that hold neighbours, `count` each."""
        key = load.var, tuple((a, k) for a, k in copy.items() if a in load.axes)
        if key not in self._known:
            firsts = range(0, self.width, count)
            pointers = (self._pointer(load, {**copy, self.inner: k}) for k in firsts)
            reads = (ctype.wide_load(p, load.access.dtype, count, passing=False) for p in pointers)
            self._known[key] = [self.w.declare("auto", r, "w") for r in reads]
        return self._known[key]

    def _together(self, load: Load) -> int:
        """How many neighbours one instruction reads."""
        if self.inner not in load.axes or spell.step(load.access, self.inner) != 1:
            return 1
        counts = (
            1 << k for k in reversed(range(min(WIDEST // load.access.dtype.size, self.width).bit_length()))
        )
        return next(k for k in counts if self._is_at_multiple(load, k))

    def _is_at_multiple(self, load: Load, count: int) -> bool:
        """Whether neighbours begin at a multiple of `count` elements."""
        return divides(load.access, count, lambda axis: count if axis == self.inner else 1)

    def _pointer(self, load: Load, copy: Copy) -> str:
        """CUDA for the address of an element of the row that is open."""

        def at(axis: str) -> tuple[str, int]:
            return ("0", 0) if axis in self.rows else self.w.coordinate(axis, copy)

        place, before = self.places[load.var]
        element = spell.element(load.access, at, lambda number: "0", self.w.buffers)
        return f"{place} + ({element}{f' - {before}' if before else ''}) * {load.access.dtype.size}"
