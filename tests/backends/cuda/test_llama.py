"""A layer of Llama-3-8B on the GPU against the CPU.

Both have the same random weights and, for steps at late positions, the same random caches.  The CPU rounds
everywhere that the model does; the GPU leaves out what costs time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

pytestmark = pytest.mark.cuda

CONFIG: dict[str, Any] = {
    "layers": 1,
    "vocab": 4096,
    "context": 8192,
}
TOLERANCE = 5e-3
"""Of the norm of the logits, which rounding what multiplies weights to bf16, or not, changes by 1.7e-3."""

SETTINGS = {"cuda": Settings(), "cpu": Settings(Mode.NONE)}


@cache
def session_of(target: str) -> Session:
    path = paths.data("models") / "llama.lumi"
    options = Options(config=CONFIG, target=target, settings=SETTINGS[target])
    return Session(compile_plan(Source(path.name, path.read_text()), options), init="random", seed=5)


def assert_same(tokens: list[int], past: int) -> None:
    got, want = (
        session_of(t)(tokens=[tokens], past=past)["logits"].astype(np.float64) for t in ("cuda", "cpu")
    )
    assert np.linalg.norm(want) > 0
    assert np.linalg.norm(got - want) < TOLERANCE * np.linalg.norm(want)


def test_prompt_and_steps() -> None:
    tokens = np.random.default_rng(0).integers(0, CONFIG["vocab"], 140).tolist()
    for session in (session_of("cuda"), session_of("cpu")):
        session.reset()
    assert_same(tokens[:129], 0)
    for past in range(129, 134):
        assert_same(tokens[past : past + 1], past)
    assert_same(tokens[134:], 134)


@pytest.mark.parametrize("past", [0, 1, 62, 255, 256, 1000, 4095, 8191])
def test_step_at_a_late_position(past: int) -> None:
    for session in (session_of("cuda"), session_of("cpu")):
        session.randomize_states(past)
    assert_same([past % CONFIG["vocab"]], past)
