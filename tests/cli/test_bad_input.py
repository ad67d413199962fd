"""What a user sees of wrong files, calls and surroundings, word for word."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lumi.cli.progress import Display
from lumi.search import explain
from tests.cli.conftest import Lumi
from tests.runtime.files import write_gguf

ROWS = "x=[[1, 2, 3, 4]]"


@pytest.fixture(autouse=True)
def _here(
    plan: Path, model: Path, speaker: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder with all files, so that messages name no other."""
    shutil.copy(plan, tmp_path / "p.lumiplan")
    shutil.copy(model, tmp_path / "scale.lumi")
    for path in (*speaker, speaker[0].with_suffix(".lumi")):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    write_gguf(Path("other.gguf"), {"weights": ("f32", np.ones(4, np.float32))})
    write_gguf(Path("long.gguf"), {"weight": ("f32", np.ones(5, np.float32))})
    Path("cut.gguf").write_bytes(Path("long.gguf").read_bytes()[:-24])
    Path("cut.safetensors").write_bytes(b"\x40\0\0\0\0\0\0\0{}")
    Path("cut.lumiplan").write_bytes(plan.read_bytes()[:-40])
    Path("text.npy").write_text("hello\n")
    np.save("f64.npy", np.zeros((2, 4)))
    Path("several.lumi").write_text("(defmodel a [(x f32 [1])] x)\n\n(defmodel b [(x f32 [2])] x)\n")


CALLS = {
    "dim out of range": ["run", "p.lumiplan", "--init", "random", "--input", f"x={[[0] * 4] * 9}"],
    "missing weight": ["run", "p.lumiplan", "--input", ROWS, "--weights", "other.gguf"],
    "misshapen weight": ["run", "p.lumiplan", "--input", ROWS, "--weights", "long.gguf"],
    "truncated GGUF": ["run", "p.lumiplan", "--input", ROWS, "--weights", "cut.gguf"],
    "truncated safetensors": ["run", "p.lumiplan", "--input", ROWS, "--weights", "cut.safetensors"],
    "damaged plan": ["run", "cut.lumiplan", "--init", "random", "--input", ROWS],
    "prompt longer than the context": [
        *["generate", "successor.lumiplan", "--weights", "weights.gguf", "--prompt", "abcdabcdabcdabcd"],
    ],
    "no weights": ["run", "p.lumiplan", "--input", ROWS],
    "text for an array": ["run", "p.lumiplan", "--init", "random", "--input", "x=text.npy"],
    "folder for an array": ["run", "p.lumiplan", "--init", "random", "--input", "x=."],
    "ragged lists": ["run", "p.lumiplan", "--init", "random", "--input", "x=[[1], [1, 2]]"],
    "f64 for f32": ["run", "p.lumiplan", "--init", "random", "--input", "x=f64.npy"],
    "no record": ["compile", "scale.lumi", "--search", "measure", "--replay", "none.rec"],
    "damaged plan for a source": ["show", "cut.lumiplan"],
    "plan for a source": ["compile", "p.lumiplan"],
    "file for a folder": ["compile", "scale.lumi", "-o", "other.gguf/p.lumiplan"],
    "several models": ["compile", "several.lumi"],
    "unknown dim": ["compile", "scale.lumi", "--bind", "row=2"],
}


def test_wrong_files_and_calls(lumi: Lumi, golden: Callable[..., None]) -> None:
    said = {what: lumi(*call) for what, call in CALLS.items()}
    assert {s.status for s in said.values()} == {1}
    golden("\n".join(f"{what}\n{s.err}" for what, s in said.items()))


@pytest.mark.parametrize("case", ["no-compiler", "read-only-cache"])
def test_surroundings_that_only_slow_a_plan_down(case: str, golden: Callable[..., None]) -> None:
    """A process of its own: a process looks for its compiler and its cache once."""
    Path("empty").mkdir()
    extra = {"PATH": "empty"} if case == "no-compiler" else {"LUMI_CACHE": "p.lumiplan"}
    kept = {k: v for k, v in os.environ.items() if k != "CC"}
    command = [sys.executable, "-m", "lumi", "run", "p.lumiplan", "--init", "random", "--input", ROWS]
    told = subprocess.run(command, env=kept | extra, capture_output=True, text=True, check=True)
    assert "y: f32 [1 4]" in told.stdout
    golden("\n".join(line for line in told.stderr.splitlines() if " ms on " not in line), name=case)


def test_ctrl_c_during_the_search(
    lumi: Lumi, monkeypatch: pytest.MonkeyPatch, golden: Callable[..., None]
) -> None:
    def interrupt(display: Display, event: explain.Progress) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Display, "search", interrupt)
    said = lumi("compile", "successor.lumi", "-o", "kept.lumiplan", "--search", "model", "--json")
    assert said.status == 130
    assert {what: len(regions) for what, regions in said.json["cut_short"].items()} == {
        "stopped": 1,
        "not_searched": 1,
    }
    told = lumi("explain", "kept.lumiplan").out.splitlines()
    golden("\n".join([*said.err.splitlines()[-2:], *(line for line in told if "Ctrl-C" in line)]) + "\n")
    call = "run", "kept.lumiplan", "--init", "random", "--input", "tokens=[[1]]", "--dim", "past=0"
    assert lumi(*call).status == 0
