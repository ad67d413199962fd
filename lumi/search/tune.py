"""Tile sizes of one kernel, by the model."""

from __future__ import annotations

from lumi.search.climb import GAIN
from lumi.search.draft import InfeasibleError
from lumi.search.launch import Piece
from lumi.search.planner import Planner

STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Tile sizes that are tried, besides the whole of an axis no longer than the last."""

ROUNDS = 3
"""Times each axis is looked at."""


def tune(planner: Planner, piece: Piece) -> Piece:
    """The kernel with the best tiles that changing one axis at a time finds."""
    best = piece
    for _ in range(ROUNDS):
        before = best
        for axis in piece.kernel.axes:
            for size in _sizes(planner.sizes[axis]):
                tiles = {a: best.kernel.tiles.get(a, planner.sizes[a]) for a in best.kernel.axes}
                if size == tiles[axis]:
                    continue
                try:
                    found = planner.piece(piece.outs, {**tiles, axis: size})
                except InfeasibleError:
                    continue
                if found.seconds < best.seconds * (1 - GAIN):
                    best = found
        if best is before:
            break
    return best


def _sizes(extent: int) -> list[int]:
    whole = [extent] if extent <= STEPS[-1] else []
    return sorted({*(s for s in STEPS if s < extent), *whole})


def variants(planner: Planner, piece: Piece) -> list[Piece]:
    """The kernel with other tiles around the best, fastest by the model first, itself among them."""
    found = {tuple(sorted(piece.kernel.tiles.items())): piece}
    tiles = {a: piece.kernel.tiles.get(a, planner.sizes[a]) for a in piece.kernel.axes}
    for axis in piece.kernel.axes:
        for size in _sizes(planner.sizes[axis]):
            try:
                other = planner.piece(piece.outs, {**tiles, axis: size})
            except InfeasibleError:
                continue
            found.setdefault(tuple(sorted(other.kernel.tiles.items())), other)
    return sorted(found.values(), key=lambda p: p.seconds)
