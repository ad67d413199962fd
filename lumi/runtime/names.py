"""Tensor names of GGUF in the spelling of Hugging Face checkpoints, which Lumi's models use as keys.

Source of both spellings: `gguf-py/gguf/tensor_mapping.py` of llama.cpp.  A name that no table knows stays
as it is.  Architecture `llama` stores the rows of its q and k projections in another order as well (the
two halves of each head interleaved, for rotary embedding of adjacent pairs); `row_order` undoes that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from lumi.errors import LumiError

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_TOP = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_SANDWICH = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
"""Where norms stand on both sides of a block, `ffn_norm` is another of them."""

_BLOCK = re.compile(r"blk\.(\d+)\.(.+)\.(weight|bias)")
_INTERLEAVED = re.compile(r"model\.layers\.\d+\.self_attn\.([qk])_proj\.(weight|bias)")


def key_of(name: str, architecture: str) -> str:
    """The checkpoint key of a GGUF name: `output_norm.weight` is `model.norm.weight`."""
    layer = _LAYER | _SANDWICH if architecture in ("gemma2", "gemma3") else _LAYER
    if found := _BLOCK.fullmatch(name):
        number, stem, part = found.groups()
        return f"model.layers.{number}.{layer[stem]}.{part}" if stem in layer else name
    stem, _, part = name.rpartition(".")
    return f"{_TOP[stem]}.{part}" if stem in _TOP else name


def row_order(key: str, rows: int, metadata: Mapping[str, Any]) -> Array | None:
    """The file's row of each row of the checkpoint's tensor `key`, or None where they are the same.

    Raises `LumiError` when the rows do not divide into the heads that the metadata states.
    """
    found = _INTERLEAVED.fullmatch(key)
    if metadata.get("general.architecture") != "llama" or not found:
        return None
    count = metadata.get("llama.attention.head_count")
    if found.group(1) == "k":
        count = metadata.get("llama.attention.head_count_kv", count)
    if not isinstance(count, int) or count < 1 or rows % (2 * count):
        raise LumiError("weights error", f"the {rows} rows of {key} do not divide into {count} heads")
    return np.arange(rows).reshape(count, rows // count // 2, 2).swapaxes(1, 2).ravel()
