"""Small checkpoint files for the tests, written by the packages that define the formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from lumi.blocks import BLOCKS, BlockFormat

Array = np.ndarray[Any, np.dtype[Any]]


def random_blocks(block: BlockFormat, rows: int, blocks: int, seed: int = 0) -> Array:
    """u8[rows, blocks * bytes]: random fields, with finite scales."""
    rng = np.random.default_rng(seed)
    raw = rng.integers(0, 256, (rows, blocks, block.bytes), dtype=np.uint8)
    for plane in block.planes:
        if plane.dtype.is_float:
            scale = rng.standard_normal((rows, blocks, 1)).astype(np.float16)
            raw[..., plane.offset : plane.offset + 2] = scale.view(np.uint8)
    return raw.reshape(rows, blocks * block.bytes)


def write_gguf(
    path: Path, tensors: dict[str, tuple[str, Array]], architecture: str = "gemma3", **metadata: Any
) -> Path:
    """A GGUF file; a tensor is its type's name and its values, blocks as u8 rows."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        key = key.replace("__", ".")
        add = {
            bool: writer.add_bool,
            int: writer.add_uint32,
            float: writer.add_float32,
            str: writer.add_string,
        }
        add.get(type(value), writer.add_array)(key, value)
    for name, (kind, values) in tensors.items():
        if kind == "f32":
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, values, raw_dtype=gguf.GGMLQuantizationType[kind.upper()])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def every_type(path: Path) -> Path:
    """A GGUF file with one tensor of each type that Lumi reads."""
    rng = np.random.default_rng(1)
    wide = rng.standard_normal((3, 64)).astype(np.float32)
    tensors: dict[str, tuple[str, Array]] = {
        "plain.f32": ("f32", wide),
        "plain.f16": ("f16", wide.astype(np.float16)),
        "plain.bf16": ("bf16", (wide.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)),
    }
    for name in BLOCKS:
        tensors[f"packed.{name}"] = (name, random_blocks(BLOCKS[name], 3, 2))
    return write_gguf(path, tensors, test__words=["a", "", "ünï"], test__numbers=[1.5, -2.0], test__flag=True)
