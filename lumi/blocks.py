"""Block formats of quantised weights: how the bytes of one block divide into planes.

A format stores a fixed number of consecutive weights of a row in a block of bytes.  Lumi keeps a packed
weight as a structure of arrays: one plane a field of the block, so that a kernel reads each field with
unit stride.  The plane of a field has shape [rows, blocks, *field shape].

Source of layouts and formulas: the block structs of ggml (`ggml-common.h`) and its format description.
Below, w is a weight, j its place in the block, bytes are little endian and `x[a:b]` are bits a … b-1 of x.

- q4_0: w = d (q - 8); q is the low nibble of qs[j] for j < 16, else the high nibble of qs[j - 16].
- q5_0: w = d (q - 16); q is the nibble as in q4_0, with bit j of the 32-bit qh as bit 4.
- q8_0: w = d qs[j].
- q4_k: w = d S q - dmin M; sub-blocks s = j / 32 (all divisions of places round down); q is a nibble of
  qs[32 (s / 2) + j mod 32], the low one for even s.
- q5_k: as q4_k, with bit s of qh[j mod 32] as bit 4 of q.
- q6_k: w = d scales[j / 16] (q - 32); of half h = j / 128 and quarter p = (j mod 128) / 32, the low four
  bits of q are a nibble of ql[64 h + 32 (p mod 2) + j mod 32], the low one for p < 2, and bits 4 and 5
  are qh[32 h + j mod 32][2p : 2p + 2].

The six-bit S and M of a q4_k or q5_k sub-block s lie in scales[12]: for s < 4, S = scales[s][0:6] and
M = scales[s + 4][0:6]; otherwise S = scales[s + 4][0:4] + 16 scales[s - 4][6:8] and
M = scales[s + 4][4:8] + 16 scales[s][6:8].
"""

from __future__ import annotations

from dataclasses import dataclass

from lumi.dtype import F16, I8, U8, DType


@dataclass(frozen=True, slots=True)
class Plane:
    """One field of a block: `shape` values of `dtype`, `offset` bytes after the start of the block."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    offset: int

    @property
    def bytes(self) -> int:
        """Bytes of the field in one block."""
        size = self.dtype.size
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """`elements` weights in `bytes` bytes, divided into `planes` without gaps."""

    name: str
    elements: int
    bytes: int
    planes: tuple[Plane, ...]

    @property
    def function(self) -> str:
        """The stdlib function that turns the planes, in their order, into weights [rows cols]."""
        return f"dequantize-{self.name.replace('_', '-')}"


def _format(name: str, elements: int, *fields: tuple[str, DType, tuple[int, ...]]) -> BlockFormat:
    planes: list[Plane] = []
    offset = 0
    for field, dtype, shape in fields:
        planes.append(Plane(field, dtype, shape, offset))
        offset += planes[-1].bytes
    return BlockFormat(name, elements, offset, tuple(planes))


BLOCKS: dict[str, BlockFormat] = {
    block.name: block
    for block in (
        _format("q4_0", 32, ("d", F16, ()), ("qs", U8, (16,))),
        _format("q5_0", 32, ("d", F16, ()), ("qh", U8, (4,)), ("qs", U8, (16,))),
        _format("q8_0", 32, ("d", F16, ()), ("qs", I8, (32,))),
        _format("q4_k", 256, ("d", F16, ()), ("dmin", F16, ()), ("scales", U8, (12,)), ("qs", U8, (128,))),
        _format(
            "q5_k",
            256,
            ("d", F16, ()),
            ("dmin", F16, ()),
            ("scales", U8, (12,)),
            ("qh", U8, (32,)),
            ("qs", U8, (128,)),
        ),
        _format("q6_k", 256, ("ql", U8, (128,)), ("qh", U8, (64,)), ("scales", I8, (16,)), ("d", F16, ())),
    )
}
"""Every block format, by name."""
