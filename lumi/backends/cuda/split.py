"""f32 factors as sums of three bf16, so that a product with bf16 runs where halves are multiplied.

A f32 has 24 bits, a bf16 has 8: cut off, not rounded, the parts of a number add up to it exactly, but
for what lies below 2⁻¹³³.  Products of parts with bf16 are exact in f32, so that the sum of the three
products is as near as one of f32.  The parts of an infinity, or of no number, are itself and zeros.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from dataclasses import dataclass
from typing import Any

from lumi.backends.cuda.compile import compile_cubin
from lumi.backends.cuda.gpu import Gpu

PARTS = 3

ALIGNED = 8
"""Elements that a row of parts is a multiple of: 16 bytes."""

SOURCE = """
extern "C" __global__ void __launch_bounds__(256) split(
    const float *__restrict__ from, unsigned short *__restrict__ to, long long rows, long long columns,
    long long count, long long batch_step, long long row_step, long long column_step, long long row,
    long long part) {
  for (long long n = blockIdx.x * 256LL + threadIdx.x; n < count; n += gridDim.x * 256LL) {
    const long long c = n % columns, line = n / columns, r = line % rows, b = line / rows;
    const float x = from[b * batch_step + r * row_step + c * column_step];
    const unsigned bits = __float_as_uint(x);
    const bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    const unsigned quiet = x != x ? 0x00400000u : 0u;
    const unsigned high = (bits | quiet) & 0xffff0000u;
    const float rest = x - __uint_as_float(high);
    const unsigned middle = finite ? __float_as_uint(rest) & 0xffff0000u : 0u;
    const float last = rest - __uint_as_float(middle);
    const unsigned low = finite ? __float_as_uint(last) & 0xffff0000u : 0u;
    unsigned short *const place = to + line * row + c;
    place[0] = (unsigned short)(low >> 16);
    place[part] = (unsigned short)(middle >> 16);
    place[2 * part] = (unsigned short)(high >> 16);
  }
}
"""


@dataclass(frozen=True, slots=True)
class Split:
    """A stack of f32 matrices at `address` and the numbers of elements between neighbours in it.

    Its parts, the lowest first, are stacks of dense rows of `row` elements.
    """

    address: int
    batch: int
    rows: int
    columns: int
    steps: tuple[int, int, int]

    @property
    def row(self) -> int:
        """Elements of a row of parts."""
        return -(-self.columns // ALIGNED) * ALIGNED

    @property
    def part(self) -> int:
        """Elements of one part of the whole stack."""
        return self.batch * self.rows * self.row


class Splitter:
    """The kernel that splits, and memory for parts, which calls share: they follow each other."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._function = gpu.function(compile_cubin(SOURCE, gpu.arch).content, "split", 0)
        self._lock = threading.Lock()
        self._size = 0
        self._blocks: list[Any] = []

    def room(self, size: int) -> int:
        """The address of at least `size` bytes; what was given out before stays where graphs know it."""
        with self._lock:
            if size > self._size:
                self._size = max(size, 2 * self._size)
                self._blocks.append(self._gpu.reserve(self._size))
            return int(self._blocks[-1])

    def put(self, split: Split, address: int) -> None:
        """Put the splitting of a stack into parts at `address` on the stream."""
        count = split.batch * split.rows * split.columns
        numbers = (split.rows, split.columns, count, *split.steps, split.row, split.part)
        values: list[tuple[int, type]] = [(a, ctypes.c_void_p) for a in (split.address, address)]
        values += [(n, ctypes.c_longlong) for n in numbers]
        blocks = min(-(-count // 256), 16 * self._gpu.units)
        self._gpu.launch(self._function, blocks, 256, 0, values, early=False)


@functools.cache
def open_splitter(gpu: Gpu) -> Splitter:
    """The splitter of a GPU, made once."""
    return Splitter(gpu)
