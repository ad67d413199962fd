"""Kernels that carry values along the rows of a cache, each row weighed by its products with others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lumi.backends.cuda.expression import divides
from lumi.backends.cuda.matrix import ELEMENTS, VECTOR
from lumi.backends.cuda.values import below, loads_below, long, size
from lumi.dtype import BF16, F32
from lumi.llir import spell
from lumi.llir.arrange import arrange
from lumi.llir.kernel import Carry, Dot, Kernel, Load, Loop, Map, Operand, Position, Reduce, Store, Symbol
from lumi.llir.program import Program, arguments

LANES = 32

MOST = 8
"""Heads that a block has at most."""

AGAIN = 4
"""How often the rows of a cell are read at most, each time for some of its heads."""

PIECES = 64
"""Pieces of 16 bytes that a row has at most."""

_COMBINE = {"sum": "add", "max": "max", "mul": "mul"}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a cache, each of `pieces` pieces of 16 bytes along `axis`.

    Their elements are `element`, made of what `load` reads, and meet `other`: in a product with a vector,
    or, as a sum of rows, with a weight.
    """

    dot: Dot
    other: Operand
    element: str
    load: Load
    axis: str
    pieces: int

    @property
    def piece(self) -> int:
        """Elements of a piece."""
        return VECTOR // self.load.access.dtype.size

    @property
    def length(self) -> int:
        """Elements of a row."""
        return self.pieces * self.piece


@dataclass(frozen=True, slots=True)
class Update:
    """What a turn makes of a sum of rows: itself, times `factor` if there is one, and the sum's new part."""

    carry: Carry
    factor: Operand | None
    rows: Rows


@dataclass(frozen=True, slots=True)
class Single:
    """A carry of single values: what a turn finds of the rows, combined with `moved`.

    `moved` is what was carried, seen from where the loop has come to; for a `fixed` carry it is just that.
    """

    carry: Carry
    moved: Operand

    @property
    def is_fixed(self) -> bool:
        """Whether what was carried is combined as it is."""
        return self.moved == self.carry.previous


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop along `axis`, which carries single values and sums of rows.

    `cells` are the axes of which a block has one position, `heads` those of which it has all, or a part where
    there are too many.  `columns` is the axis along which the elements of the sums lie.
    """

    program: Program
    loop: Loop
    axis: str
    columns: str
    cells: tuple[str, ...]
    heads: tuple[str, ...]
    products: tuple[Rows, ...]
    updates: tuple[Update, ...]
    singles: tuple[Single, ...]
    stores: tuple[Store, ...]

    @property
    def together(self) -> int:
        """Heads."""
        return size(self.program.kernel, self.heads)

    @property
    def times(self) -> int:
        """How often rows are read, each time for as many heads."""
        return readings(self.together)

    @property
    def rows(self) -> tuple[Rows, ...]:
        """All rows of a position: those that are multiplied, then those that are summed up."""
        return (*self.products, *(u.rows for u in self.updates))

    @property
    def is_bf16(self) -> bool:
        """Whether all rows are bf16 that are used as they are, so that tensor cores multiply them exactly."""
        return all(_is_as_stored(self.program, r) for r in self.rows)


def readings(heads: int) -> int:
    """How often rows must be read for so many heads, each time for equally many."""
    return next((n for n in range(1, heads) if heads % n == 0 and heads // n <= MOST), max(heads, 1))


def find(kernel: Kernel) -> Walk | None:
    """The walk along rows that a kernel is."""
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if len(loops) != 1 or any(isinstance(s, (Dot, Reduce)) for s in kernel.body):
        return None
    (loop,) = loops
    if len(loop.axes) != 1 or any(isinstance(s, (Loop, Store)) for s in loop.body):
        return None
    program = arrange(kernel, kernel.tiles, flat=True, largest={True: 0, False: 0})
    axis = loop.axes[0]
    dots = [s for s in loop.body if isinstance(s, Dot)]
    products = [_rows(program, d, axis, summed=False) for d in dots if axis not in d.over]
    sums = {d.var: _rows(program, d, axis, summed=True) for d in dots if axis in d.over}
    known = [r for r in products if r is not None]
    if len(known) < len(products) or not sums or None in sums.values():
        return None
    updates, rest = [], []
    for carry in loop.carries:
        update = _update(loop, carry, {v: r for v, r in sums.items() if r is not None})
        if update is not None:
            updates.append(update)
        else:
            rest.append(carry)
    singles = [s for c in rest if (s := _single(program, loop, c)) is not None]
    if len(singles) < len(rest) or len(updates) != len(sums):
        return None
    return _walk(program, loop, tuple(known), tuple(updates), tuple(singles))


def _walk(
    program: Program,
    loop: Loop,
    products: tuple[Rows, ...],
    updates: tuple[Update, ...],
    singles: tuple[Single, ...],
) -> Walk | None:
    """The walk, if all axes and values have their place in it."""
    kernel, axis = program.kernel, loop.axes[0]
    rows = [*products, *(u.rows for u in updates)]
    columns = {u.rows.axis for u in updates}
    inner = {axis, *(r.axis for r in rows)}
    read = {a for r in rows for a in long(kernel, r.load.axes)} - inner
    grid = long(kernel, kernel.grid)
    heads = tuple(a for a in grid if a not in read | columns and a != loop.chunk)
    cells = tuple(a for a in grid if a in read or a == loop.chunk)
    if not read <= set(grid) or not columns <= set(grid) or len(columns) != 1 or loop.chunk in read:
        return None
    if not all(isinstance(kernel.axes[a], int) for a in heads) or readings(size(kernel, heads)) > AGAIN:
        return None
    stores = tuple(s for s in kernel.body if isinstance(s, Store))
    (column,) = columns
    found = Walk(program, loop, axis, column, cells, heads, products, updates, singles, stores)
    return found if _fits(found) and _is_joined(found) else None


def _fits(found: Walk) -> bool:
    """Whether everything in the loop is of one pair of head and position, and stores of heads or columns."""
    kernel, outer = found.program.kernel, {*found.cells, *found.heads}
    for statement in found.loop.body:
        axes: Iterable[str] = ()
        if isinstance(statement, Reduce):
            if set(long(kernel, statement.over)) != {found.axis} or statement.dtype != F32:
                return False
            axes = statement.axes
        elif isinstance(statement, Dot):
            axes = [a for a in statement.axes if a != found.columns]
        if not set(long(kernel, axes)) <= outer | {found.axis}:
            return False
    for update in found.updates:
        if _axes(found.program, update.factor or 1.0) & {found.columns, found.axis}:
            return False
        readers = [v for v, d in found.program.definitions.items() if update.carry.previous in arguments(d)]
        if len(readers) != 1:
            return False
    carried = all(set(long(kernel, s.carry.axes)) <= outer and s.carry.dtype == F32 for s in found.singles)
    return carried and all(set(long(kernel, s.axes)) <= outer | {found.columns} for s in found.stores)


def _is_joined(found: Walk) -> bool:
    """Whether what was carried along parts of the axis can be joined.

    A loop gives the same for all tiles.  So what a part has carried, moved to where another part takes the
    fixed carries, is what the part has on its own there, and parts add up: as far as nothing moves by
    anything else.
    """
    known = {s.carry.previous for s in found.singles}
    known |= {s.carry.next for s in found.singles if s.is_fixed}
    moved = [s.moved for s in found.singles] + [u.factor for u in found.updates if u.factor is not None]
    return all(_is_made_of(found, operand, known) for operand in moved)


def _is_made_of(found: Walk, operand: Operand, known: set[str]) -> bool:
    """Whether a value is made of known ones, and of what is the same all along the walk."""
    if not isinstance(operand, str) or operand in known:
        return True
    definition = found.program.definitions[operand]
    if isinstance(definition, Load):
        return found.axis not in definition.axes and not definition.data
    if isinstance(definition, Position):
        return definition.axis != found.axis
    if isinstance(definition, Map):
        return all(_is_made_of(found, a, known) for a in definition.args)
    return isinstance(definition, Symbol)


def _rows(program: Program, dot: Dot, axis: str, summed: bool) -> Rows | None:
    """The rows that a product goes over, or that are summed up along the axis of the loop."""
    kernel = program.kernel
    over = long(kernel, dot.over)
    if len(over) != 1 or dot.dtype != F32:
        return None
    for element, other in ((dot.b, dot.a), (dot.a, dot.b)):
        loads = loads_below(program, [element])
        if not isinstance(element, str) or len(loads) != 1 or not _is_plain(program, element):
            continue
        (load,) = loads
        lines = [a for a in long(kernel, load.axes) if spell.step(load.access, a) == 1]
        if len(lines) != 1 or axis not in load.axes or (not summed and lines != list(over)):
            continue
        mine = _axes(program, other)
        if (lines[0] in mine) == summed or (axis in mine) != summed or lines[0] == axis:
            continue
        pieces = _pieces(kernel, load, lines[0])
        if pieces is not None:
            return Rows(dot, other, element, load, lines[0], pieces)
    return None


def _is_plain(program: Program, element: str) -> bool:
    """Whether an element is made of what is loaded alone, not of where."""
    return all(isinstance(program.definitions[v], (Load, Map)) for v in below(program, [element]))


def _is_as_stored(program: Program, rows: Rows) -> bool:
    """Whether elements are the bf16 that memory holds."""
    made = [program.definitions[v] for v in below(program, [rows.element])]
    casts = all(d.op == "cast.f32" for d in made if isinstance(d, Map))
    return casts and rows.load.access.dtype == BF16


def _axes(program: Program, operand: Operand) -> set[str]:
    if not isinstance(operand, str):
        return set()
    definition = program.definitions[operand]
    match definition:
        case Position(_, axis):
            return {axis}
        case Symbol():
            return set()
        case _:
            return set(definition.axes)


def _pieces(kernel: Kernel, load: Load, axis: str) -> int | None:
    """Pieces of 16 bytes that a row consists of, all of them aligned."""
    extent, dtype = kernel.axes[axis], load.access.dtype
    if not isinstance(extent, int) or dtype not in ELEMENTS or load.data:
        return None
    width = VECTOR // dtype.size
    aligned = divides(load.access, width, lambda a: width if a == axis else 1)
    if extent % width or extent // width > PIECES or not aligned:
        return None
    return extent // width


def _update(loop: Loop, carry: Carry, sums: Mapping[str, Rows]) -> Update | None:
    """A carry as a sum of rows; None for another carry."""
    made = {s.var: s for s in loop.body if isinstance(s, Map)}
    last = made.get(carry.next)
    if last is None or last.op != "add" or carry.op != "sum":
        return None
    parts = [a for a in last.args if isinstance(a, str) and a in sums]
    rest = [a for a in last.args if a not in parts]
    if len(parts) != 1 or len(rest) != 1:
        return None
    rows = sums[parts[0]]
    if rest[0] == carry.previous:
        return Update(carry, None, rows)
    scaled = made.get(rest[0]) if isinstance(rest[0], str) else None
    if scaled is None or scaled.op != "mul" or carry.previous not in scaled.args:
        return None
    factor = next((a for a in scaled.args if a != carry.previous), None)
    return None if factor is None else Update(carry, factor, rows)


def _single(program: Program, loop: Loop, carry: Carry) -> Single | None:
    """A carry that a reduction along the axis is combined with."""
    last = program.definitions.get(carry.next)
    if not isinstance(last, Map) or last.op != _COMBINE[carry.op]:
        return None
    found = {s.var for s in loop.body if isinstance(s, Reduce) and s.op == carry.op}
    parts = [a for a in last.args if isinstance(a, str) and a in found]
    rest = [a for a in last.args if a not in parts]
    return Single(carry, rest[0]) if len(parts) == 1 and len(rest) == 1 else None
