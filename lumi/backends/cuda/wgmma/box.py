"""Which tiles the GPU's copy engine can bring into panels, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lumi.backends.cuda.mma.plan import Tile
from lumi.backends.cuda.tensormap import Box
from lumi.dim import Extent
from lumi.field.access import Access
from lumi.field.index import Index
from lumi.llir import spell
from lumi.llir.kernel import Kernel, buffers

GRAIN = 16
"""Bytes of which everything but the address of a half must be a multiple."""

TALLEST = 256
"""Lines of a piece at most."""


@dataclass(frozen=True, slots=True)
class Boxed:
    """The box of a tile, and by how many planes each axis that is not of the tile moves it."""

    box: Box
    moves: tuple[tuple[str, int], ...]


def find(kernel: Kernel, tile: Tile, height: int) -> Boxed | None:
    """The box of so many lines of a tile; None where the copy engine cannot bring it."""
    factor = tile.factor
    if factor.placed:
        return None
    return seen(kernel, factor.load.access, factor.along, tile.lines_axis, height)


def seen(kernel: Kernel, access: Access, along: str, across: str, height: int) -> Boxed | None:
    """How the copy engine sees what an access touches, `height` lines along an axis at once, or None."""
    if access.clamp or access.data() or not all(_is_plain(index) for index in access.index):
        return None
    steps = {axis: spell.step(access, axis) for axis in kernel.axes if axis in access.axes()}
    numbers = {axis: n for axis, n in steps.items() if isinstance(n, int)}
    sizes = {axis: n for axis in steps if isinstance(n := kernel.axes[axis], int)}
    offsets = [index.offset * n for index, n in zip(access.index, spell.strides(access), strict=True)]
    lines = sizes.get(across) or _held(access, across)
    if len(numbers) < len(steps) or len({*sizes, across}) < len(steps):
        return None
    offset = sum(n for n in offsets if isinstance(n, int))
    moves = {a: n for a, n in numbers.items() if a not in (along, across) and n and sizes[a] > 1}
    plane = math.gcd(*moves.values()) if moves else numbers[across]
    if any(n < 0 or n * access.dtype.size % GRAIN for n in (offset, plane, numbers[across])):
        return None
    planes = 1 + sum((sizes[a] - 1) * n // plane for a, n in moves.items())
    if lines is None or height > TALLEST or min(moves.values(), default=0) < 0:
        return None
    if any(not isinstance(n, int) for n in offsets):
        return None
    place = list(buffers(kernel)).index(access.buffer)
    box = Box(place, access.dtype, offset, sizes[along], lines, numbers[across], planes, plane, height)
    return Boxed(box, tuple((a, n // plane) for a, n in moves.items()))


def _held(access: Access, axis: str) -> Extent | None:
    """Lines that a buffer has along an axis whose extent depends on dims; None where they are not alone."""
    found = [n for n, index in enumerate(access.index) if axis in index.axes()]
    if len(found) != 1 or access.index[found[0]].terms != ((axis, 1),):
        return None
    return access.shape[found[0]] - access.index[found[0]].offset


def _is_plain(index: Index) -> bool:
    return all(isinstance(part, str) for part, _ in index.terms)
