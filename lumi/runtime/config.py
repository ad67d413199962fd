"""The keyword configuration of a model, from what a checkpoint says of itself.

| keyword | GGUF, below `<architecture>.` | Hugging Face `config.json` |
|---|---|---|
| `layers` | `block_count` | `num_hidden_layers` |
| `width` | `embedding_length` | `hidden_size` |
| `heads` | `attention.head_count` | `num_attention_heads` |
| `kv-heads` | `attention.head_count_kv` | `num_key_value_heads` |
| `head-dim` | `attention.key_length` | `head_dim` |
| `hidden` | `feed_forward_length` | `intermediate_size` |
| `vocab` | `vocab_size`, else the tokenizer's | `vocab_size` |
| `eps` | `attention.layer_norm_rms_epsilon` | `rms_norm_eps` |
| `window` | `attention.sliding_window` | `sliding_window` |
| `base` | `rope.freq_base` | `rope_theta` |
| `local-base` | | `rope_local_base_freq` |
| `stretch` | | [factor low high context] of rotary scaling of type `llama3` |
| `factored` | true if there is a tensor `rope_freqs.weight`, for Llama | |
| `tied` | true if there is no tensor `output.weight`, for Llama | `tie_word_embeddings` |
| `bias` | | `attention_bias` |
| `mlp-bias` | | `mlp_bias` |
| `pattern` | | `sliding_window_pattern` |
| `query-scale` | | 1 / √`query_pre_attn_scalar` |
| `unit-offset` | false: the converter has added 1 to such norms | true for Gemma |

Rotary embedding is read from `rope_parameters`, as Transformers writes it since version 5, or from the
older keys.  Only what the checkpoint states is given; a model's own defaults stand for the rest.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any

from lumi.errors import LumiError

_GGUF = {
    "layers": "block_count",
    "width": "embedding_length",
    "heads": "attention.head_count",
    "kv-heads": "attention.head_count_kv",
    "head-dim": "attention.key_length",
    "hidden": "feed_forward_length",
    "vocab": "vocab_size",
    "eps": "attention.layer_norm_rms_epsilon",
    "window": "attention.sliding_window",
    "base": "rope.freq_base",
}
_HF = {
    "layers": "num_hidden_layers",
    "width": "hidden_size",
    "heads": "num_attention_heads",
    "kv-heads": "num_key_value_heads",
    "head-dim": "head_dim",
    "hidden": "intermediate_size",
    "vocab": "vocab_size",
    "eps": "rms_norm_eps",
    "window": "sliding_window",
    "base": "rope_theta",
    "local-base": "rope_local_base_freq",
    "pattern": "sliding_window_pattern",
    "tied": "tie_word_embeddings",
    "bias": "attention_bias",
    "mlp-bias": "mlp_bias",
}
_STRETCH = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
"""The numbers of rotary scaling of type `llama3`, in the order of `stretched-rates`."""


def gguf_config(metadata: Mapping[str, Any], keys: Container[str]) -> dict[str, object]:
    """Keywords from the metadata of a GGUF file and the keys of its tensors.

    Entries that hold one number a layer are left out.
    """
    architecture = metadata.get("general.architecture")
    values = {k: metadata.get(f"{architecture}.{name}") for k, name in _GGUF.items()}
    found: dict[str, object] = {k: v for k, v in values.items() if isinstance(v, int | float)}
    tokens = metadata.get("tokenizer.ggml.tokens")
    if "vocab" not in found and isinstance(tokens, tuple):
        found["vocab"] = len(tokens)
    if isinstance(architecture, str) and architecture.startswith("gemma"):
        found["unit-offset"] = False
    if architecture == "llama":
        found |= {"tied": "lm_head.weight" not in keys, "factored": "rope_freqs.weight" in keys}
    return found


def hf_config(folder: Path) -> dict[str, object]:
    """Keywords from the `config.json` in a checkpoint's folder; empty when there is none."""
    path = folder / "config.json"
    if not path.is_file():
        return {}
    try:
        values = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LumiError("weights error", f"{path}: no JSON: {error}") from None
    if not isinstance(values, dict):
        raise LumiError("weights error", f"{path}: no JSON object")
    text = values.get("text_config")
    values = text if isinstance(text, dict) else values
    found = {k: values[name] for k, name in _HF.items() if isinstance(values.get(name), int | float)}
    found |= _rotary(path, values)
    scalar = values.get("query_pre_attn_scalar")
    if isinstance(scalar, int | float) and scalar > 0:
        found["query-scale"] = scalar**-0.5
    if str(values.get("model_type", "")).startswith("gemma"):
        found["unit-offset"] = True
    return found


def _rotary(path: Path, values: Mapping[str, Any]) -> dict[str, object]:
    """What a configuration says of rotary embedding.  Raises `LumiError` for scaling of an unknown type."""
    told = values.get("rope_parameters") or values.get("rope_scaling") or {}
    kinds = {"base": told.get("full_attention", told), "local-base": told.get("sliding_attention", {})}
    found: dict[str, object] = {k: p["rope_theta"] for k, p in kinds.items() if "rope_theta" in p}
    for parameters in kinds.values():
        kind = parameters.get("rope_type", parameters.get("type", "default"))
        if kind == "llama3":
            found["stretch"] = [parameters[name] for name in _STRETCH]
        elif kind != "default":
            raise LumiError("weights error", f"{path}: rotary scaling of type {kind!r} is not supported")
    return found
