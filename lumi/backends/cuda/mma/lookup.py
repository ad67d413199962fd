"""Copies of factors whose lines, or elements, lie anywhere, as CUDA: each is looked up, or is 0."""

from __future__ import annotations

from collections.abc import Mapping

from lumi.backends.cuda import ctype
from lumi.backends.cuda.mma import placed
from lumi.backends.cuda.mma.elements import Elements
from lumi.backends.cuda.mma.form import Stored
from lumi.backends.cuda.mma.plan import Tile
from lumi.backends.cuda.scope import single
from lumi.dtype import BOOL, I32

Ends = Mapping[str, str]
"""CUDA for where axes begin or end."""


def write(elements: Elements, tile: Tile, call: str, starts: Ends, ends: Ends) -> None:
    """Write the copy of a tile: a function that finds a line, or an element, and `call` with it."""
    w, factor = elements.w, tile.factor
    if factor.scattered:
        with w.block(""):
            _find(elements, factor, {tile.lines_axis: "line", factor.along: "k"}, starts, ends)
            w.line(f"{call}, found);")
        return
    along = factor.along
    with w.block("", {along: single(starts[along])}):
        _find(elements, factor, {tile.lines_axis: "line"}, starts, ends)
        base = w.buffers[factor.load.access.buffer]
        w.line(f"{call}, {base}, found, {ends[along]} - {starts[along]});")


def _find(elements: Elements, factor: Stored, numbers: Mapping[str, str], starts: Ends, ends: Ends) -> None:
    """A function of the `numbers` of a position along some axes: the address of a line, or an element."""
    w, load = elements.w, factor.load
    access = placed.exact(w.program, factor)
    places = {axis: w.fresh("at") for axis in numbers}
    memory = ctype.memory(access.dtype)
    kind, nothing = (memory, "0") if factor.scattered else (f"const {memory} *", "nullptr")
    given = ", ".join(f"int {number}" for number in numbers.values())
    opened = {axis: single(place) for axis, place in places.items()}
    with w.block(f"const auto found = [&]({given}) -> {kind} ", opened):
        for axis, place in places.items():
            w.line(f"const int {place} = {starts[axis]} + {numbers[axis]};")
            w.line(f"if ({place} >= {ends[axis]}) return {nothing};")
        if factor.seen is not None:
            w.line(f"if (!({elements.value(factor.seen, BOOL).texts[()]})) return {nothing};")
        data = {n: elements.value(o, I32) for n, o in enumerate(load.data)}
        pointer = elements.pointer(access, data, {})
        w.line(f"return *({pointer});" if factor.scattered else f"return {pointer};")
    w.here.lines[-1] += ";"
