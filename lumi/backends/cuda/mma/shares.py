"""Which sums of products are offered in chunks, because tiles of their results are too few for the GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from lumi import dim
from lumi.backends.cuda.mma.form import HALVES
from lumi.backends.cuda.mma.plan import STEP
from lumi.field.access import Access
from lumi.field.region import Region
from lumi.field.term import Bin, In, Red, Term, Un
from lumi.field.traverse import free_axes, postorder

LONG = 4096
"""Terms of a sum that is worth it."""

FEW = 1 << 18
"""Results at most: with more, tiles of them keep the GPU busy."""

ROWS = 64
"""Rows at least of products that are folded: a vector's are bound by memory."""

TURN = 512
"""Terms of a product that a turn of a cascade takes whole: with more it is folded."""

MANY = 1 << 13
"""Rows of them at most: with more, tiles of them keep the GPU busy."""

CHUNKS = 8
"""Chunks of a sum."""

PIECE = 8
"""Halves that are copied at once: chunks begin at multiples of them."""


def chunks(region: Region, results: int, hints: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The number of chunks of the axis that a region sums its products over, if they are offered in chunks.

    `results` is how many elements the region writes at most.
    """
    sums = [t for t in postorder([s.term for s in region.stores]) if isinstance(t, Red)]
    axes = {t.axes for t in sums}
    if results > FEW or len(axes) != 1 or len(sums[0].axes) != 1:
        return {}
    (axis,) = sums[0].axes
    if not _is_cut(region, axis):
        return {}
    return {axis: CHUNKS} if all(_is_product(region, t, hints) for t in sums) else {}


def folds(region: Region, hints: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The number of chunks of the axis along which a region reduces sums of products of halves, or none.

    A cell takes all columns of a tile of rows, of which there may be too few for the GPU.
    """
    roots = [s.term for s in region.stores]
    free, found = free_axes(roots), dict[str, int]()
    for term in (t for t in postorder(roots) if isinstance(t, Red) and len(t.axes) == 1):
        (axis,) = term.axes
        sums = [t for t in postorder([term.body]) if isinstance(t, Red) and axis in free[id(t)]]
        long = [t for t in sums if _size(region, frozenset(t.axes), hints) > TURN]
        few = ROWS <= _size(region, free[id(term)], hints) <= MANY
        if few and _is_cut(region, axis) and any(_is_product(region, t, hints) for t in long):
            found[axis] = CHUNKS
    return found if len(found) == 1 else {}


def _is_cut(region: Region, axis: str) -> bool:
    """Whether an axis is long enough to be cut into chunks, and they begin at multiples of a piece."""
    extent = region.axes[axis].extent
    return isinstance(extent, int) and extent >= LONG and not extent % (CHUNKS * PIECE)


def _is_product(region: Region, total: Red, hints: Sequence[Mapping[str, int]]) -> bool:
    """Whether a sum is of products of two factors of halves, each of which has rows of its own."""
    if total.op != "sum" or not isinstance(total.body, Bin) or total.body.op != "mul":
        return False
    first, second = (_factor(region, f) for f in (total.body.a, total.body.b))
    if first is None or second is None:
        return False
    rows = first.axes() - second.axes(), second.axes() - first.axes()
    return all(_size(region, axes, hints) >= STEP for axes in rows)


def _factor(region: Region, term: Term) -> Access | None:
    """The access of a factor of halves."""
    if isinstance(term, Un) and term.op == "cast.f32":
        term = term.a
    access = region.accesses.get(term.name) if isinstance(term, In) else None
    return access if access is not None and access.dtype in HALVES else None


def _size(region: Region, axes: frozenset[str], hints: Sequence[Mapping[str, int]]) -> int:
    """Positions of axes together, at the hint where there are most."""
    return max(math.prod(dim.value(region.axes[a].extent, hint) for a in axes) for hint in hints)
