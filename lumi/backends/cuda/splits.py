"""Which reductions are offered in chunks, because too few blocks would share them otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from lumi import dim
from lumi.backends.cuda import cache
from lumi.backends.cuda.matrix import ELEMENTS, VECTOR
from lumi.backends.cuda.mma import shares
from lumi.field.axis import LIMIT
from lumi.field.region import Region, Store
from lumi.field.term import In, Red
from lumi.field.traverse import bound_axes, free_axes, postorder
from lumi.llir import spell

LONG = 1024
"""Positions, at some hint, of a reduction that is worth it."""

FEW = 1 << 16
"""Elements that the results of a region have at most, so that they alone do not keep the GPU busy."""

CHUNKS = 128
"""Chunks: nearly as many as an H200 has multiprocessors, so that even a single result keeps them busy."""

ALONE = 64
"""Results at most that do not keep the GPU busy even where each is a matter of a whole block."""

VAST = 1 << 18
"""Positions of a reduction that is too long for one block."""

PARTS = 2048
"""Chunks of it: some warps for each scheduler."""


def chunks(region: Region, hints: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The number of chunks of each reduced axis that is offered in chunks.

    These are axes whose length is known at run time only, such as the positions of a cache: a matrix of
    known size is streamed by all multiprocessors anyway, and the blocks of a walk share positions by
    themselves.  Where there is but a handful of results, an axis
    of known length is offered too, as for the sum of everything; and where they are too few tiles for tensor
    cores, that of products of halves.
    """
    reduced = bound_axes([s.term for s in region.stores])
    results = max(_elements(region, s, hint) for s in region.stores for hint in hints)
    products = shares.chunks(region, results, hints) or shares.folds(region, hints)
    if products:
        return products if len(region.axes) < LIMIT else {}
    if results > FEW:
        return {}
    growing = [a for a in region.axes if a.name in reduced and a.is_symbolic]
    long = [a.name for a in growing if max(dim.value(a.extent, h) for h in hints) >= LONG]
    worth = {name: CHUNKS for name in long if not _is_walked(region, name)}
    if results <= ALONE and not growing:
        worth = _of_known(region)
    return worth if len(region.axes) + len(worth) <= LIMIT else {}


def _of_known(region: Region) -> dict[str, int]:
    """An axis of a reduction over known sizes that is far too much for one block.

    What is reduced below it, to as many results as keep the GPU busy, is no part of that: the mean of what
    rows are reduced to is short, however long the rows are.  Where rows are reduced before their elements
    are, it is the rows that are dealt out, for what needs the whole of a row is then computed with it.
    """
    roots = [s.term for s in region.stores]
    free = free_axes(roots)
    sizes = {a.name: a.extent for a in region.axes if isinstance(a.extent, int)}

    def length(axis: str) -> int:
        return sizes.get(axis, 1)

    for term in (t for t in postorder(roots) if isinstance(t, Red)):
        results = math.prod(sizes.get(a, VAST) for a in free[id(term)])
        if results <= ALONE and math.prod(map(length, term.axes)) >= VAST:
            rows = [a for a in term.axes if a not in bound_axes([term.body]) and length(a) > ALONE]
            longest = max(rows or term.axes, key=length)
            return {longest: min(PARTS, length(longest))}
    return {}


def _is_walked(region: Region, axis: str) -> bool:
    """Whether an axis has weighted sums of rows, each of them such that a walk can compute it."""
    roots = [s.term for s in region.stores]
    free = free_axes(roots)
    sums = [t for t in postorder(roots) if isinstance(t, Red) and t.op == "sum" and axis in t.axes]
    found = [ok for t in sums for ok in _rows_are_walked(region, t, axis, free[id(t)])]
    return bool(found) and all(found)


def _rows_are_walked(region: Region, total: Red, axis: str, free: frozenset[str]) -> Iterator[bool]:
    """For all rows that a sum along an axis takes in, whether they lie in pieces that few results share."""
    for term in postorder([total.body]):
        access = region.accesses.get(term.name) if isinstance(term, In) else None
        if access is None or axis not in access.axes():
            continue
        for columns in [a for a in access.axes() & free if spell.step(access, a) == 1]:
            sharing = [region.axes[a].extent for a in free - access.axes()]
            row, dtype = region.axes[columns].extent, access.dtype
            whole = isinstance(row, int) and row * dtype.size % VECTOR == 0
            fits = isinstance(row, int) and row * dtype.size <= cache.PIECES * VECTOR
            together = dim.product(sharing)
            few = isinstance(together, int) and cache.readings(together) <= cache.AGAIN
            yield whole and fits and few and dtype in ELEMENTS


def _elements(region: Region, store: Store, hint: Mapping[str, int]) -> int:
    """Elements that a store writes."""
    return math.prod(dim.value(region.axes[a].extent, hint) for a in store.access.axes())
