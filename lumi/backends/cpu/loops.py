"""Loops over an axis: wide turns first, then narrower ones for what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from lumi.backends.cpu.scope import Opened, Range, Writer
from lumi.llir import skip, spell
from lumi.llir.kernel import Loop

UNROLLED = 4
"""Turns of a loop that are all written out, so that positions become constants."""


def widths(axis: str, copies: int, lanes: bool) -> list[Opened]:
    """The ways to open an axis, widest first: copies of vectors, vectors, copies, one position."""
    variable = f"x_{spell.identifier(axis)}"
    steps = [Opened(variable, copies, lanes)]
    if lanes and copies > 1:
        steps.append(Opened(variable, 1, True))
    return steps if steps[-1].width == 1 else [*steps, Opened(variable)]


def sweep(w: Writer, axis: str, steps: Sequence[Opened], body: Callable[[], None]) -> None:
    """Write loops that together run `body` once over the current range of `axis`.

    `body` is called once for each way in which the axis is opened.
    """
    span = w.ranges[axis]
    used = list(_used(steps, span.length))
    if len(used) == 1 and span.length is not None:
        _exact(w, axis, used[0], span, body)
        return
    with w.block(""):
        w.line(f"int64_t {steps[0].variable} = {span.start};")
        for opened in used:
            x, width = opened.variable, opened.width
            header = (
                f"for (; {x} < {span.stop}; {x}++) "
                if width == 1
                else (f"for (; {x} + {width} <= {span.stop}; {x} += {width}) ")
            )
            with w.block(header, {axis: opened}):
                body()


def _used(steps: Sequence[Opened], length: int | None) -> Iterator[Opened]:
    """The steps that a range of known length needs."""
    for opened in steps:
        if length is None:
            yield opened
        elif length >= opened.width:
            yield opened
            length %= opened.width


def _exact(w: Writer, axis: str, opened: Opened, span: Range, body: Callable[[], None]) -> None:
    x = opened.variable
    if span.length == opened.width:
        with w.block("", {axis: opened}):
            w.line(f"const int64_t {x} = {span.start};")
            body()
        return
    header = f"for (int64_t {x} = {span.start}; {x} < {span.stop}; {x} += {opened.width}) "
    if span.length is not None and span.length // opened.width <= UNROLLED:
        header = f'_Pragma("GCC unroll {UNROLLED}") {header}'
    with w.block(header, {axis: opened}):
        body()


def loop_range(w: Writer, loop: Loop, axis: str) -> Range:
    """The positions that a loop runs over along one of its axes: all, or those of the current chunk."""
    extent = w.program.kernel.axes[axis]
    size = spell.extent(extent)
    if loop.chunk is None:
        length = extent if isinstance(extent, int) else None
        return Range("0", size, length, length)
    chunks = spell.extent(w.program.kernel.axes[loop.chunk])
    opened = w.opened(loop.chunk)
    assert opened is not None, f"chunk axis {loop.chunk} is not open"
    share = w.declare("int64_t", f"chunk_length({size}, {chunks})", "share")
    start = w.declare("int64_t", f"least({size}, {opened.variable} * {share})", "start")
    stop = w.declare("int64_t", f"least({size}, {start} + {share})", "stop")
    return Range(start, stop)


@contextmanager
def tiles(w: Writer, loop: Loop, level: bool) -> Iterator[None]:
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
def _tile_loop(w: Writer, axis: str, span: Range, opens: bool, level: bool) -> Iterator[None]:
    tile = w.program.tiles.get(axis, 1)
    start = w.fresh(f"x_{spell.identifier(axis)}_")
    header = f"for (int64_t {start} = {span.start}; {start} < {span.stop}; {start} += {tile}) "
    opened = {axis: Opened(start)} if opens and tile == 1 else {}
    with w.block(header, opened, tile=level):
        whole = span.length is not None and span.length % tile == 0
        last = f"{start} + {tile}"
        stop = last if whole else w.declare("int64_t", f"least({last}, {span.stop})", "stop")
        w.ranges[axis] = Range(start, stop, tile if whole else None, tile)
        yield


def _ends(w: Writer, axis: str) -> tuple[str, str]:
    """The first and the last position of an axis in the current tile, as doubles."""
    opened = w.opened(axis)
    if opened is not None:
        return f"(double){opened.variable}", f"(double)({opened.variable} + {opened.width - 1})"
    span = w.ranges[axis]
    return f"(double)({span.start})", f"(double)({span.stop} - 1)"
