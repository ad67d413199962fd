"""Loops over tiles, and the ranges that they and chunks of axes cover."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from lumi.backends.clike.scope import BaseWriter, Opening, Range, V
from lumi.dim import Extent
from lumi.llir import skip, spell
from lumi.llir.kernel import Loop


def multiple_of(extent: Extent) -> int:
    """The greatest known divisor of a dim expression."""
    if isinstance(extent, int):
        return max(extent, 1)
    return math.gcd(*(coefficient for _, coefficient in extent.terms))


def whole(w: BaseWriter[Opening, V], axis: str) -> Range:
    """All positions of an axis."""
    extent = w.program.kernel.axes[axis]
    length = extent if isinstance(extent, int) else None
    return Range("0", w.extent(extent), length, length, multiple_of(extent))


def loop_range(w: BaseWriter[Opening, V], loop: Loop, axis: str) -> Range:
    """The positions that a loop runs over along one of its axes: all, or those of the current chunk."""
    span = whole(w, axis)
    if loop.chunk is None:
        return span
    extent, count = w.program.kernel.axes[axis], w.program.kernel.axes[loop.chunk]
    opened = w.opened(loop.chunk)
    assert opened is not None, f"chunk axis {loop.chunk} is not open"
    if isinstance(extent, int) and isinstance(count, int):
        length = -(-extent // max(count, 1))
        share, multiple = str(length), math.gcd(length, extent)
    else:
        share = w.declare(w.integer, f"chunk_length({span.stop}, {spell.extent(count)})", "share")
        multiple = 1
    place = w.position(opened)
    start = w.declare(w.integer, f"least({span.stop}, {place} * {share})", "start")
    stop = w.declare(w.integer, f"least({span.stop}, {start} + {share})", "stop")
    return Range(start, stop, multiple=max(multiple, 1))


def tile_range(w: BaseWriter[Opening, V], axis: str, start: str, span: Range) -> Range:
    """The positions of the tile of an axis that begins at `start`."""
    tile = w.program.tiles.get(axis, 1)
    bound = tile if span.length is None else min(tile, max(span.length, 1))
    exact = span.length is not None and span.length % tile == 0
    last = f"{start} + {tile}"
    stop = last if exact else w.declare(w.integer, f"least({last}, {span.stop})", "stop")
    return Range(start, stop, tile if exact else None, bound, math.gcd(tile, span.multiple))


@contextmanager
def tiles(w: BaseWriter[Opening, V], loop: Loop, level: bool) -> Iterator[None]:
    """Write the loops over the tiles of a loop, with its guards; inside, ranges are the current tile's.

    With `level` the innermost block counts as a tile loop around what it holds, and axes with tiles of
    one position are open in it.
    """
    outer = dict(w.ranges)
    spans = [(axis, loop_range(w, loop, axis)) for axis in loop.axes]
    with ExitStack() as stack:
        for number, (axis, span) in enumerate(spans):
            innermost = number == len(spans) - 1
            stack.enter_context(_tile_loop(w, axis, span, level, level and innermost))
        test = skip.holds_nowhere(
            loop.guards, lambda axis: _ends(w, axis), lambda text, stem: w.declare("double", text, stem)
        )
        if test:
            w.line(f"if ({test}) continue;")
        yield
    w.ranges = outer


@contextmanager
def _tile_loop(w: BaseWriter[Opening, V], axis: str, span: Range, opens: bool, level: bool) -> Iterator[None]:
    tile = w.program.tiles.get(axis, 1)
    start = w.fresh(f"x_{spell.identifier(axis)}_")
    header = f"for ({w.integer} {start} = {span.start}; {start} < {span.stop}; {start} += {tile}) "
    opened = {axis: w.at(start)} if opens and tile == 1 else {}
    with w.block(header, opened, tile=level):
        w.ranges[axis] = tile_range(w, axis, start, span)
        yield


def _ends(w: BaseWriter[Opening, V], axis: str) -> tuple[str, str]:
    """The first and the last position of an axis in the current tile, as doubles."""
    opened = w.opened(axis)
    if opened is not None:
        return w.ends(opened)
    span = w.ranges[axis]
    return f"(double)({span.start})", f"(double)({span.stop} - 1)"
