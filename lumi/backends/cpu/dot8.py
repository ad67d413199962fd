"""Sums of products of bytes as processors multiply them: 32 at a time, with exact sums in i32."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lumi.backends.clike.scope import Copy
from lumi.backends.cpu.bytelanes import HALF, ByteLanes
from lumi.backends.cpu.expression import Expressions, FoldWriter
from lumi.backends.cpu.loops import sweep, widths
from lumi.backends.cpu.scope import Form, Opened, Value, Writer
from lumi.dtype import I32
from lumi.llir.bytedot import is_byte_dot
from lumi.llir.program import Fold, axes_of


def plan(w: Writer, fold: Fold, writer: FoldWriter) -> ByteLanes | None:
    """How a sum is computed from vectors of bytes, if it can be."""
    if w.lane() is not None or fold.loop is not None or not is_byte_dot(fold, w.program.definitions):
        return None
    return next(filter(lambda lanes: all(map(lanes.can_hold, fold.terms)), _ways(w, fold, writer)), None)


def _ways(w: Writer, fold: Fold, writer: FoldWriter) -> Iterator[ByteLanes]:
    expressions = Expressions(w, writer)
    lengths = {a: w.ranges[a].length or 0 for a in fold.over}
    for axis, length in lengths.items():
        if length and length % (2 * HALF) == 0:
            yield ByteLanes(w, expressions, axis, None, 2 * HALF)
    for axis, length in lengths.items():
        if length and length % HALF == 0:
            pairs = [a for a, n in lengths.items() if a != axis and n and n % 2 == 0]
            yield from (ByteLanes(w, expressions, axis, pair, 2 * HALF) for pair in pairs)
            yield ByteLanes(w, expressions, axis, None, HALF)


def write(w: Writer, fold: Fold, lanes: ByteLanes) -> Value:
    """The value of a sum, as eight addends."""
    axes = w.unrolled(fold.axes)
    sums = {tuple(copy.values()): w.fresh("a") for copy in w.copies(axes)}
    for name in sums.values():
        w.line(f"i32x8 {name} = splat_i32(0);")

    def take() -> None:
        _take(w, fold, lanes, axes, sums)

    rest = [a for a in fold.over if a not in (lanes.axis, lanes.pair)]
    _turns(w, rest, lanes, take)
    value = Value(I32, Form.PARTIAL, axes, sums)
    w.here.values[fold.var] = value
    return value


def _turns(w: Writer, rest: list[str], lanes: ByteLanes, take: Callable[[], None]) -> None:
    """Loops over the axes of a sum, those of its vectors innermost."""
    if rest:
        sweep(w, rest[0], widths(rest[0], 1, False), lambda: _turns(w, rest[1:], lanes, take))
    elif lanes.pair is not None and w.opened(lanes.pair) is None:
        sweep(w, lanes.pair, widths(lanes.pair, 2, False), lambda: _turns(w, rest, lanes, take))
    else:
        _along(w, lanes, take)


def _along(w: Writer, lanes: ByteLanes, take: Callable[[], None]) -> None:
    span, x = w.ranges[lanes.axis], widths(lanes.axis, 1, False)[0].variable
    width = lanes.count if lanes.pair is None else HALF
    header = f"for (int64_t {x} = {span.start}; {x} < {span.stop}; {x} += {width}) "
    with w.block(header, {lanes.axis: Opened(x)}):
        take()


def _take(
    w: Writer, fold: Fold, lanes: ByteLanes, axes: tuple[str, ...], sums: dict[tuple[int, ...], str]
) -> None:
    """Add the products of the vectors at the current positions."""
    narrow = [t for t in fold.terms if _within(lanes, t, -127)]
    second = narrow[0] if narrow else fold.terms[1]
    first = fold.terms[0] if second == fold.terms[1] else fold.terms[1]
    kind = "whole" if _within(lanes, second, 0) else "narrow"
    kind = kind if narrow and lanes.count == 2 * HALF else "bytes"
    held: dict[tuple[str, tuple[int, ...]], str] = {}

    def vector(term: str, copy: Copy) -> str:
        mine = w.unrolled(axes_of(w.program.definitions[term]))
        key = (term, tuple(copy[a] for a in mine if a in copy))
        if key not in held:
            held[key] = lanes.named(term, copy)
        return held[key]

    for copy in w.copies(axes):
        name = sums[tuple(copy.values())]
        a, b = (vector(str(t), copy) for t in (first, second))
        w.line(f"{name} = dot_{kind}{lanes.count}({name}, {a}, {b});")


def _within(lanes: ByteLanes, term: object, low: int) -> bool:
    least, greatest = lanes.range(str(term))
    return least >= low and greatest <= 127
