"""Quantised blocks as numpy planes, and exactly dequantised f32 weights.

The formulas are those of `lumi.blocks`, in the order of operations of ggml, so results are bit-equal to
its own.  Large tensors are converted in runs of rows whose intermediate values stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from lumi.blocks import BlockFormat, Plane

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Planes: TypeAlias = "Mapping[str, Array]"

_RUN = 1 << 18
"""Weights converted at a time: f32 and integer copies of a run fill about 3 MB."""


def split_plane(raw: Array, block: BlockFormat, plane: Plane, shape: tuple[int, ...]) -> Array:
    """The plane [*rows, blocks, *field] of a tensor's u8 bytes, a strided view.

    `shape` is [*rows, cols]; cols is a multiple of the block.
    """
    lead = (*shape[:-1], shape[-1] // block.elements)
    blocks = raw.reshape(*lead, block.bytes)
    field = blocks[..., plane.offset : plane.offset + plane.bytes]
    return field.view(plane.dtype.storage).reshape(*lead, *plane.shape)


def dequantize(raw: Array, block: BlockFormat, shape: tuple[int, ...]) -> Array:
    """f32[*shape] of a tensor's u8 bytes."""
    weights = np.empty(shape, np.float32)
    blocks = raw.reshape(-1, block.bytes)
    flat = weights.reshape(-1, block.elements)
    step = max(1, _RUN // block.elements)
    convert = _DEQUANTIZE[block.name]
    for start in range(0, len(blocks), step):
        run = blocks[start : start + step]
        planes = {
            p.name: split_plane(run, block, p, (run.size // block.bytes * block.elements,))
            for p in block.planes
        }
        convert(planes, flat[start : start + step])
    return weights


def _nibbles(packed: Array) -> Array:
    """u8[… n] → u8[… 2 n]: the low, then the high four bits."""
    return np.stack([packed & 15, packed >> 4], axis=-2)


def _wide(x: Array, axes: int) -> Array:
    """f32 of `x` with `axes` further axes of size 1."""
    return x.astype(np.float32).reshape(*x.shape, *(1,) * axes)


def _q4_0(planes: Planes, out: Array) -> None:
    q = _nibbles(planes["qs"]).reshape(out.shape).astype(np.int8) - np.int8(8)
    np.multiply(_wide(planes["d"], 1), q, out=out)


def _q5_0(planes: Planes, out: Array) -> None:
    fifth = np.unpackbits(planes["qh"], axis=-1, bitorder="little")
    q = (_nibbles(planes["qs"]).reshape(out.shape) | fifth << 4).astype(np.int8) - np.int8(16)
    np.multiply(_wide(planes["d"], 1), q, out=out)


def _q8_0(planes: Planes, out: Array) -> None:
    np.multiply(_wide(planes["d"], 1), planes["qs"], out=out)


def _sub_block_scales(scales: Array) -> tuple[Array, Array]:
    """The six-bit factors and minima u8[… 8] of u8[… 12]."""
    a, b, c = scales[..., 0:4], scales[..., 4:8], scales[..., 8:12]
    factor = np.concatenate([a & 63, (c & 15) | (a >> 6) << 4], axis=-1)
    least = np.concatenate([b & 63, (c >> 4) | (b >> 6) << 4], axis=-1)
    return factor, least


def _affine(planes: Planes, q: Array, out: Array) -> None:
    """d S q - dmin M over sub-blocks q[blocks 8 32]."""
    factor, least = _sub_block_scales(planes["scales"])
    target = out.reshape(q.shape)
    scale = (_wide(planes["d"], 1) * factor)[..., None]
    shift = (_wide(planes["dmin"], 1) * least)[..., None]
    np.multiply(scale, q, out=target)
    np.subtract(target, shift, out=target)


def _q4_k(planes: Planes, out: Array) -> None:
    q = _nibbles(planes["qs"].reshape(-1, 4, 32))
    _affine(planes, q.reshape(-1, 8, 32), out)


def _q5_k(planes: Planes, out: Array) -> None:
    low = _nibbles(planes["qs"].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    fifth = planes["qh"][:, None, :] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    _affine(planes, low | fifth << 4, out)


def _q6_k(planes: Planes, out: Array) -> None:
    low = _nibbles(planes["ql"].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = planes["qh"].reshape(-1, 2, 1, 32) >> shifts & 3
    q = (low | high << 4).astype(np.int8) - np.int8(32)
    scale = _wide(planes["d"], 1) * planes["scales"]
    np.multiply(scale[..., None], q.reshape(-1, 16, 16), out=out.reshape(-1, 16, 16))


_DEQUANTIZE: dict[str, Callable[[Planes, Array], None]] = {
    "q4_0": _q4_0,
    "q5_0": _q5_0,
    "q8_0": _q8_0,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
}
