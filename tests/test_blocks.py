"""Block formats against the layout tables of the gguf package."""

from __future__ import annotations

import gguf
import pytest

from lumi.blocks import BLOCKS, BlockFormat


@pytest.mark.parametrize("name", BLOCKS)
def test_sizes_equal_ggml(name: str) -> None:
    kind = gguf.GGMLQuantizationType[name.upper()]
    assert (BLOCKS[name].elements, BLOCKS[name].bytes) == gguf.GGML_QUANT_SIZES[kind]


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_planes_fill_the_block_without_gaps(block: BlockFormat) -> None:
    end = 0
    for plane in block.planes:
        assert plane.offset == end
        end += plane.bytes
    assert end == block.bytes


def test_function_is_spelled_as_in_the_language() -> None:
    assert BLOCKS["q4_k"].function == "dequantize-q4-k"
