"""Block formats against the layout tables of the gguf package."""

from __future__ import annotations

import gguf
import pytest

from lumi.blocks import BLOCKS, WIDE, BlockFormat


@pytest.mark.parametrize("name", WIDE)
def test_sizes_equal_ggml(name: str) -> None:
    kind = gguf.GGMLQuantizationType[name.upper()]
    assert (BLOCKS[name].elements, BLOCKS[name].bytes) == gguf.GGML_QUANT_SIZES[kind]


@pytest.mark.parametrize("name", WIDE)
def test_wide_formats_hold_one_byte_a_weight(name: str) -> None:
    wide = WIDE[name]
    quants = next(p for p in wide.planes if p.name == "qs")
    assert wide.elements == BLOCKS[name].elements == quants.bytes
    assert wide.bytes < 1.1 * wide.elements


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_planes_fill_the_block_without_gaps(block: BlockFormat) -> None:
    end = 0
    for plane in block.planes:
        assert plane.offset == end
        end += plane.bytes
    assert end == block.bytes


def test_function_is_spelled_as_in_the_language() -> None:
    assert BLOCKS["q4_k"].function == "dequantize-q4-k"
