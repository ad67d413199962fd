"""Which elements of its buffers a kernel can touch, and what must hold so that all of them exist.

Index maps are affine in the axes, with quotients and remainders by constants, so interval arithmetic
over symbolic extents gives the least and greatest index.  What the ranges of the dims do not prove
becomes a `Requirement` that every call checks: a plan never reads or writes outside of its buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lumi.dim import Extent
from lumi.field.access import Access
from lumi.field.index import Data, Index, Look, Part, Quot, Rem, Sym
from lumi.field.region import Region
from lumi.llir import kernel as llir
from lumi.llir.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Requirement:
    """`gap` must not be negative: it is the room left behind (or before) the outermost element touched
    along `axis` of `buffer`, of which there are `size`."""

    gap: Extent
    buffer: str
    axis: int
    size: Extent


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a launch does to its buffers, under the names that its kernels have for them.

    `accesses` are those of each buffer that differ in type or shape, keyed in the order in which the
    launch takes its buffers.  `dims` are the dims it mentions, `needs` the room its accesses must have.
    """

    accesses: Mapping[str, tuple[Access, ...]]
    read: frozenset[str]
    written: frozenset[str]
    dims: tuple[str, ...]
    needs: tuple[Requirement, ...]

    @property
    def buffers(self) -> tuple[str, ...]:
        """The buffers in the order in which the launch takes them."""
        return tuple(self.accesses)


def footprint(*kernels: Kernel) -> Footprint:
    """The footprint of one launch.  Raises `ValueError` or `KeyError` when an index means nothing."""
    seen: dict[str, dict[tuple[object, ...], Access]] = {}
    used: dict[bool, set[str]] = {False: set(), True: set()}
    needs: dict[Requirement, None] = {}
    for kernel in kernels:
        for access, writes in llir.accesses(kernel):
            seen.setdefault(access.buffer, {}).setdefault((access.dtype, access.shape), access)
            used[writes].add(access.buffer)
            for axis, gap in gaps(access, kernel.axes):
                needs[Requirement(gap, access.buffer, axis, access.shape[axis])] = None
    return Footprint(
        {buffer: tuple(found.values()) for buffer, found in seen.items()},
        frozenset(used[False]),
        frozenset(used[True]),
        tuple(sorted({name for kernel in kernels for name in llir.dims(kernel)})),
        tuple(needs),
    )


def interval(index: Index, axes: Mapping[str, Extent]) -> tuple[Extent, Extent]:
    """Least and greatest value of an index while each axis runs over its extent.

    Raises `ValueError` for an index that data decides and `KeyError` for an unknown axis.
    """
    low: Extent = index.offset
    high: Extent = index.offset
    for part, coefficient in index.terms:
        least, greatest = _part(part, axes)
        if coefficient < 0:
            least, greatest = greatest, least
        low, high = low + least * coefficient, high + greatest * coefficient
    return low, high


def _part(part: Part, axes: Mapping[str, Extent]) -> tuple[Extent, Extent]:
    match part:
        case str():
            return 0, axes[part] - 1
        case Sym(extent):
            return extent, extent
        case Quot(inner, divisor):
            low, high = interval(inner, axes)
            return low // divisor, high // divisor
        case Rem(_, divisor):
            return 0, divisor - 1
        case Look(_, _, _, size):
            return 0, size - 1
        case Data():
            raise ValueError(f"{part} can be any number")


def gaps(access: Access, axes: Mapping[str, Extent]) -> Iterator[tuple[int, Extent]]:
    """For each dimension of an access, the room before its least and behind its greatest index.

    Negative room is an element that does not exist.  Indices that data decides are clamped by every
    device, and so are all indices of an access that says so.  What is looked up is clamped into a size,
    which has to be one at least.
    """
    for number, (index, size) in enumerate(zip(access.index, access.shape, strict=True)):
        if access.clamp or index.data():
            continue
        yield from ((number, look.size - 1) for look in index.looks())
        low, high = interval(index, axes)
        yield number, low
        yield number, size - 1 - high


def room(region: Region) -> list[Extent]:
    """The room that the accesses of a region must have."""
    axes = {axis.name: axis.extent for axis in region.axes}
    accesses = [*region.accesses.values(), *(s.access for s in region.stores)]
    accesses += [look for access in accesses for look in access.looks()]
    return list(dict.fromkeys(gap for access in accesses for _, gap in gaps(access, axes)))
