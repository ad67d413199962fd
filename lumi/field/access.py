"""How a term touches a buffer: which one, and at which element."""

from __future__ import annotations

from dataclasses import dataclass

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import DType
from lumi.field.index import Index


@dataclass(frozen=True, slots=True)
class Access:
    """Element `index` of `buffer`, one `Index` a dimension of `shape`.

    A buffer holds its elements in row-major order, so an access may see it under any shape of its size.
    With `clamp` the map may leave the buffer: each index is clamped into it, and the term around the
    access selects what the value is there.
    """

    buffer: str
    index: tuple[Index, ...]
    shape: tuple[Extent, ...]
    dtype: DType
    clamp: bool = False

    def fits(self, dtype: DType, shape: tuple[Extent, ...]) -> bool:
        """Whether it may touch a buffer of this type and shape."""
        same = self.shape == shape or dim.product(self.shape) == dim.product(shape)
        return self.dtype == dtype and same

    def axes(self) -> frozenset[str]:
        """Every axis the index maps mention."""
        return frozenset().union(*(i.axes() for i in self.index))

    def data(self) -> tuple[int, ...]:
        """The numbers of the data indices, sorted."""
        return tuple(sorted(frozenset().union(*(i.data() for i in self.index))))

    def __str__(self) -> str:
        """`(B0 [i (+ j 1)])`."""
        return f"({self.buffer} [{' '.join(map(str, self.index))}])"
