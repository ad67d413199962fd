"""Made-up numbers written by the GPU itself, those of `lumi.noise` bit for bit."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from lumi.backends.clike.helpers import helpers
from lumi.backends.cuda.compile import compile_cubin
from lumi.backends.cuda.gpu import Function, Gpu
from lumi.dtype import DType
from lumi.noise import CENTRE, FACTORS, STRIDE, Noise

THREADS, BLOCKS = 256, 32
"""Threads of a block, blocks of a multiprocessor."""

_HELPERS = Path(__file__).parent / "kernel.cuh"

_TYPES = {
    "bool": "u8",
    "i8": "i8",
    "u8": "u8",
    "i32": "int",
    "i64": "i64",
    "f16": "u16",
    "bf16": "u16",
    "f8e4m3": "u8",
    "f8e5m2": "u8",
    "f32": "float",
    "f64": "double",
}


def fill(gpu: Gpu, address: int, noise: Noise, count: int) -> None:
    """Write the first `count` numbers of a noise to device memory, and wait."""
    Filler(gpu).put(address, noise, count)
    gpu.wait()


class Filler:
    """Puts writing made-up numbers on the stream; it keeps the kernels that it has compiled."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu, self._functions = gpu, dict[DType, Function]()

    def put(self, address: int, noise: Noise, count: int) -> None:
        """Let the first `count` numbers of a noise be written."""
        if not count:
            return
        gpu, dtype = self._gpu, noise.dtype
        if dtype not in self._functions:
            code = compile_cubin(_source(dtype), gpu.arch).content
            self._functions[dtype] = gpu.function(code, "fill", 0)
        values: list[tuple[Any, type]] = [
            (address, ctypes.c_void_p),
            (count, ctypes.c_uint64),
            (noise.seed, ctypes.c_uint64),
            (float(noise.factor), ctypes.c_float),
            (noise.low, ctypes.c_int64),
            (noise.span, ctypes.c_uint64),
        ]
        blocks = max(1, min(-(-count // THREADS), BLOCKS * gpu.units))
        gpu.launch(self._functions[dtype], blocks, THREADS, 0, values, early=False)


def _source(dtype: DType) -> str:
    kind = _TYPES[dtype.name]
    return f"""{helpers(_HELPERS)}
extern "C" __global__ void fill({kind} *out, unsigned long long n, unsigned long long seed, float factor,
                                long long low, unsigned long long span) {{
  for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * (unsigned long long)blockDim.x) {{
    unsigned long long z = (i + 1) * {STRIDE:#x}ull + seed;
    z = (z ^ (z >> 30)) * {FACTORS[0]:#x}ull;
    z = (z ^ (z >> 27)) * {FACTORS[1]:#x}ull;
    z ^= z >> 31;
    {_store(dtype, kind)}
  }}
}}
"""


def _store(dtype: DType, kind: str) -> str:
    if not dtype.is_float:
        return f"out[i] = ({kind})(low + (long long)(((z >> 32) * span) >> 32));"
    total = "(int)(z & 0xFFFF) + (int)((z >> 16) & 0xFFFF) + (int)((z >> 32) & 0xFFFF) + (int)(z >> 48)"
    value = f"float v = (float)({total} - {CENTRE}) * factor;"
    return f"{value} out[i] = {f'to_{dtype}(v)' if dtype.is_narrow else 'v'};"
