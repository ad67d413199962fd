"""Quantised blocks as numpy planes, and exactly dequantised f32 weights.

Blocks are first widened to one byte a quant, then multiplied out.  The formulas are those of `lumi.blocks`,
in the order of operations of ggml, so results are bit-equal to its own.  Large tensors are converted in
runs of blocks whose intermediate values stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from lumi.blocks import BlockFormat, Plane

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Planes: TypeAlias = "Mapping[str, Array]"
Widen: TypeAlias = "Callable[[Planes], Array]"
"""Makes integers of a byte each, or takes scales, from the fields [blocks *field] of blocks."""

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
    flat = weights.reshape(-1, block.elements)
    for run, fields in _runs(raw.reshape(-1, block.bytes), block):
        wide = {name: widen(fields) for name, widen in _WIDEN[block.name].items()}
        _WEIGHTS[block.name](wide, flat[run])
    return weights


def _runs(blocks: Array, block: BlockFormat) -> Iterator[tuple[slice, Planes]]:
    """Runs of blocks, each with its fields [blocks *field]."""
    step = max(1, _RUN // block.elements)
    for start in range(0, len(blocks), step):
        run = slice(start, start + step)
        shape = (len(blocks[run]) * block.elements,)
        yield run, {p.name: split_plane(blocks[run], block, p, shape) for p in block.planes}


# -- fields to quants, factors and minima of one byte each


def _nibbles(packed: Array) -> Array:
    """u8[… n] → u8[… 2 n]: the low, then the high four bits."""
    return np.stack([packed & 15, packed >> 4], axis=-2)


def _field(name: str) -> Widen:
    """The field as it is."""
    return lambda fields: fields[name]


def _quants_4_0(fields: Planes) -> Array:
    return _less(_nibbles(fields["qs"]).reshape(-1, 32), 8)


def _less(quants: Array, offset: int) -> Array:
    """u8 → i8: each value less the offset that a format stores it with."""
    signed: Array = quants.astype(np.int8) - np.int8(offset)
    return signed


def _quants_5_0(fields: Planes) -> Array:
    fifth = np.unpackbits(fields["qh"], axis=-1, bitorder="little")
    return _less(_nibbles(fields["qs"]).reshape(-1, 32) | fifth << 4, 16)


def _quants_4_k(fields: Planes) -> Array:
    return _nibbles(fields["qs"].reshape(-1, 4, 32)).reshape(-1, 8, 32)


def _quants_5_k(fields: Planes) -> Array:
    fifth = fields["qh"][:, None, :] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    quants: Array = _quants_4_k(fields) | fifth << 4
    return quants


def _quants_6_k(fields: Planes) -> Array:
    low = _nibbles(fields["ql"].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    shifts = np.arange(0, 8, 2, dtype=np.uint8)[:, None]
    high = fields["qh"].reshape(-1, 2, 1, 32) >> shifts & 3
    return _less(low | high << 4, 32)


def _factors(fields: Planes) -> Array:
    """The six-bit factors of the eight sub-blocks of q4_k and q5_k."""
    a, c = fields["scales"][..., 0:4], fields["scales"][..., 8:12]
    return np.concatenate([a & 63, (c & 15) | (a >> 6) << 4], axis=-1)


def _minima(fields: Planes) -> Array:
    """The six-bit minima of the eight sub-blocks of q4_k and q5_k."""
    b, c = fields["scales"][..., 4:8], fields["scales"][..., 8:12]
    return np.concatenate([b & 63, (c >> 4) | (b >> 6) << 4], axis=-1)


_AFFINE = {"d": _field("d"), "dmin": _field("dmin"), "scales": _factors, "mins": _minima}
_WIDEN: dict[str, dict[str, Widen]] = {
    "q4_0": {"d": _field("d"), "qs": _quants_4_0},
    "q5_0": {"d": _field("d"), "qs": _quants_5_0},
    "q8_0": {"d": _field("d"), "qs": _field("qs")},
    "q4_k": _AFFINE | {"qs": _quants_4_k},
    "q5_k": _AFFINE | {"qs": _quants_5_k},
    "q6_k": {"d": _field("d"), "scales": _field("scales"), "qs": _quants_6_k},
}


# -- weights of quants, factors and minima


def _linear(planes: Planes, out: Array) -> None:
    """d q."""
    np.multiply(planes["d"].astype(np.float32)[:, None], planes["qs"], out=out)


def _affine(planes: Planes, out: Array) -> None:
    """d S q - dmin M over sub-blocks of 32."""
    target = out.reshape(-1, 8, 32)
    scale = planes["d"].astype(np.float32)[:, None] * planes["scales"]
    shift = planes["dmin"].astype(np.float32)[:, None] * planes["mins"]
    np.multiply(scale[..., None], planes["qs"].reshape(-1, 8, 32), out=target)
    np.subtract(target, shift[..., None], out=target)


def _scaled(planes: Planes, out: Array) -> None:
    """d S q over sub-blocks of 16."""
    scale = planes["d"].astype(np.float32)[:, None] * planes["scales"]
    np.multiply(scale[..., None], planes["qs"].reshape(-1, 16, 16), out=out.reshape(-1, 16, 16))


_WEIGHTS: dict[str, Callable[[Planes, Array], None]] = {
    "q4_0": _linear,
    "q5_0": _linear,
    "q8_0": _linear,
    "q4_k": _affine,
    "q5_k": _affine,
    "q6_k": _scaled,
}
