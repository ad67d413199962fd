"""Which tiles the GPU's copy engine can bring into panels, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lumi.backends.cuda.mma.plan import Tile
from lumi.backends.cuda.tensormap import Box
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


def find(kernel: Kernel, tile: Tile) -> Boxed | None:
    """The box of a tile; None where the copy engine cannot bring it."""
    access, along, across = tile.factor.load.access, tile.factor.along, tile.lines_axis
    if access.clamp or access.data() or not all(_is_plain(index) for index in access.index):
        return None
    steps = {axis: spell.step(access, axis) for axis in kernel.axes if axis in access.axes()}
    numbers = {axis: n for axis, n in steps.items() if isinstance(n, int)}
    sizes = {axis: n for axis in steps if isinstance(n := kernel.axes[axis], int)}
    strides = [n for n in spell.strides(access) if isinstance(n, int)]
    if len(numbers) < len(steps) or len(sizes) < len(steps) or len(strides) < len(access.shape):
        return None
    offset = sum(index.offset * n for index, n in zip(access.index, strides, strict=True))
    moves = {a: n for a, n in numbers.items() if a not in (along, across) and n and sizes[a] > 1}
    plane = math.gcd(*moves.values()) if moves else numbers[across]
    if any(n < 0 or n * access.dtype.size % GRAIN for n in (offset, plane, numbers[across])):
        return None
    planes = 1 + sum((sizes[a] - 1) * n // plane for a, n in moves.items())
    if tile.lines > TALLEST or min(moves.values(), default=0) < 0:
        return None
    place = list(buffers(kernel)).index(access.buffer)
    box = Box(
        place, access.dtype, offset, sizes[along], sizes[across], numbers[across], planes, plane, tile.lines
    )
    return Boxed(box, tuple((a, n // plane) for a, n in moves.items()))


def _is_plain(index: Index) -> bool:
    return all(isinstance(part, str) for part, _ in index.terms)
