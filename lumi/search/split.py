"""Offers axes for splitting: a chunk axis lets one reduction run as many, combined by a second kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lumi.dim import Extent
from lumi.errors import LumiError
from lumi.field.axis import AxisTable
from lumi.field.region import Region
from lumi.field.traverse import bound_axes


def offer(region: Region, chunks: Mapping[str, Extent]) -> tuple[Region, tuple[tuple[str, str], ...]]:
    """The region with a chunk axis for each axis of `chunks`, and the (axis, chunk axis) pairs.

    Chunk axes come first: what belongs to one chunk lies together in memory.

    `chunks` gives the number of chunks by reduced axis.  Saturation needs the pairs as facts, the search as
    `Settings.splits`.  Raises `LumiError` for an axis that the region does not reduce.
    """
    reduced = bound_axes([s.term for s in region.stores])
    axes, pairs = AxisTable(), []
    for name, number in chunks.items():
        if name not in reduced:
            raise LumiError(
                "search error",
                f"region {region.scope or '(all)'} does not reduce axis {name}, so it cannot be split",
                hint=f"axes that can: {', '.join(sorted(reduced)) or 'none'}",
            )
        chunk = f"{name}.chunk"
        axes.add(chunk, number)
        pairs.append((name, chunk))
    for axis in region.axes:
        axes.add(axis.name, axis.extent)
    offered = ", ".join(f"{a} in {chunks[a]}" for a, _ in pairs)
    return replace(region, axes=axes, key=f"{region.key}\nsplit {offered}"), tuple(pairs)
