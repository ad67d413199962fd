"""`stdlib/quant.lumi` against the gguf package, bit for bit: both compute in f32 in the same order."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from lumi.blocks import BLOCKS
from lumi.errors import Source
from lumi.hlir.graph import Graph
from lumi.hlir.reference import evaluate
from lumi.interpreter.module import load
from lumi.interpreter.trace import trace
from lumi.runtime.tensor import Tensor
from tests.runtime.files import Array, random_blocks

ROWS, BLOCKS_A_ROW = 3, 2


def unpacking(kind: str) -> Graph:
    """A model that returns a packed weight."""
    cols = BLOCKS_A_ROW * BLOCKS[kind].elements
    source = Source("unpack.lumi", f'(defmodel unpack [(x f32 [1])] (param "w" [{ROWS} {cols}]))')
    return trace(load(source), packing={"w": kind})


def planes_of(kind: str, raw: Array) -> dict[str, Array]:
    """The planes of blocks of a kind."""
    shape = (ROWS, BLOCKS_A_ROW * BLOCKS[kind].elements)
    tensor = Tensor("w", shape, BLOCKS[kind], raw.ravel())
    return {f"w#{p.name}": tensor.plane(p.name) for p in BLOCKS[kind].planes}


def unpacked(kind: str, raw: Array) -> Array:
    """The weights that the stdlib makes of blocks."""
    arrays = planes_of(kind, raw) | {"x": np.zeros(1, np.float32)}
    return evaluate(unpacking(kind), arrays, {})["out"]


@pytest.mark.parametrize("kind", BLOCKS)
def test_unpacked_weights_equal_the_gguf_package(kind: str) -> None:
    for seed in range(3):
        raw = random_blocks(BLOCKS[kind], ROWS, BLOCKS_A_ROW, seed)
        want = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind.upper()])
        np.testing.assert_array_equal(unpacked(kind, raw), want)


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("byte", [0x01, 0x80, 0xFF, 0x5A])
def test_every_bit_has_its_place(kind: str, byte: int) -> None:
    """One field is `byte` everywhere, the others are zero, the scales are 1."""
    block = BLOCKS[kind]
    for field in (p for p in block.planes if not p.dtype.is_float):
        raw = np.zeros((ROWS, BLOCKS_A_ROW, block.bytes), np.uint8)
        for plane in block.planes:
            span = raw[..., plane.offset : plane.offset + plane.bytes]
            if plane.dtype.is_float:
                span[...] = np.array([1.0], np.float16).view(np.uint8)
            elif plane is field:
                span[...] = byte
        raw = raw.reshape(ROWS, -1)
        want = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind.upper()])
        np.testing.assert_array_equal(unpacked(kind, raw), want, err_msg=field.name)
