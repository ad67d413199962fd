"""How a reshape regroups dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from lumi import dim
from lumi.dim import Extent


@dataclass(frozen=True, slots=True)
class Group:
    """Consecutive dimensions before and after a reshape that hold the same elements."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def keeps(self) -> bool:
        """Whether one dimension stays one dimension."""
        return len(self.before) == len(self.after) == 1


@lru_cache(maxsize=4096)
def groups(before: tuple[Extent, ...], after: tuple[Extent, ...]) -> tuple[Group, ...]:
    """The smallest groups with equal products; dimensions of 1 are in none.

    A reshape of nothing, whose sizes need not regroup, has no groups.  Raises `ValueError` when the
    products differ.
    """
    if 0 in before or 0 in after:
        return ()
    left = [k for k, z in enumerate(before) if z != 1]
    right = [k for k, z in enumerate(after) if z != 1]
    found: list[Group] = []
    while left or right:
        ins, outs = _next(before, left), _next(after, right)
        a, b = before[ins[0]], after[outs[0]]
        while a != b:
            # a prefix product that both sides share is a multiple of a and of b
            if left and (dim.divide(a, b) is None or not right):
                k = left.pop(0)
                ins.append(k)
                a = a * before[k]
            else:
                outs += _next(after, right)
                b = b * after[outs[-1]]
        found.append(Group(tuple(ins), tuple(outs)))
    return tuple(found)


def _next(sizes: tuple[Extent, ...], places: list[int]) -> list[int]:
    if not places:
        raise ValueError(f"a reshape of {list(sizes)} changes the number of elements")
    return [places.pop(0)]
