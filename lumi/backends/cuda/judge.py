"""Results compared with the reference where they lie: only a few numbers leave the GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lumi.backends.clike.helpers import helpers
from lumi.backends.cuda import ctype
from lumi.backends.cuda.compile import compile_cubin
from lumi.backends.cuda.gpu import Argument, Function, Gpu
from lumi.dtype import DType
from lumi.noise import FACTORS, STRIDE
from lumi.search.accuracy import Difference

THREADS, BLOCKS = 256, 8
"""Threads of a block, blocks of a multiprocessor."""

_HELPERS = Path(__file__).parent / "kernel.cuh"

_WORDS = 3
"""Words of what a comparison finds: elements astray, then the bits of two f64."""

_EACH = """
extern "C" __global__ void judge({parameters}, u64 n, u64 *out) {{
  u64 astray = 0;
  double error = 0, largest = 0;
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (u64)blockDim.x) {{
    {body}
  }}
  for (int lane = 16; lane; lane /= 2) {{
    astray {joined} __shfl_xor_sync(FULL_WARP, astray, lane);
    error = fmax(error, __shfl_xor_sync(FULL_WARP, error, lane));
    largest = fmax(largest, __shfl_xor_sync(FULL_WARP, largest, lane));
  }}
  if (threadIdx.x % 32) return;
  {added}(out, astray);
  atomicMax(out + 1, (u64)__double_as_longlong(error));
  atomicMax(out + 2, (u64)__double_as_longlong(largest));
}}
"""
"""All elements of a buffer.  The bits of floats that are not negative are in the order of the floats."""

_FLOATS = """
    const double g = {got}, w = want[i];
    if (fabs(w) <= 1.7976931348623157e308) {
      largest = fmax(largest, fabs(w));
      if (fabs(g) <= 1.7976931348623157e308) error = fmax(error, fabs(g - w));
      else astray++;
    } else if (g != w && (g == g || w == w)) astray++;
"""

_MIXED = f"""
    u64 z = words[i] + (i + 1) * {STRIDE:#x}ull;
    z = (z ^ (z >> 30)) * {FACTORS[0]:#x}ull;
    z = (z ^ (z >> 27)) * {FACTORS[1]:#x}ull;
    astray ^= z ^ (z >> 31);
"""


class Judge:
    """Compares and summarises memory of one GPU; it keeps the kernels that it has compiled."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu, self._functions = gpu, dict[str, Function]()
        self._found = gpu.allocate(8 * _WORDS)

    def difference(self, got: int, want: int, dtype: DType, count: int) -> Difference:
        """How `count` results of a type differ from the reference, whose floats are f64."""
        astray, error, largest = self._run(comparing(dtype), [got, want], count)
        numbers = np.array([error, largest], np.uint64).view(np.float64)
        return Difference(count, float(numbers[0]), float(numbers[1]), astray)

    def digest(self, address: int, size: int) -> int:
        """A number that any change of these bytes changes; `size` is a multiple of 8."""
        return self._run(digesting(), [address], size // 8)[0]

    def _run(self, source: str, addresses: Sequence[int], count: int) -> list[int]:
        gpu = self._gpu
        if source not in self._functions:
            code = compile_cubin(source, gpu.arch).content
            self._functions[source] = gpu.function(code, "judge", 0)
        gpu.clear(int(self._found), 8 * _WORDS)
        if count:
            values: list[Argument] = [(a, ctypes.c_void_p) for a in addresses]
            values += [(count, ctypes.c_uint64), (int(self._found), ctypes.c_void_p)]
            blocks = max(1, min(-(-count // THREADS), BLOCKS * gpu.units))
            gpu.launch(self._functions[source], blocks, THREADS, 0, values, early=False)
        found = np.zeros(_WORDS, np.uint64)
        gpu.read(int(self._found), found.view(np.uint8))
        return [int(n) for n in found]


def comparing(dtype: DType) -> str:
    """The kernel that compares results of a type."""
    kind = ctype.memory(dtype)
    if dtype.is_float:
        body = _FLOATS.replace("{got}", f"(double)({ctype.load('got + i', dtype)})")
        return _source(f"const {kind} *got, const double *want", body, "+=", "atomicAdd")
    body = "if (got[i] != want[i]) astray++;"
    return _source(f"const {kind} *got, const {kind} *want", body, "+=", "atomicAdd")


def digesting() -> str:
    """The kernel that summarises bytes."""
    return _source("const u64 *words", _MIXED, "^=", "atomicXor")


def _source(parameters: str, body: str, joined: str, added: str) -> str:
    return helpers(_HELPERS) + _EACH.format(parameters=parameters, body=body, joined=joined, added=added)
