"""Kernels that multiply stored matrices with a vector: each row lies in one piece and is read once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lumi.backends.cuda.values import folds_below, loads_below, long, nested, size, stores, without_arrays
from lumi.dtype import BF16, F16, F32, DType
from lumi.field.access import Access
from lumi.llir import spell
from lumi.llir.kernel import Dot, Kernel, Load, Operand, Store, walk
from lumi.llir.program import Fold, Program, axes_of
from lumi.memo import Memo

VECTOR = 16
"""Bytes of a row that a thread takes at once."""

ELEMENTS = (BF16, F16, F32)
"""Types of elements that matrices, and sums, may have: those held as f32."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A fold over the rows of a matrix: Σ vector · element, where `load` reads what `element` is made of.

    The first row begins `offset` elements into the buffer.
    """

    fold: Fold
    vector: Operand
    element: str
    load: Load
    offset: int

    @property
    def loads(self) -> tuple[Load, ...]:
        """What elements are made of."""
        return (self.load,)


@dataclass(frozen=True, slots=True)
class Matrices:
    """A kernel over the rows of matrices of one shape and type.

    `rows` and `over` are the axes of the rows and of the elements of one, outermost first; `sums` are folds
    of the vector alone, each after those it needs; axes of one position belong to neither.
    """

    program: Program
    rows: tuple[str, ...]
    over: tuple[str, ...]
    matrices: tuple[Matrix, ...]
    sums: tuple[Fold, ...]

    @property
    def count(self) -> int:
        """Rows."""
        return self.size(self.rows)

    @property
    def length(self) -> int:
        """Elements of a row."""
        return self.size(self.over)

    @property
    def dtype(self) -> DType:
        """The type of an element in memory."""
        return self.matrices[0].load.access.dtype

    @property
    def vectors(self) -> tuple[Operand, ...]:
        """The distinct vectors that rows are multiplied with."""
        return tuple(dict.fromkeys(m.vector for m in self.matrices))

    def size(self, axes: Iterable[str]) -> int:
        """Positions of all axes together."""
        return size(self.program.kernel, axes)


def _find(kernel: Kernel) -> Matrices | None:
    """The matrices of a kernel that multiplies some, and does nothing else that takes long."""
    known = all(isinstance(e, int) and e > 0 for e in kernel.axes.values())
    if not known or not any(isinstance(s, Dot) for s in walk(kernel.body)):
        return None
    program = without_arrays(kernel)
    if program is None:
        return None
    results = stores(program)
    folds = list(folds_below(program, [s.value for s in results]).values())
    matrices = [_matrix(program, f) for f in folds if long(kernel, f.axes)]
    found = [m for m in matrices if m is not None]
    if not found or len(found) < len(matrices):
        return None
    first = found[0]
    rows, over = (_in_order(program, first.load.access, a) for a in (first.fold.axes, first.fold.over))
    sums = tuple(f for f in folds if not long(kernel, f.axes))
    made = Matrices(program, rows, over, tuple(found), sums)
    return made if _is_whole(made, results) else None


find = Memo(_find, 256)


def _matrix(program: Program, fold: Fold) -> Matrix | None:
    """A fold as a product of rows and a vector."""
    if fold.op != "sum" or fold.dtype not in ELEMENTS or len(fold.terms) != 2:
        return None
    rows = long(program.kernel, fold.axes)
    for vector, element in (fold.terms, fold.terms[::-1]):
        if not isinstance(element, str) or _touches(program, vector, rows):
            continue
        loads = loads_below(program, [element])
        if len(loads) != 1 or set(long(program.kernel, loads[0].axes)) != {
            *rows,
            *long(program.kernel, fold.over),
        }:
            return None
        offset = _offset(loads[0].access)
        return None if offset is None else Matrix(fold, vector, element, loads[0], offset)
    return None


def _touches(program: Program, operand: Operand, rows: tuple[str, ...]) -> bool:
    """Whether a value depends on the row."""
    return isinstance(operand, str) and bool(set(axes_of(program.definitions[operand])) & set(rows))


def _is_whole(found: Matrices, stores: list[Store]) -> bool:
    """Whether rows lie one after the other, and every store is of a row or of one value."""
    kernel, size = found.program.kernel, found.dtype.size
    per = VECTOR // size
    if found.dtype not in ELEMENTS or found.size(found.over[-1:]) % per:
        return False
    for matrix in found.matrices:
        access = matrix.load.access
        steps = nested(kernel, found.over, 1) | nested(kernel, found.rows, found.length)
        apart = any(spell.step(access, a) != s for a, s in steps.items())
        if apart or access.dtype != found.dtype or matrix.offset % per:
            return False
    if len({(frozenset(f.axes), frozenset(f.over), f.dtype) for f in (m.fold for m in found.matrices)}) > 1:
        return False
    rows, over = set(found.rows), set(found.over)
    if any(set(long(kernel, s.axes)) not in (set(), rows) for s in stores):
        return False
    return all(set(long(kernel, f.over)) == over and f.dtype in ELEMENTS for f in found.sums)


def _in_order(program: Program, access: Access, axes: tuple[str, ...]) -> tuple[str, ...]:
    """The long axes, the one along which elements lie furthest apart first."""

    def apart(axis: str) -> int:
        step = spell.step(access, axis)
        return step if isinstance(step, int) else 0

    return tuple(sorted(long(program.kernel, axes), key=apart, reverse=True))


def _offset(access: Access) -> int | None:
    """The first element that an access reaches; None where that is not known or data tells the place."""
    if access.clamp or any(i.data() or i.dims() for i in access.index):
        return None
    total = 0
    for index, stride in zip(access.index, spell.strides(access), strict=True):
        if not isinstance(stride, int):
            return None
        total += index.offset * stride
    return total
