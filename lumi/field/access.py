"""How a term touches a buffer: which one, and at which element."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import I32, DType
from lumi.field.index import Index, Look, Part, Quot, Rem
from lumi.field.index import index as made


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

    def looks(self) -> tuple[Access, ...]:
        """The accesses of the buffers in which its indices are looked up."""
        found = (look for index in self.index for look in index.looks())
        return tuple(Access(look.buffer, look.index, look.shape, I32) for look in found)

    def renamed(self, buffers: Mapping[str, str]) -> Access:
        """The same elements where buffers have other names; what `buffers` lacks keeps its name."""

        def index(at: Index) -> Index:
            return made([(part(p), c) for p, c in at.terms], at.offset)

        def part(found: Part) -> Part:
            match found:
                case Look(buffer, inner, _, _):
                    return replace(found, buffer=buffers.get(buffer, buffer), index=tuple(map(index, inner)))
                case Quot(inner, divisor):
                    return Quot(index(inner), divisor)
                case Rem(inner, divisor):
                    return Rem(index(inner), divisor)
                case _:
                    return found

        places = tuple(map(index, self.index)) if self.looks() else self.index
        return replace(self, buffer=buffers.get(self.buffer, self.buffer), index=places)

    def data(self) -> tuple[int, ...]:
        """The numbers of the data indices, sorted."""
        return tuple(sorted(frozenset().union(*(i.data() for i in self.index))))

    def __str__(self) -> str:
        """`(B0 [i (+ j 1)])`."""
        return f"({self.buffer} [{' '.join(map(str, self.index))}])"
