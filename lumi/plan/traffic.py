"""How many bytes of its buffers a launch reads and writes at given dims.

Every element counts once a launch, however often it is read: what must cross memory at least.  A loop that
skips tiles may touch less, and what data decides is taken to be as much as it can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lumi import dim
from lumi.field.access import Access
from lumi.llir.kernel import Kernel, Load, Step, Store, walk
from lumi.plan.reach import interval

_Box = tuple[tuple[int, int], ...]
"""Least and greatest index along each dimension; the greatest lies below the least where there is none."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that a launch reads and writes, by its own names of its buffers."""

    read: Mapping[str, int]
    written: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Touch:
    """Elements of an access: those in `box`, at most `count` of them."""

    access: Access
    writes: bool
    box: _Box
    count: int


def traffic(step: Step, dims: Mapping[str, int]) -> Traffic:
    """The traffic of one launch of a step; `dims` has every dim that it mentions."""
    touches = [t for kernel in step.kernels for t in _touches(kernel, dims)]
    return Traffic(
        _bytes((t for t in touches if not t.writes), dims), _bytes((t for t in touches if t.writes), dims)
    )


def is_copy(step: Step) -> bool:
    """Whether all that a step does is to move whole buffers, each element to the same place of another."""
    return all(_copies(kernel) for kernel in step.kernels)


def _copies(kernel: Kernel) -> bool:
    match kernel.body:
        case (Load(var, source, ()), Store(target, value)):
            return (
                value == var
                and (source.index, source.shape, source.dtype) == (target.index, target.shape, target.dtype)
                and dim.product(kernel.axes.values()) == dim.product(source.shape)
                and not source.clamp
            )
        case _:
            return False


def _touches(kernel: Kernel, dims: Mapping[str, int]) -> Iterator[_Touch]:
    sizes = {axis: dim.value(extent, dims) for axis, extent in kernel.axes.items()}
    for statement in walk(kernel.body):
        if isinstance(statement, Load | Store):
            yield _touch(statement.access, statement.axes, isinstance(statement, Store), sizes, dims)
            for look in statement.access.looks():
                yield _touch(look, look.axes(), False, sizes, dims)


def _touch(
    access: Access, axes: Iterable[str], writes: bool, sizes: Mapping[str, int], dims: Mapping[str, int]
) -> _Touch:
    """What an access touches while `axes` run over their `sizes`."""
    points = math.prod(max(sizes[axis], 0) for axis in axes)
    box = tuple(_ranges(access, sizes, dims))
    return _Touch(access, writes, box, min(points, math.prod(max(h - low + 1, 0) for low, h in box)))


def _ranges(access: Access, sizes: Mapping[str, int], dims: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """The indices along each dimension that exist: all of them where data decides."""
    for index, extent in zip(access.index, access.shape, strict=True):
        last = dim.value(extent, dims) - 1
        if index.data():
            yield 0, last
            continue
        low, high = (dim.value(end, dims) for end in interval(index, sizes))
        yield max(low, 0), min(high, last)


def _bytes(touches: Iterable[_Touch], dims: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, list[_Touch]] = {}
    for touch in touches:
        found.setdefault(touch.access.buffer, []).append(touch)
    return {buffer: _elements(every, dims) * every[0].access.dtype.size for buffer, every in found.items()}


def _elements(touches: list[_Touch], dims: Mapping[str, int]) -> int:
    """The elements of one buffer that accesses touch, at most: those of a box around all, or their sum."""
    first = touches[0].access
    counts = {(t.access.index, t.access.shape): t.count for t in touches}
    bounds = [sum(counts.values()), max(dim.value(dim.product(first.shape), dims), 0)]
    boxes = [t.box for t in touches if t.count]
    if boxes and all(t.access.shape == first.shape for t in touches):
        around = zip(*boxes, strict=True)
        bounds.append(math.prod(max(h for _, h in ends) - min(low for low, _ in ends) + 1 for ends in around))
    return min(bounds)
