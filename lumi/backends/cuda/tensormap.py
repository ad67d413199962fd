"""How the GPU's copy engine sees a buffer (a tensor map of the CUDA driver)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import BF16, F16, F32, DType

LINE = 128
"""Bytes of a line that one copy brings."""

KINDS = {BF16: "BFLOAT16", F16: "FLOAT16", F32: "FLOAT32"}
"""What the driver calls the types of elements."""


@dataclass(frozen=True, slots=True)
class Box:
    """A buffer as planes of lines, from element `offset` on; a copy brings `LINE` bytes of `height` lines.

    `width` are the elements of a line, `buffer` is its number among those of the launch.  What lies outside
    of it is read as 0.  Where `lines` depends on dims, it has as many as at the largest ones, for which there
    is memory.
    """

    buffer: int
    dtype: DType
    offset: int
    width: int
    lines: Extent
    line_step: int
    planes: int
    plane_step: int
    height: int

    def at(self, dims: Mapping[str, int]) -> Box:
        """The box at these dims."""
        return replace(self, lines=dim.value(self.lines, dims))


def encode(cuda: Any, address: int, box: Box) -> tuple[Any, ...]:
    """The driver's answer, by its bindings, to how a buffer at an address is seen; no dim is left open."""
    kinds, size = cuda.CUtensorMapDataType, box.dtype.size
    lengths = [cuda.cuuint64_t(n) for n in (box.width, box.lines, box.planes)]
    steps = [cuda.cuuint64_t(n * size) for n in (box.line_step, box.plane_step)]
    piece = [cuda.cuuint32_t(n) for n in (LINE // size, box.height, 1)]
    found: tuple[Any, ...] = cuda.cuTensorMapEncodeTiled(
        getattr(kinds, f"CU_TENSOR_MAP_DATA_TYPE_{KINDS[box.dtype]}"),
        len(lengths),
        address + box.offset * size,
        lengths,
        steps,
        piece,
        [cuda.cuuint32_t(1)] * len(lengths),
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        cuda.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        cuda.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    return found
