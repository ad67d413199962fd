"""Plans that are equal: replayed, saved and loaded, made by other processes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lumi.compiler import Options, compile_plan
from lumi.errors import LumiError
from lumi.plan.file import load, save, to_bytes
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings
from tests.compilations import gemma, plan_of, source


def test_a_measured_compilation_replays_byte_for_byte(tmp_path: Path) -> None:
    settings = Settings(mode=Mode.MEASURE, trials=4, evaluations=40)
    options = Options(bind={"batch": 8}, settings=settings)
    record = tmp_path / "trials.json"
    first = compile_plan(source("mlp.lumi"), dataclasses.replace(options, record=record))
    again = compile_plan(source("mlp.lumi"), dataclasses.replace(options, replay=record))
    assert to_bytes(again) == to_bytes(first)
    with pytest.raises(LumiError, match="cannot read the record"):
        compile_plan(source("mlp.lumi"), dataclasses.replace(options, replay=tmp_path / "none.json"))


def test_a_saved_plan_answers_the_same(tmp_path: Path) -> None:
    plan = plan_of(gemma())
    save(plan, tmp_path / "g.lumiplan")
    back = load(tmp_path / "g.lumiplan")
    assert back == plan
    a, b = (Session(p, init="random")(tokens=[[1, 2, 3]], past=0) for p in (plan, back))
    np.testing.assert_array_equal(a["logits"], b["logits"])


SCRIPT = """
import hashlib, sys
from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.file import to_bytes
from lumi.search.explain import Progress as Gain
from lumi.search.settings import Mode, Settings
text = (paths.data("models") / "attention.lumi").read_text()
options = Options(model="causal", settings=Settings(mode=Mode.MODEL, evaluations=60))
print(hashlib.sha256(to_bytes(compile_plan(Source("attention.lumi", text), options))).hexdigest())
"""


def test_plans_of_fresh_processes_are_equal_byte_for_byte() -> None:
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        )
        for seed in ("0", "1", "2")
    ]
    assert len({r.stdout for r in runs}) == 1
