"""What the values of a program are made of, and which of its axes are long."""

from __future__ import annotations

import math
from collections.abc import Iterable

from lumi.dim import Extent
from lumi.llir.arrange import arrange
from lumi.llir.kernel import Kernel, Load, Loop, Operand, Store, walk
from lumi.llir.program import Fold, Nest, Program, arguments, is_plain
from lumi.memo import Memo

SOME = 1024
"""Positions assumed of an axis whose extent is known only at run time."""

FAR_MORE = 4


def _flat(kernel: Kernel) -> Program:
    """The program of a kernel whose values are computed where they are used, at one point of the grid."""
    return arrange(kernel, {}, flat=True, largest={True: 0, False: 0})


flat = Memo(_flat, 64)


def without_arrays(kernel: Kernel) -> Program | None:
    """The program of a kernel when it needs no memory of a cell and skips nothing; else None."""
    loops = [s for s in walk(kernel.body) if isinstance(s, Loop)]
    if not all(is_plain(s) and not s.guards and s.chunk is None for s in loops):
        return None
    program = flat(kernel)
    plain = all(isinstance(i, Nest) and all(isinstance(r, Store) for r in i.roots) for i in program.items)
    return program if plain else None


def stores(program: Program) -> list[Store]:
    """Every store."""
    return [r for i in program.items if isinstance(i, Nest) for r in i.roots if isinstance(r, Store)]


def below(program: Program, operands: Iterable[Operand], folds: bool = True) -> dict[str, None]:
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


def folds_below(program: Program, operands: Iterable[Operand]) -> dict[str, Fold]:
    """The folds that values are made of, directly or not, each after those it is made of."""
    found = below(program, operands)
    return {v: d for v, d in program.definitions.items() if v in found and isinstance(d, Fold)}


def loads_below(program: Program, operands: Iterable[Operand], folds: bool = True) -> list[Load]:
    """The loads that values are made of; without `folds` not those inside folds."""
    found = below(program, operands, folds)
    return [d for v in found if isinstance(d := program.definitions[v], Load)]


def long(kernel: Kernel, axes: Iterable[str]) -> tuple[str, ...]:
    """The axes that do not have just one position."""
    return tuple(a for a in axes if kernel.axes[a] != 1)


def size(kernel: Kernel, axes: Iterable[str]) -> int:
    """Positions of axes of known extent together."""
    return math.prod(e for a in axes if isinstance(e := kernel.axes[a], int))


def reads_most(kernel: Kernel) -> bool:
    """Whether a kernel reads far more from memory than it writes."""

    def total(some: Iterable[Load | Store]) -> int:
        return sum(s.access.dtype.size * math.prod(about(kernel.axes[a]) for a in s.axes) for s in some)

    every = list(walk(kernel.body))
    read = {s.access: s for s in every if isinstance(s, Load)}
    return total(read.values()) >= FAR_MORE * total(s for s in every if isinstance(s, Store))


def about(extent: Extent) -> int:
    """Positions of an axis, some where they are known only at run time."""
    return extent if isinstance(extent, int) else SOME


def nested(kernel: Kernel, axes: tuple[str, ...], step: int) -> dict[str, int]:
    """The distance between neighbours along axes that lie one inside the other, the innermost `step`."""
    found = {}
    for axis in reversed(axes):
        found[axis] = step
        step *= size(kernel, [axis])
    return found
