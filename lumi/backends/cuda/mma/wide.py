"""Results of halves stored sixteen bytes at once: threads that share a row put eight columns together."""

from __future__ import annotations

from lumi.backends.clike.loops import multiple_of
from lumi.backends.cuda.expression import Expressions, divides
from lumi.backends.cuda.mma.tiles import Tiles
from lumi.backends.cuda.scope import single
from lumi.dtype import BF16, F16
from lumi.llir import spell
from lumi.llir.kernel import Store

TOGETHER = 4
"""Threads that share a row, and pairs of columns that each of them gives and gets at once."""

COLUMNS = 8
"""Columns of a store."""


def suits(tiles: Tiles, store: Store, column: str) -> bool:
    """Whether results can be stored so: no eight columns end early, and they lie side by side."""
    along, access = tiles.columns[column], store.access
    extent = tiles.w.program.kernel.axes[column]
    if access.dtype not in (BF16, F16) or along.count % TOGETHER:
        return False
    if along.stop and multiple_of(extent) % COLUMNS:
        return False
    return spell.step(access, column) == 1 and divides(
        access, COLUMNS, lambda axis: COLUMNS if axis == column else 1
    )


def put(tiles: Tiles, elements: Expressions, store: Store, column: str, words: str) -> None:
    """Put the pairs of a row, packed in an array `words`, together and store them; the row is open."""
    w, along = tiles.w, tiles.columns[column]
    with w.block(f"#pragma unroll\nfor (int g = 0; g < {along.count // TOGETHER}; g++) ") as scope:
        pairs = ", ".join(f"{words}[g * {TOGETHER} + {k}]" for k in range(TOGETHER))
        w.line(f"const uint4 eight = gather_tile({pairs});")
        step = 2 * (TOGETHER - 1)
        first = f"{along.first} + lane % {TOGETHER} * {step} + g * {TOGETHER * COLUMNS}"
        scope.opened[column] = single(w.declare("int", first, "place"))
        tests = [tiles.inside(tiles.row, "i", 0)]
        tests += [f"{w.position(scope.opened[column])} < {along.stop}"] if along.stop else []
        test = " && ".join(filter(None, tests))
        pointer = elements.pointer(store.access, {}, {})
        w.line(f"{f'if ({test}) ' if test else ''}*(uint4 *)({pointer}) = eight;")
