"""How the GPU's copy engine sees a buffer (a tensor map of the CUDA driver)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lumi.dtype import BF16, DType

WIDTH = 64
"""Elements of a line that one copy brings, 128 bytes of halves."""


@dataclass(frozen=True, slots=True)
class Box:
    """A buffer as planes of lines of halves, from element `offset` on; a copy brings `height` lines of 64.

    `buffer` is its number among the buffers of the kernel.  What lies outside of it is read as 0.
    """

    buffer: int
    dtype: DType
    offset: int
    halves: int
    lines: int
    line_step: int
    planes: int
    plane_step: int
    height: int

    @property
    def kind(self) -> str:
        """What the driver calls the element type."""
        return "BFLOAT16" if self.dtype == BF16 else "FLOAT16"


def encode(cuda: Any, address: int, box: Box) -> tuple[Any, ...]:
    """The driver's answer, by its bindings, to how a buffer at an address is seen."""
    kinds, size = cuda.CUtensorMapDataType, box.dtype.size
    lengths = [cuda.cuuint64_t(n) for n in (box.halves, box.lines, box.planes)]
    steps = [cuda.cuuint64_t(n * size) for n in (box.line_step, box.plane_step)]
    piece = [cuda.cuuint32_t(n) for n in (WIDTH, box.height, 1)]
    found: tuple[Any, ...] = cuda.cuTensorMapEncodeTiled(
        getattr(kinds, f"CU_TENSOR_MAP_DATA_TYPE_{box.kind}"),
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
