"""A small Llama with packed weights on the GPU against the CPU, step by step.

Both have the same random blocks.  Values are computed and kept in f32, and no rounding is left out: scores of
random blocks are so large that plans of one device, too, differ by nearly a percent of the logits where
one rounds queries and keys to bf16 and another, as it may, does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

CONFIG: dict[str, Any] = {
    "layers": 2,
    "vocab": 768,
    "width": 512,
    "heads": 8,
    "kv-heads": 2,
    "hidden": 1280,
    "context": 256,
    "dtype": "f32",
}
TOLERANCE = 1e-5
"""Of the norm of the logits: some ten times what plans of one device differ by."""

SETTINGS = {"cuda": Settings(evaluations=120), "cpu": Settings(Mode.NONE)}

FORMATS = {
    "q8_0": (("*", "q8_0"),),
    "mixed": (
        ("*", "q4_k"),
        ("*v_proj*", "q6_k"),
        ("*o_proj*", "q5_k"),
        ("*down_proj*", "q5_0"),
        ("lm_head*", "q4_0"),
    ),
}


@pytest.mark.cuda
@pytest.mark.parametrize("formats", FORMATS)
def test_steps(formats: str) -> None:
    path = paths.data("models") / "llama.lumi"
    plans = [
        compile_plan(
            Source(path.name, path.read_text()),
            Options(
                config=CONFIG,
                packing=FORMATS[formats],
                bind={"seq": 1},
                target=target,
                settings=settings,
                families=("exact",),
            ),
        )
        for target, settings in SETTINGS.items()
    ]
    assert any(k.schedule.template == "packed" for k in plans[0].kernels)
    sessions = [Session(plan, init="random", seed=5) for plan in plans]
    for past, token in enumerate(np.random.default_rng(0).integers(0, CONFIG["vocab"], 20).tolist()):
        got, want = (s(tokens=[[token]], past=past)["logits"].astype(np.float64) for s in sessions)
        assert np.linalg.norm(want) > 0
        assert np.linalg.norm(got - want) < TOLERANCE * np.linalg.norm(want)
