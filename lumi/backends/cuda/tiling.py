"""How much of the grid a block of threads takes at once.

Results do not depend on the tiles of grid axes, so a template takes what keeps its threads busy: one
point of the grid when that is much work, else as many as there are threads or teams of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from lumi.backends.cuda.scope import Blocking
from lumi.backends.cuda.values import about
from lumi.dim import Extent
from lumi.llir import spell
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Map, Reduce, Statement, Store, walk
from lumi.llir.memo import KernelMemo
from lumi.llir.program import is_plain
from lumi.memo import Memo

CELLS = 132
"""Cells that a grid should have at least, so that every multiprocessor has work."""

VECTOR = 4
"""Points that a thread takes at once where nothing is reduced."""

LONG = 16
"""Positions of a loop that a thread takes between two barriers."""

WARP = 32

TURNS = 8
"""Turns of a block's threads over its points, at most, where they wait for each other in between."""


def tiles(kernel: Kernel, blocking: Blocking) -> dict[str, int]:
    """The tiles a kernel runs with: its own where values are carried around loops, else as many as fit."""
    carrying = _carrying(kernel.body)
    if carrying:
        chunks = dict.fromkeys(_chunks(kernel.body), 1)
        return {**kernel.tiles, **_longer(kernel, carrying, blocking), **chunks}
    known = _known(kernel)
    if blocking not in known:
        known[blocking] = _of_grid(kernel, blocking)
    return {a: t for a, t in kernel.tiles.items() if a not in kernel.grid} | known[blocking]


@KernelMemo
def _known(kernel: Kernel) -> dict[Blocking, dict[str, int]]:
    """The tiles of the grid that are known of a kernel that carries nothing around."""
    return {}


def _of_grid(kernel: Kernel, blocking: Blocking) -> dict[str, int]:
    """The tiles of the grid of a kernel that carries nothing around."""
    chosen: dict[str, int] = {}
    chunks = _chunks(kernel.body)
    target = max(_target(kernel, blocking) // _inner(kernel), 1)
    free = [a for a in kernel.grid if a not in chunks]
    target = _balanced(kernel, free, target)
    for axis in reversed(free):
        chosen[axis] = min(target, _size(kernel.axes[axis]))
        target //= chosen[axis]
    return chosen | {a: 1 for a in kernel.grid if a not in free}


def threads(kernel: Kernel, chosen: Mapping[str, int], most: int) -> int:
    """Threads of a block: a power of two of warps, as many as have something to do, up to `most`."""

    def positions(axes: Iterable[str]) -> int:
        sizes = {a: _size(kernel.axes[a]) for a in axes}
        return math.prod(min(chosen.get(a, 1), n) if a in kernel.grid else n for a, n in sizes.items())

    busy = max(map(positions, _worked(kernel)), default=1)
    warps = -(-busy // WARP)
    return min(WARP << (warps - 1).bit_length(), most)


def _worked(kernel: Kernel) -> Iterator[tuple[str, ...]]:
    """The axes over which each statement does something."""
    for statement in walk(kernel.body):
        if isinstance(statement, Reduce | Dot):
            yield (*statement.axes, *statement.over)
        elif isinstance(statement, Load | Map | Store):
            yield statement.axes


def shrunk(kernel: Kernel, chosen: Mapping[str, int]) -> dict[str, int] | None:
    """Tiles with the largest one halved; None when all are 1."""
    axis = max(chosen, key=lambda a: (chosen[a], a), default=None)
    if axis is None or chosen[axis] <= 1:
        return None
    return {**chosen, axis: -(-chosen[axis] // 2)}


def widened(kernel: Kernel, chosen: Mapping[str, int]) -> dict[str, int]:
    """Tiles up to `TURNS` times as large along one axis, as long as there are cells enough."""
    cells = math.prod(-(-_size(kernel.axes[a]) // chosen.get(a, 1)) for a in kernel.grid)
    factor = min(TURNS, 1 << max(cells // CELLS, 1).bit_length() - 1)
    axis = next((a for a in reversed(kernel.grid) if chosen.get(a, 1) < _size(kernel.axes[a])), None)
    return dict(chosen) if axis is None else {**chosen, axis: chosen.get(axis, 1) * factor}


def _longer(kernel: Kernel, loops: Iterable[Loop], blocking: Blocking) -> dict[str, int]:
    """Tiles of loops that keep the threads of a block busy, unless guards would skip less for it."""
    points = math.prod(min(kernel.tiles.get(a, 1), _size(kernel.axes[a])) for a in kernel.grid)
    least = max(blocking.threads * LONG // points, 1)
    return {
        loop.axes[-1]: min(max(kernel.tiles.get(loop.axes[-1], 1), least), _size(kernel.axes[loop.axes[-1]]))
        for loop in loops
        if not loop.guards
    }


@Memo
def _carrying(body: tuple[Statement, ...]) -> tuple[Loop, ...]:
    """The loops that carry values around."""
    return tuple(s for s in walk(body) if isinstance(s, Loop) and not is_plain(s))


@Memo
def _chunks(body: tuple[Statement, ...]) -> frozenset[str]:
    return frozenset(s.chunk for s in walk(body) if isinstance(s, Loop) and s.chunk is not None)


def _target(kernel: Kernel, blocking: Blocking) -> int:
    """Points that keep the threads of a block busy."""
    sums = [s for s in walk(kernel.body) if isinstance(s, Reduce | Dot)]
    if not sums:
        return blocking.threads * VECTOR * blocking.unroll
    loads = [s for s in walk(kernel.body) if isinstance(s, Load)]
    over = {a for s in sums for a in s.over}
    if _score(kernel, loads, over) >= _score(kernel, loads, set(kernel.grid[-1:])):
        return blocking.threads // WARP * blocking.rows
    return blocking.threads * VECTOR


def _score(kernel: Kernel, loads: list[Load], axes: set[str]) -> int:
    """Elements that lie side by side along one of `axes`."""
    return sum(
        math.prod(_size(kernel.axes[a]) for a in load.axes)
        for load in loads
        if any(spell.step(load.access, axis) == 1 for axis in axes)
    )


def _inner(kernel: Kernel) -> int:
    """Points of the largest result for each point of the grid."""
    return max(
        (math.prod(_size(kernel.axes[a]) for a in axes if a not in kernel.grid) for axes in _stored(kernel)),
        default=1,
    )


def _stored(kernel: Kernel) -> Iterator[tuple[str, ...]]:
    return (s.axes for s in walk(kernel.body) if isinstance(s, Store))


def _balanced(kernel: Kernel, free: list[str], target: int) -> int:
    """A smaller target where the grid would have too few cells."""
    points = math.prod(_size(kernel.axes[a]) for a in free)
    while target > 1 and points // target < CELLS:
        target //= 2
    return target


def _size(extent: Extent) -> int:
    return max(about(extent), 1)
