"""Kernels that reduce long lines of memory and read each only once: norms, softmax, cross-entropy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lumi.backends.cuda.expression import divides
from lumi.backends.cuda.matrix import ELEMENTS, VECTOR
from lumi.backends.cuda.untiled import untiled
from lumi.backends.cuda.values import folds_below, loads_below, long, nested, size, stores, without_arrays
from lumi.field.access import Access
from lumi.llir import spell
from lumi.llir.kernel import Dot, Kernel, Load, Reduce, Store, walk
from lumi.llir.program import Fold, Program

SHORT = 512
"""Elements of a line of which the threads of a block would not have several loads under way at once."""


@dataclass(frozen=True, slots=True)
class Lines:
    """A kernel whose results are those of lines, each line by itself.

    `rows` are the axes of the lines, in the order of the grid, and `over` those of the elements of one,
    outermost first.  `streams` are the operands that lines consist of, `held` those that all lines share,
    `single` those that lines have one element of; `folds` reduce a line, each after those it needs.
    """

    program: Program
    rows: tuple[str, ...]
    over: tuple[str, ...]
    streams: tuple[Load, ...]
    held: tuple[Load, ...]
    single: tuple[Load, ...]
    folds: tuple[Fold, ...]

    @property
    def length(self) -> int:
        """Elements of a line."""
        return size(self.program.kernel, self.over)

    @property
    def bytes(self) -> int:
        """Bytes of a line of all streams."""
        return sum(self.length * s.access.dtype.size for s in self.streams)

    @property
    def width(self) -> int:
        """Elements that a thread takes at once: as many as it can move together of the narrowest stream."""
        return VECTOR // min(s.access.dtype.size for s in self.streams)


def find(kernel: Kernel) -> Lines | None:
    """The lines of a kernel that reduces some and does nothing across them; a single line is none."""
    reduced = {a for s in walk(kernel.body) if isinstance(s, Dot | Reduce) for a in s.over}
    if size(kernel, reduced) <= SHORT:
        return None
    flat = untiled(kernel)
    program = without_arrays(flat) if flat is not None else None
    if program is None:
        return None
    results = stores(program)
    values = [s.value for s in results]
    folds = tuple(folds_below(program, values).values())
    if not folds:
        return None
    over = set(long(kernel, folds[0].over))
    rows = tuple(a for a in long(kernel, kernel.grid) if a not in over)
    known = all(isinstance(kernel.axes[a], int) for a in over)
    alike = all(
        set(long(kernel, f.over)) == over and set(long(kernel, f.axes)) == set(rows) and f.dtype in ELEMENTS
        for f in folds
    )
    if not known or not alike or not all(_is_of_line(kernel, s, rows, over) for s in results):
        return None
    if not over or not rows:
        return None
    loads = loads_below(program, values)
    streams = _distinct(x for x in loads if set(long(kernel, x.axes)) == over | set(rows))
    held = _distinct(x for x in loads if long(kernel, x.axes) and set(long(kernel, x.axes)) <= over)
    rest = [x for x in loads if x.access not in {y.access for y in (*streams, *held)}]
    if not streams or any(set(long(kernel, x.axes)) & over for x in rest):
        return None
    if any(x.data for x in (*streams, *held)):
        return None
    order = _in_order(kernel, streams[0].access, over)
    made = Lines(program, rows, order, streams, held, tuple(x for x in rest if not x.data), folds)
    whole = all(is_whole(made, s.access) for s in streams)
    return made if whole and size(kernel, order[-1:]) % made.width == 0 else None


def _distinct(loads: Iterable[Load]) -> tuple[Load, ...]:
    """One load of each access."""
    return tuple({(x.access, x.dtype): x for x in loads}.values())


def _is_of_line(kernel: Kernel, store: Store, rows: tuple[str, ...], over: set[str]) -> bool:
    """Whether a store is of each element of a line, or of each line."""
    return set(long(kernel, store.axes)) in (set(rows), set(rows) | over)


def _in_order(kernel: Kernel, access: Access, over: set[str]) -> tuple[str, ...]:
    """The axes of a line, the one along which elements lie furthest apart first."""

    def apart(axis: str) -> int:
        step = spell.step(access, axis)
        return step if isinstance(step, int) else 0

    return tuple(sorted((a for a in kernel.axes if a in over), key=apart, reverse=True))


def is_whole(found: Lines, access: Access) -> bool:
    """Whether lines of an access lie in one piece each, which can be copied as a whole."""
    steps = nested(found.program.kernel, found.over, 1)
    if access.dtype.size > 4 or any(spell.step(access, a) != s for a, s in steps.items()):
        return False
    return divides(access, VECTOR // access.dtype.size, lambda axis: VECTOR if axis in steps else 1)
