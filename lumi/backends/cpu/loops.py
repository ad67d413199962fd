"""Loops over an axis: wide turns first, then narrower ones for what is left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from lumi.backends.clike.scope import Range
from lumi.backends.cpu.scope import Opened, Writer
from lumi.llir import spell

UNROLLED = 4
"""Turns of a loop that the C compiler is told to write out, so that positions become constants."""

LENGTH = 96_000
"""Characters that may come of it, inner loops written out too: code that grows by more takes compilers
minutes, and gains nothing."""

WRITTEN_OUT = re.compile(r'( *)_Pragma\("GCC unroll (\d)"\)')


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
    with w.block(header, {axis: opened}) as inside:
        body()
    turns = None if span.length is None else span.length // opened.width
    if turns is not None and turns <= UNROLLED and _may_unroll(inside.lines, turns):
        place = -len(inside.lines) - 2  # values may have been written before the loop meanwhile
        w.here.lines[place] = f'_Pragma("GCC unroll {turns}") {w.here.lines[place]}'


def _may_unroll(body: Sequence[str], turns: int) -> bool:
    """Whether a loop is short enough when its turns, and those of its own loops, are written out."""
    total, around = 0, [(-1, turns)]
    for line in body:
        indent = len(line) - len(line.lstrip())
        while indent <= around[-1][0]:
            around.pop()
        found = WRITTEN_OUT.match(line)
        if found:
            around.append((indent, around[-1][1] * int(found[2])))
        total += around[-1][1] * (len(line) - indent)
    return total <= LENGTH
