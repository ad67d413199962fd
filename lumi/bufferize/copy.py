"""The kernel that copies a buffer: a copy in a plan is a launch like any other."""

from __future__ import annotations

from collections.abc import Sequence

from lumi.dim import Extent
from lumi.dtype import DType
from lumi.field.access import Access
from lumi.field.index import Index, of_axis
from lumi.llir.kernel import Kernel, Load, Store

SOURCE, TARGET = "B0", "B1"
"""The copy kernel's own names of its buffers."""

_TILE = 64


def copy_kernel(dtype: DType, shape: Sequence[Extent]) -> Kernel:
    """B1 = B0, element by element."""
    axes = {f"i{k}": size for k, size in enumerate(shape) if size != 1}
    index = tuple(of_axis(f"i{k}") if size != 1 else Index() for k, size in enumerate(shape))
    names = tuple(axes)
    tiles = {name: _tile(axes[name]) if name == names[-1] else 1 for name in names}
    load = Load("v", Access(SOURCE, index, tuple(shape), dtype), (), names, dtype)
    store = Store(Access(TARGET, index, tuple(shape), dtype), "v", names)
    return Kernel(axes, names, (), tiles, (load, store))


def _tile(extent: Extent) -> int:
    return max(1, min(extent, _TILE)) if isinstance(extent, int) else _TILE
