"""Lumi.  Usage: PLAN GGUF."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from contest import Step, serve


def load() -> tuple[str, Step]:
    from lumi.plan.file import load as load_plan
    from lumi.runtime.session import Session

    session = Session(load_plan(Path(sys.argv[1])), sys.argv[2])

    def step(tokens: Sequence[int], past: int) -> int:
        if past == 0:
            session.reset()
        outputs = session.run({"tokens": np.array([tokens], np.int32)}, {"past": past})
        return int(outputs["logits"][0, -1].argmax())

    return f"lumi {version('lumi')}", step


if __name__ == "__main__":
    serve(load)
