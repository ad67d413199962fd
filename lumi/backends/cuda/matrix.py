"""Kernels that multiply stored matrices with a vector: each row lies in one piece and is read once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lumi.dtype import BF16, F16, F32, DType
from lumi.field.access import Access
from lumi.llir import spell
from lumi.llir.arrange import arrange
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Operand, Store, walk
from lumi.llir.program import Fold, Nest, Program, arguments, axes_of, is_plain

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
        return _size(self.program.kernel, axes)

    def folds_of(self, operands: Iterable[Operand]) -> frozenset[str]:
        """The folds that values are made of, directly or not."""
        return frozenset(v for v in _below(self.program, operands) if self._is_fold(v))

    def loads_of(self, operands: Iterable[Operand]) -> tuple[Load, ...]:
        """The loads that values are made of, but for those inside folds."""
        found = (self.program.definitions[v] for v in _below(self.program, operands, folds=False))
        return tuple(d for d in found if isinstance(d, Load))

    def _is_fold(self, var: str) -> bool:
        return isinstance(self.program.definitions[var], Fold)


def find(kernel: Kernel) -> Matrices | None:
    """The matrices of a kernel that multiplies some, and does nothing else that takes long."""
    loops = [s for s in walk(kernel.body) if isinstance(s, Loop)]
    simple = all(is_plain(s) and not s.guards and s.chunk is None for s in loops)
    known = all(isinstance(e, int) and e > 0 for e in kernel.axes.values())
    if not simple or not known or not any(isinstance(s, Dot) for s in walk(kernel.body)):
        return None
    program = arrange(kernel, {}, flat=True, largest={True: 0, False: 0})
    if not all(isinstance(i, Nest) and all(isinstance(r, Store) for r in i.roots) for i in program.items):
        return None
    stores = [r for i in program.items if isinstance(i, Nest) for r in i.roots if isinstance(r, Store)]
    used = _below(program, [s.value for s in stores])
    folds = [d for v in used if isinstance(d := program.definitions[v], Fold)]
    matrices = [_matrix(program, f) for f in folds if _long(kernel, f.axes)]
    found = [m for m in matrices if m is not None]
    if not found or len(found) < len(matrices):
        return None
    rows, over = (
        _in_order(program, found[0].load.access, a) for a in (found[0].fold.axes, found[0].fold.over)
    )
    sums = [f for v, f in _folds_in_order(program) if v in used and not _long(kernel, f.axes)]
    made = Matrices(program, rows, over, tuple(found), tuple(sums))
    return made if _is_whole(made, stores) else None


def _matrix(program: Program, fold: Fold) -> Matrix | None:
    """A fold as a product of rows and a vector."""
    if fold.op != "sum" or fold.dtype not in ELEMENTS or len(fold.terms) != 2:
        return None
    rows = _long(program.kernel, fold.axes)
    for vector, element in (fold.terms, fold.terms[::-1]):
        if not isinstance(element, str) or _touches(program, vector, rows):
            continue
        loads = [d for v in _below(program, [element]) if isinstance(d := program.definitions[v], Load)]
        if len(loads) != 1 or set(_long(program.kernel, loads[0].axes)) != {
            *rows,
            *_long(program.kernel, fold.over),
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
        steps = _nested(kernel, found.over, 1) | _nested(kernel, found.rows, found.length)
        apart = any(spell.step(access, a) != s for a, s in steps.items())
        if apart or access.dtype != found.dtype or matrix.offset % per:
            return False
    if len({(frozenset(f.axes), frozenset(f.over), f.dtype) for f in (m.fold for m in found.matrices)}) > 1:
        return False
    rows, over = set(found.rows), set(found.over)
    if any(set(_long(kernel, s.axes)) not in (set(), rows) for s in stores):
        return False
    return all(set(_long(kernel, f.over)) == over and f.dtype in ELEMENTS for f in found.sums)


def _below(program: Program, operands: Iterable[Operand], folds: bool = True) -> dict[str, None]:
    """Every value that some are made of, themselves included; with `folds` also what folds are made of."""
    seen: dict[str, None] = {}
    todo = [o for o in operands if isinstance(o, str)]
    while todo:
        var = todo.pop()
        if var in seen:
            continue
        seen[var] = None
        definition = program.definitions[var]
        if folds or not isinstance(definition, Fold):
            todo += arguments(definition)
    return seen


def _folds_in_order(program: Program) -> Iterator[tuple[str, Fold]]:
    return ((v, d) for v, d in program.definitions.items() if isinstance(d, Fold))


def _long(kernel: Kernel, axes: Iterable[str]) -> tuple[str, ...]:
    return tuple(a for a in axes if kernel.axes[a] != 1)


def _size(kernel: Kernel, axes: Iterable[str]) -> int:
    return math.prod(e for a in axes if isinstance(e := kernel.axes[a], int))


def _in_order(program: Program, access: Access, axes: tuple[str, ...]) -> tuple[str, ...]:
    """The long axes, the one along which elements lie furthest apart first."""

    def apart(axis: str) -> int:
        step = spell.step(access, axis)
        return step if isinstance(step, int) else 0

    return tuple(sorted(_long(program.kernel, axes), key=apart, reverse=True))


def _nested(kernel: Kernel, axes: tuple[str, ...], step: int) -> dict[str, int]:
    """The distance between neighbours along axes that lie one inside the other, the innermost `step`."""
    found = {}
    for axis in reversed(axes):
        found[axis] = step
        step *= _size(kernel, [axis])
    return found


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
