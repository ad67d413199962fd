"""Writes `llama/`: tiny random Llama checkpoints and what Transformers computes with them.

    python tests/oracles/make_llama.py

needs torch and transformers.  `NAME/` is a checkpoint folder as Transformers saves it; `NAME.json` has the
tokens, the logits [tokens vocab] of the whole sequence in f32, and the greedy tokens that follow.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

FOLDER = Path(__file__).parent / "llama"
LENGTH, GREEDY = 13, 10
COMMON = {
    "vocab_size": 61,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
}
STRETCH = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
CASES = {
    "plain": {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
    "stretched": {"rope_parameters": STRETCH, "tie_word_embeddings": True, "head_dim": 8},
    "biased": {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 1},
}


def main() -> None:
    for seed, (name, settings) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(LlamaConfig(**COMMON | settings)).eval()
        for parameter in model.parameters():
            spread = 1.0 if parameter.ndim > 1 else 0.2
            torch.nn.init.normal_(parameter, 1.0 - spread, spread * parameter.shape[-1] ** -0.5)
        model.save_pretrained(FOLDER / name)
        (FOLDER / name / "generation_config.json").unlink()
        tokens = torch.randint(0, COMMON["vocab_size"], (1, LENGTH))
        with torch.no_grad():
            logits = model(tokens).logits[0]
            chain = tokens
            for _ in range(GREEDY):
                chain = torch.cat([chain, model(chain).logits[:, -1:].argmax(-1)], 1)
        told = {"tokens": tokens[0].tolist(), "greedy": chain[0, LENGTH:].tolist()}
        rows = [[round(x, 6) for x in row] for row in logits.tolist()]
        (FOLDER / f"{name}.json").write_text(json.dumps(told | {"logits": rows}) + "\n")


if __name__ == "__main__":
    main()
