"""Transformers, f32, on the exactly dequantised weights of a GGUF file.  Usage: GGUF THREADS."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from contest import Step, serve


def load() -> tuple[str, Step]:
    import torch
    import transformers

    from lumi.dtype import F32
    from lumi.runtime.weights import open_weights

    torch.set_num_threads(int(sys.argv[2]))
    weights = open_weights(sys.argv[1])
    settings = weights.config()
    config = transformers.Gemma3TextConfig(
        vocab_size=settings["vocab"],
        hidden_size=settings["width"],
        intermediate_size=settings["hidden"],
        num_hidden_layers=settings["layers"],
        num_attention_heads=settings["heads"],
        num_key_value_heads=settings["kv-heads"],
        head_dim=settings["head-dim"],
        query_pre_attn_scalar=settings["head-dim"],
        sliding_window=settings["window"],
        rms_norm_eps=settings["eps"],
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )
    model = transformers.Gemma3ForCausalLM(config)
    state = {}
    for key in weights.tensors:
        array = weights.array(key, F32)
        # a GGUF file stores 1 + w of each norm, this model adds the 1 itself
        state[key] = torch.from_numpy(array - 1 if key.endswith("norm.weight") else array.copy())
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    model.eval()
    cache = None

    @torch.inference_mode()
    def step(tokens: Sequence[int], past: int) -> int:
        nonlocal cache
        if past == 0:
            cache = transformers.DynamicCache(config=config)
        ids = torch.tensor([list(tokens)])
        found = model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return int(found.logits[0, -1].argmax())

    return f"transformers {transformers.__version__}, torch {torch.__version__}", step


if __name__ == "__main__":
    serve(load)
