"""Which reductions are offered in chunks, because too few blocks would share them otherwise."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

from lumi import dim
from lumi.field.axis import LIMIT
from lumi.field.region import Region, Store
from lumi.field.traverse import bound_axes

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
    known size is streamed by all multiprocessors anyway.  Where there is but a handful of results, an axis
    of known length is offered too, as for the sum of everything.
    """
    reduced = bound_axes([s.term for s in region.stores])
    results = max(_elements(region, s, hint) for s in region.stores for hint in hints)
    if results > FEW:
        return {}
    growing = [a for a in region.axes if a.name in reduced and a.is_symbolic]
    worth = {a.name: CHUNKS for a in growing if max(dim.value(a.extent, h) for h in hints) >= LONG}
    if results <= ALONE and not growing:
        worth = _of_known(region, reduced)
    return worth if len(region.axes) + len(worth) <= LIMIT else {}


def _of_known(region: Region, reduced: Container[str]) -> dict[str, int]:
    """The longest of reduced axes of known sizes, if they are far too much for one block."""
    sizes = {a.name: a.extent for a in region.axes if a.name in reduced and isinstance(a.extent, int)}
    if math.prod(sizes.values()) < VAST:
        return {}
    longest = max(sizes, key=lambda name: sizes[name])
    return {longest: min(PARTS, sizes[longest])}


def _elements(region: Region, store: Store, hint: Mapping[str, int]) -> int:
    """Elements that a store writes."""
    return math.prod(dim.value(region.axes[a].extent, hint) for a in store.access.axes())
