"""One plan runs prompts of every length and the steps behind them, in one call or in chunks, at any position.

What each position's logits must be comes from the meaning of the model, in calls of one length.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from lumi.compiler import Compilation, Options, compile_model
from lumi.errors import Source
from lumi.hlir.reference import evaluate
from lumi.runtime.params import Random, content
from lumi.runtime.session import Session
from tests.compilations import FIRST, graph_of, plan_of, source
from tests.language import Array

PROMPTS = (1, 2, 7, 127, 128, 129, 1000, 2048)
STEPS = 64
LENGTH = max(PROMPTS) + STEPS
VOCAB, BLOCK = 53, 64
CASES = (
    ("gemma3", "cpu"),
    ("llama", "cpu"),
    pytest.param("gemma3", "cuda", marks=pytest.mark.cuda),
    pytest.param("llama", "cuda", marks=pytest.mark.cuda),
)
CONFIG: dict[str, dict[str, Any]] = {
    "gemma3": {"layers": 2, "pattern": 2, "window": 50, "head-dim": 8},
    "llama": {"layers": 2, "dtype": "f32"},
}
SMALL: dict[str, Any] = {
    **{"width": 16, "heads": 2, "kv-heads": 1, "hidden": 24, "vocab": VOCAB},
    **{"context": LENGTH, "last-only": False},
}
IDS = np.random.default_rng(0).integers(0, VOCAB, LENGTH).astype(np.int32)


@cache
def compiled(name: str, target: str) -> Compilation:
    given = source(f"{name}.lumi")
    longer = given.text.replace(":min 0 :max 2047", f":min 0 :max {LENGTH}")
    options = Options(config=SMALL | CONFIG[name], settings=FIRST, target=target)
    return compile_model(Source(given.name, longer), options)


@cache
def session(name: str, target: str) -> Session:
    return Session(plan_of(compiled(name, target)), init="random")


@cache
def wanted(name: str) -> Array:
    """The logits [position vocab] of the whole sequence."""
    work = compiled(name, "cpu")
    graph, params = graph_of(work), content(plan_of(work), Random(0))
    states: dict[str, Array] = {}
    found = []
    for past in range(0, LENGTH, BLOCK):
        given = {**params, **states, "tokens": IDS[None, past : past + BLOCK]}
        states = evaluate(graph, given, {"seq": BLOCK, "past": past}, wide=True)
        found.append(states.pop("logits")[0])
    return np.concatenate(found)


def compare(name: str, target: str, calls: list[int]) -> None:
    """Run calls of so many tokens from the beginning; every position's logits are those wanted."""
    runner, want, past = session(name, target), wanted(name), 0
    runner.reset()
    for count in calls:
        found = runner(tokens=IDS[None, past : past + count], past=past)["logits"][0]
        np.testing.assert_allclose(
            found, want[past : past + count], rtol=0, atol=3e-5 * np.abs(want).max(), err_msg=f"{past}"
        )
        past += count


def chunked(prompt: int, chunk: int) -> list[int]:
    """The lengths of a prompt's calls."""
    return [min(chunk, prompt - past) for past in range(0, prompt, chunk)]


@pytest.mark.parametrize(("name", "target"), CASES)
@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_in_one_call_and_64_steps(name: str, target: str, prompt: int) -> None:
    most = plan_of(compiled(name, target)).dims["seq"].high
    compare(name, target, chunked(prompt, most) + [1] * STEPS)


@pytest.mark.parametrize(("name", "target"), CASES)
@pytest.mark.parametrize(("prompt", "chunk"), [(7, 2), (129, 128), (1000, 127), (2048, 500)])
def test_a_prompt_in_chunks_and_a_step(name: str, target: str, prompt: int, chunk: int) -> None:
    compare(name, target, [*chunked(prompt, chunk), 1])
