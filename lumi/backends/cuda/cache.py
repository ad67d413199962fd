"""Kernels that carry values along the rows of a cache, each row weighed by its products with others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lumi.backends.cuda.expression import divides
from lumi.backends.cuda.matrix import ELEMENTS, VECTOR
from lumi.backends.cuda.values import below, loads_below, long, size
from lumi.dtype import F32
from lumi.llir import spell
from lumi.llir.arrange import arrange
from lumi.llir.kernel import Carry, Dot, Kernel, Load, Loop, Map, Operand, Position, Reduce, Store, Symbol
from lumi.llir.program import Program, arguments

LANES = 32


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that a warp reads, `lanes` threads a row, each taking `width` neighbours along `axis`.

    Their elements are `element`, made of what `load` reads, and meet `other`: in a product with a vector,
    or, as a sum of rows, with a weight.
    """

    dot: Dot
    other: Operand
    element: str
    load: Load
    axis: str
    width: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Update:
    """What a turn makes of a sum of rows: itself, times `factor` if there is one, and the sum's new part."""

    carry: Carry
    factor: Operand | None
    rows: Rows


@dataclass(frozen=True, slots=True)
class Walk:
    """A loop along `axis`, which carries single values and sums of rows.

    `cells` are the axes of which a warp has one position, `heads` those of which it has all, so that each
    thread has one pair of head and position of the loop.  `single` are the carries of single values.
    """

    program: Program
    loop: Loop
    axis: str
    cells: tuple[str, ...]
    heads: tuple[str, ...]
    products: tuple[Rows, ...]
    updates: tuple[Update, ...]
    single: tuple[Carry, ...]
    stores: tuple[Store, ...]

    @property
    def together(self) -> int:
        """Heads."""
        return size(self.program.kernel, self.heads)

    @property
    def positions(self) -> int:
        """Positions of the loop in a turn."""
        return LANES // self.together


def find(kernel: Kernel) -> Walk | None:
    """The walk along rows that a kernel is."""
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if len(loops) != 1 or any(isinstance(s, (Dot, Reduce)) for s in kernel.body):
        return None
    (loop,) = loops
    if len(loop.axes) != 1 or any(isinstance(s, (Loop, Store)) for s in loop.body):
        return None
    program = arrange(kernel, kernel.tiles, flat=True, largest={True: 0, False: 0})
    dots = [s for s in loop.body if isinstance(s, Dot)]
    products = [_rows(program, d, loop.axes[0], summed=False) for d in dots if loop.axes[0] not in d.over]
    sums = {d.var: _rows(program, d, loop.axes[0], summed=True) for d in dots if loop.axes[0] in d.over}
    known = [r for r in products if r is not None]
    if len(known) < len(products) or not sums or None in sums.values():
        return None
    updates, single = [], []
    for carry in loop.carries:
        update = _update(loop, carry, {v: r for v, r in sums.items() if r is not None})
        if update is not None:
            updates.append(update)
        else:
            single.append(carry)
    stores = tuple(s for s in kernel.body if isinstance(s, Store))
    return _walk(program, loop, tuple(known), tuple(updates), tuple(single), stores, len(sums))


def _walk(
    program: Program,
    loop: Loop,
    products: tuple[Rows, ...],
    updates: tuple[Update, ...],
    single: tuple[Carry, ...],
    stores: tuple[Store, ...],
    sums: int,
) -> Walk | None:
    """The walk, if all axes and values have their place in it."""
    kernel, axis = program.kernel, loop.axes[0]
    rows = [*products, *(u.rows for u in updates)]
    if len(updates) != sums or not rows:
        return None
    columns = {u.rows.axis for u in updates}
    inner = {axis, *(r.axis for r in rows)}
    read = {a for r in rows for a in long(kernel, r.load.axes)} - inner
    grid = long(kernel, kernel.grid)
    heads = tuple(a for a in grid if a not in read | columns and a != loop.chunk)
    cells = tuple(a for a in grid if a in read or a == loop.chunk)
    found = Walk(program, loop, axis, cells, heads, products, updates, single, stores)
    if not read <= set(grid) or not columns <= set(grid) or len(columns) != 1 or loop.chunk in read:
        return None
    if not all(isinstance(kernel.axes[a], int) for a in heads) or found.together not in (1, 2, 4, 8):
        return None
    if any(r.lanes < found.together for r in products) or len({r.lanes for r in products}) > 1:
        return None
    return found if _fits(found, columns) else None


def _fits(found: Walk, columns: set[str]) -> bool:
    """Whether everything in the loop is of one pair of head and position, and stores of heads or columns."""
    kernel, outer = found.program.kernel, {*found.cells, *found.heads}
    for statement in found.loop.body:
        axes: Iterable[str] = ()
        if isinstance(statement, Reduce):
            if set(long(kernel, statement.over)) != {found.axis} or statement.dtype != F32:
                return False
            axes = statement.axes
        elif isinstance(statement, Dot):
            axes = [a for a in statement.axes if a not in columns]
        if not set(long(kernel, axes)) <= outer | {found.axis}:
            return False
    for update in found.updates:
        if _axes(found.program, update.factor or 1.0) & {*columns, found.axis}:
            return False
        readers = [v for v, d in found.program.definitions.items() if update.carry.previous in arguments(d)]
        if len(readers) != 1:
            return False
    carried = all(set(long(kernel, c.axes)) <= outer and c.dtype == F32 for c in found.single)
    return carried and all(set(long(kernel, s.axes)) <= outer | columns for s in found.stores)


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
        found = _lanes(kernel, load, lines[0])
        if found is not None:
            return Rows(dot, other, element, load, lines[0], *found)
    return None


def _is_plain(program: Program, element: str) -> bool:
    """Whether an element is made of what is loaded alone, not of where."""
    return all(isinstance(program.definitions[v], (Load, Map)) for v in below(program, [element]))


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


def _lanes(kernel: Kernel, load: Load, axis: str) -> tuple[int, int] | None:
    """Neighbours that a thread takes, and threads that a row takes so."""
    extent, dtype = kernel.axes[axis], load.access.dtype
    if not isinstance(extent, int) or dtype not in ELEMENTS or load.data:
        return None
    width = VECTOR // dtype.size
    lanes = extent // width
    aligned = divides(load.access, width, lambda a: width if a == axis else 1)
    if extent % width or lanes not in (4, 8, 16, 32) or not aligned:
        return None
    return width, lanes


def _update(loop: Loop, carry: Carry, sums: dict[str, Rows]) -> Update | None:
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
