"""Products of f32 in TF32: which schedules round factors so, and how many operations that makes a second.

Tensor cores multiply f32 of which only 10 bits of the mantissa are left, and add the products up in f32.
Nothing does so by itself: such schedules are offered for kernels that round their factors so anyway, and with
`--relaxed tf32`.
"""

from __future__ import annotations

from lumi.llir.kernel import Schedule

TF32 = ("tf32", 1)
"""The option of schedules under which factors of f32 are rounded to TF32."""

RATE = 380e12
"""Operations a second of large products on an H200."""


def is_tf32(schedule: Schedule) -> bool:
    """Whether a schedule rounds factors so."""
    return TF32 in schedule.options
