"""One plan of Llama's shape on the GPU: prompts of every kind of length, then steps, whole and in chunks.

Heads are those of Llama-3-8B, everything else is small.  What the GPU gives at a position is compared with
what the CPU gives there for the same tokens: as each looks only at those before it, one run of the CPU does.
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

Array = np.ndarray[Any, Any]

CONFIG: dict[str, Any] = {
    **{"layers": 2, "width": 512, "heads": 8, "kv-heads": 2, "head-dim": 128, "hidden": 1024},
    **{"vocab": 512, "context": 2304, "last-only": False},
}
LONGEST, STEPS = 2048, 64
CHUNKS = {"halves": (1024, 1024), "ragged": (1, 127, 129, 512, 7, 1000, 2, 270), "steps": (2016, *(1,) * 32)}
TOLERANCE = 2e-2
"""Of the norm of the logits at a position: the CPU rounds wherever the model does, the GPU less often."""

SETTINGS = {"cuda": Settings(), "cpu": Settings(Mode.NONE)}


@cache
def session_of(target: str) -> Session:
    path = paths.data("models") / "llama.lumi"
    options = Options(config=CONFIG, target=target, settings=SETTINGS[target])
    return Session(compile_plan(Source(path.name, path.read_text()), options), init="random", seed=5)


TOKENS = np.random.default_rng(0).integers(0, CONFIG["vocab"], LONGEST + STEPS).astype(np.int32)


def logits(target: str, past: int, count: int) -> Array:
    """What a call gives at each of its positions, f64 [count vocab]."""
    found = session_of(target)(tokens=TOKENS[None, past : past + count], past=past)["logits"]
    return found[0].astype(np.float64)


@cache
def wanted() -> Array:
    session_of("cpu").reset()
    return np.concatenate([logits("cpu", 0, LONGEST), logits("cpu", LONGEST, STEPS)])


def check(past: int, got: Array) -> None:
    want = wanted()[past : past + len(got)]
    norms = np.linalg.norm(want, axis=1)
    wrong = np.linalg.norm(got - want, axis=1) / norms
    assert norms.min() > 0 and wrong.max() < TOLERANCE, f"{wrong.max():.2g} at {past + int(wrong.argmax())}"


@pytest.mark.parametrize("length", [1, 2, 7, 127, 128, 129, 1000, 2048])
def test_prompt_and_steps(length: int) -> None:
    session = session_of("cuda")
    session.reset()
    check(0, logits("cuda", 0, length))
    check(length, logits("cuda", length, 1))
    before = session.counters
    for past in range(length + 1, length + STEPS):
        check(past, logits("cuda", past, 1))
    found = session.counters - before
    assert (found.captures, found.device_allocations, found.launches) == (0, 0, STEPS - 1)


@pytest.mark.parametrize("chunks", list(CHUNKS.values()), ids=list(CHUNKS))
def test_prompt_in_chunks(chunks: tuple[int, ...]) -> None:
    session_of("cuda").reset()
    past = 0
    for count in chunks:
        check(past, logits("cuda", past, count))
        past += count
    assert past == LONGEST
    check(past, logits("cuda", past, 1))
