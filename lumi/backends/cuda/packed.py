"""Kernels that multiply packed matrices with a vector: rows of several planes, each in one piece.

A weight is a sum of products of quants, which differ from element to element, and coefficients, which are
those of a whole block.  So a row is multiplied block by block: the sum of a block's quants times the vector
takes each coefficient once, and a coefficient of no quants takes the sum of the vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lumi.backends.cuda.linear import Monomial, expand
from lumi.backends.cuda.quants import Bytes
from lumi.backends.cuda.values import (
    below,
    folds_below,
    loads_below,
    long,
    nested,
    size,
    stores,
    without_arrays,
)
from lumi.dtype import F32, I8, U8
from lumi.field.index import Index
from lumi.llir import spell
from lumi.llir.kernel import Dot, Kernel, Load, Operand, Reduce, Store, walk
from lumi.llir.program import Fold, Program, axes_of
from lumi.memo import Memo

LEAST = 4
"""Neighbours that a block has at least."""

PIECE = 16
"""Bytes at whose multiples copies begin and end."""


@dataclass(frozen=True, slots=True)
class Plane:
    """A buffer of rows of `row` bytes each; the first row of the matrix is number `first`."""

    buffer: str
    row: int
    first: int

    @property
    def is_even(self) -> bool:
        """Whether every row begins where a copy can."""
        return self.row % PIECE == 0


@dataclass(frozen=True, slots=True)
class Part:
    """A product that weights are made of: its coefficients and quants, negated or not."""

    coefficients: tuple[Operand, ...]
    quants: tuple[str, ...]
    negative: bool


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """A fold over the rows of a packed matrix, Σ vector · Σ parts over `over`; the vector is a product too.

    `main` is the load of the largest plane, whose elements are neighbours along `inner`; `in_bytes` says
    whether quants are single values that bytes hold.
    """

    fold: Fold
    over: frozenset[str]
    vector: tuple[Operand, ...]
    parts: tuple[Part, ...]
    loads: tuple[Load, ...]
    planes: tuple[Plane, ...]
    main: Load
    inner: str
    in_bytes: bool


@dataclass(frozen=True, slots=True)
class Packed:
    """A kernel over the rows of packed matrices of one shape.

    `rows` and `over` are as in `matrix.Matrices`.  `inner` is the axis along which quants are neighbours,
    `copies` are those along which they share bytes; `sums` are folds of the vector alone.
    """

    program: Program
    rows: tuple[str, ...]
    over: tuple[str, ...]
    inner: str
    copies: tuple[str, ...]
    matrices: tuple[PackedMatrix, ...]
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
    def row(self) -> int:
        """Bytes of a row of all matrices."""
        return sum(p.row for m in self.matrices for p in m.planes)

    @property
    def vectors(self) -> tuple[tuple[Operand, ...], ...]:
        """The distinct vectors that rows are multiplied with."""
        return tuple(dict.fromkeys(m.vector for m in self.matrices))

    def size(self, axes: Iterable[str]) -> int:
        """Positions of axes together."""
        return size(self.program.kernel, axes)


def _find(kernel: Kernel) -> Packed | None:
    """The packed matrices of a kernel that does nothing but multiply the rows of some with vectors."""
    statements = list(walk(kernel.body))
    if not any(isinstance(s, Load) and s.access.dtype in (I8, U8) and len(s.axes) > 1 for s in statements):
        return None
    program = without_arrays(kernel) if any(isinstance(s, Dot | Reduce) for s in statements) else None
    if program is None:
        return None
    results = stores(program)
    table = [program.definitions[v] for v in below(program, [s.value for s in results], folds=False)]
    direct = [d for d in table if isinstance(d, Fold)]
    found = [_matrix(program, f) for f in direct if long(kernel, f.axes)]
    matrices = [m for m in found if m is not None]
    if not matrices or len(matrices) < len(found):
        return None
    made = _joined(program, matrices, [f for f in direct if not long(kernel, f.axes)])
    return made if _is_whole(made, results) else None


find = Memo(_find, 256)


def _matrix(program: Program, fold: Fold) -> PackedMatrix | None:
    """A fold as a product of packed rows and a vector."""
    kernel = program.kernel
    rows = frozenset(long(kernel, fold.axes))
    terms = expand(program, fold.var, rows)
    if terms is None or fold.dtype != F32 or len({m.over for m in terms}) > 1:
        return None
    over = frozenset(long(kernel, terms[0].over))
    if any(not isinstance(kernel.axes[a], int) for a in rows | over):
        return None

    def is_element(operand: Operand) -> bool:
        return isinstance(operand, str) and bool(rows & set(axes_of(program.definitions[operand])))

    vectors = {tuple(f for f in m.factors if not is_element(f)) for m in terms}
    elements = [f for m in terms for f in m.factors if is_element(f)]
    if len(vectors) > 1 or () in vectors or not elements or folds_below(program, elements):
        return None
    loads = tuple(loads_below(program, elements))
    every = [_plane(kernel, x, rows, over) for x in loads]
    planes = tuple(dict.fromkeys(p for p in every if p is not None))
    if None in every or len({p.buffer for p in planes}) < len(planes):
        return None
    main, inner = _main(kernel, loads, planes, over)
    if main is None:
        return None
    parts = tuple(_part(program, m, [f for f in m.factors if is_element(f)], inner) for m in terms)
    held = Bytes(program, inner)
    in_bytes = all(len(p.quants) < 2 and all(map(held.holds, p.quants)) for p in parts)
    return PackedMatrix(fold, over, vectors.pop(), parts, loads, planes, main, inner, in_bytes)


def _part(program: Program, term: Monomial, factors: Sequence[Operand], inner: str) -> Part:
    quants = tuple(f for f in factors if isinstance(f, str) and inner in axes_of(program.definitions[f]))
    return Part(tuple(f for f in factors if f not in quants), quants, term.negative)


def _main(
    kernel: Kernel, loads: Sequence[Load], planes: Sequence[Plane], over: frozenset[str]
) -> tuple[Load | None, str]:
    """The load of the largest plane, and the axis along which its elements are neighbours."""
    largest = max(planes, key=lambda p: p.row).buffer
    for load in loads:
        if load.access.buffer == largest:
            for axis in long(kernel, load.axes):
                if axis in over and spell.step(load.access, axis) == 1 and size(kernel, [axis]) % LEAST == 0:
                    return load, axis
    return None, ""


# -- planes


def _plane(kernel: Kernel, load: Load, rows: frozenset[str], over: frozenset[str]) -> Plane | None:
    """The rows that a load reads from, each in one piece, one after the other; None where it does not.

    Rows are counted by the outer dimensions, whose indices know no axis but theirs.
    """
    access = load.access
    shape = [z for z in access.shape if isinstance(z, int)]
    if load.data or len(shape) < len(access.shape) or any(i.dims() or i.data() for i in access.index):
        return None
    count = next((k for k, i in enumerate(access.index) if i.axes() & over), len(shape))
    outer, columns = access.index[:count], access.index[count:]
    if any(i.axes() & rows for i in columns):
        return None
    if not access.clamp and not all(
        _stays(kernel, i, z) for i, z in zip(columns, shape[count:], strict=True)
    ):
        return None
    steps = {a: _step(outer, shape[:count], a) for a in long(kernel, load.axes) if a in rows}
    order = tuple(sorted(steps, key=lambda a: steps[a], reverse=True))
    if set(order) != rows or nested(kernel, order, 1) != steps:
        return None
    first = 0
    for index, z in zip(outer, shape[:count], strict=True):
        first = first * z + index.offset
    row = math.prod(shape[count:]) * access.dtype.size
    last = first + size(kernel, rows)
    is_inside = first >= 0 and last <= math.prod(shape[:count])
    return Plane(access.buffer, row, first) if is_inside and last * row % PIECE == 0 else None


def _step(outer: Sequence[Index], shape: Sequence[int], axis: str) -> int:
    """How many rows a position along `axis` moves; 0 where not by a constant."""
    total, stride = 0, 1
    for index, z in zip(reversed(outer), reversed(shape), strict=True):
        if axis in index.axes():
            total += stride * next((c for part, c in index.terms if part == axis), 0)
        stride *= z
    return total


def _stays(kernel: Kernel, index: Index, extent: int) -> bool:
    """Whether an index never leaves its dimension."""
    least = most = index.offset
    for part, coefficient in index.terms:
        positions = kernel.axes[part] if isinstance(part, str) else None
        if not isinstance(positions, int):
            return False
        least += min(0, coefficient * (positions - 1))
        most += max(0, coefficient * (positions - 1))
    return least >= 0 and most < extent


# -- the kernel


def _joined(program: Program, matrices: Sequence[PackedMatrix], single: Sequence[Fold]) -> Packed:
    """The kernel of some matrices, in the order in which the first one lies in memory."""
    kernel, first = program.kernel, matrices[0]

    def apart(axis: str) -> int:
        step = spell.step(first.main.access, axis)
        return step if isinstance(step, int) else 0

    rows = sorted(long(kernel, first.fold.axes), key=apart, reverse=True)
    over = sorted(first.over, key=lambda a: (apart(a) == 0, apart(a), a), reverse=True)
    copies = tuple(a for a in over if apart(a) == 0)
    vectors = [v for m in matrices for v in m.vector]
    sums = folds_below(program, [*vectors, *(f.var for f in single)])
    return Packed(
        program, tuple(rows), tuple(over), first.inner, copies, tuple(matrices), tuple(sums.values())
    )


def _is_whole(found: Packed, results: Sequence[Store]) -> bool:
    """Whether all matrices have the same rows, and stores are of rows or of one value."""
    kernel = found.program.kernel
    rows, over = set(found.rows), set(found.over)
    for matrix in found.matrices:
        if set(long(kernel, matrix.fold.axes)) != rows or matrix.over != over or matrix.inner != found.inner:
            return False
    if any(set(long(kernel, s.axes)) not in (set(), rows) for s in results):
        return False
    return all(
        set(long(kernel, f.over)) == over and not long(kernel, f.axes) and f.dtype == F32 for f in found.sums
    )
