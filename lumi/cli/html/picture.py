"""The arena of a variant as a picture: launches from left to right, bytes from below, buffers as boxes.

Edges are rounded, not sizes: boxes that touch in the plan touch in the picture, and none lies on another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING

from lumi.cli.stories import amount

if TYPE_CHECKING:
    from lumi.plan.memory import Held, VariantMemory

HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 360, 80, 24, 40, 24
"""Points: of the plot, and of the margins around it."""

LEAST, STEP = 880, 6
"""Points that a plot is wide at least, and that a launch takes where there are many."""

APART, LINES = 110, 4
"""Points between numbers of launches, at least; numbers of bytes above 0."""

_LETTER, _LINE = 7.3, 12
"""Points that a letter takes."""


@dataclass(frozen=True, slots=True)
class _Plot:
    """Where things stand: `launches` from `first` on take `width` points, `top` bytes `HEIGHT`."""

    first: int
    launches: int
    top: int
    width: int

    def x(self, launch: float) -> Decimal:
        """Points from the left, of the moment before a launch."""
        return _rounded(LEFT + (launch - self.first) * self.width / self.launches)

    def y(self, size: float) -> Decimal:
        """Points from above, of a number of bytes."""
        return _rounded(TOP + HEIGHT - size * HEIGHT / self.top)


def _rounded(points: float) -> Decimal:
    return Decimal(points).quantize(Decimal("0.01"))


def picture(variant: VariantMemory) -> str:
    """The SVG of a variant: a box for each buffer of the arena, the live bytes, and where these peak."""
    first = min((b.first for b in variant.buffers), default=0)
    last = max((b.last for b in variant.buffers), default=0)
    width = max(LEAST, STEP * (last - first + 1))
    plot = _Plot(first, last - first + 1, max(variant.arena, 1), width)
    across, down = LEFT + width + RIGHT, TOP + HEIGHT + BOTTOM
    boxes = (_box(variant, buffer, plot) for buffer in variant.buffers)
    parts = [*_axes(plot), *boxes, *_labels(variant, plot), _live(variant, plot), *_peak(variant, plot)]
    return (
        f'<div class="wide"><svg viewBox="0 0 {across} {down}" width="{across}" height="{down}">\n'
        f"{chr(10).join(parts)}\n</svg></div>"
    )


def _box(variant: VariantMemory, buffer: Held, plot: _Plot) -> str:
    told = (
        f"{buffer.name}: {buffer.role.value}, {buffer.type}\n{amount(buffer.most)}B at {buffer.offset}\n"
        f"{_moment(variant, buffer.first)} … {_moment(variant, buffer.last)}"
    )
    left, right = plot.x(buffer.first), plot.x(buffer.last + 1)
    above, below = plot.y(buffer.offset + buffer.most), plot.y(buffer.offset)
    place = f'x="{left}" y="{above}" width="{right - left}" height="{below - above}"'
    return f'<rect class="box {buffer.role.value}" {place}><title>{escape(told)}</title></rect>'


def _moment(variant: VariantMemory, launch: int) -> str:
    if launch < 0:
        return "before the call"
    launches = variant.launches
    return f"{launch} {launches[launch].kernel}" if launch < len(launches) else "after the call"


def _live(variant: VariantMemory, plot: _Plot) -> str:
    """The live bytes, from the beginning to the end of each launch."""
    corners = []
    for time in range(plot.first, plot.first + plot.launches):
        alive = plot.y(sum(b.most for b in variant.buffers if b.first <= time <= b.last))
        corners += [f"{plot.x(time)},{alive}", f"{plot.x(time + 1)},{alive}"]
    return f'<polyline class="live" points="{" ".join(corners)}"/>'


def _labels(variant: VariantMemory, plot: _Plot) -> Iterator[str]:
    """Names of buffers, in boxes that have room for them."""
    for b in variant.buffers:
        left, right = plot.x(b.first), plot.x(b.last + 1)
        above, below = plot.y(b.offset + b.most), plot.y(b.offset)
        if len(b.name) * _LETTER < right - left and below - above > _LINE:
            place = f'x="{(left + right) / 2:.2f}" y="{(above + below) / 2 + 4:.2f}"'
            yield f'<text {place} text-anchor="middle" pointer-events="none">{escape(b.name)}</text>'


def _peak(variant: VariantMemory, plot: _Plot) -> Iterator[str]:
    """A line across at the peak, one down where it is first reached, and how much it is."""
    middle, height = plot.x(variant.at + 0.5), plot.y(variant.peak)
    yield f'<path class="peak" d="M{LEFT} {height}h{plot.width}M{middle} {TOP}v{HEIGHT}"/>'
    told = f"peak {amount(variant.peak)}B of {amount(variant.arena)}B"
    across = len(told) * _LETTER
    left = min(max(float(middle) - across / 2, LEFT), LEFT + plot.width - across)
    yield f'<text class="peak" x="{left:.2f}" y="{TOP - 8}">{escape(told)}</text>'


def _axes(plot: _Plot) -> Iterator[str]:
    """Both axes with numbers: launches below, bytes on the left."""
    bottom, right = TOP + HEIGHT, LEFT + plot.width
    yield f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{right}"/>'
    step = max(1, -(-plot.launches // (plot.width // APART)))
    for launch in range(0, plot.first + plot.launches, step):
        yield _tick(f"{launch}", plot.x(launch + 0.5), bottom + 16, "middle")
    yield _tick("launch", LEFT + plot.width // 2, bottom + 34, "middle")
    for n in range(LINES + 1):
        size = plot.top * n // LINES
        yield _tick(f"{amount(size)}B", LEFT - 8, plot.y(size) + 4, "end")


def _tick(text: str, x: Decimal | int, y: Decimal | int, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
