"""The command line as the tests call it, a small plan, and a small language model with its weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lumi.cli.main import run
from tests.runtime.files import write_gguf

MODEL = """\
(defdim rows :min 1 :max 8)

(defmodel scale [(x f32 [rows 4]) :by 2.0]
  "x, and x times a factor and a weight."
  (outputs :y (* by x (param "weight" [4])) :total (reduce-sum x :axis nil)))
"""

SUCCESSOR = """\
(defdim seq  :min 1 :max 8 :hint [1 4])
(defdim past :min 0 :max 15)

(defmodel successor [(tokens i32 [1 seq]) :vocab 12]
  "Logits that are the row of each token in a table."
  (outputs :logits (- (take (param "model.embed_tokens.weight" [vocab vocab]) tokens) (* 0.001 past))))
"""

PIECES = ["<pad>", "<eos>", "<bos>", "<unk>", "a", "b", "c", "d", "e", "f", "g", "h"]


@dataclass(frozen=True)
class Said:
    """What a command line said."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one object on standard output."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)


Lumi = Callable[..., Said]


@pytest.fixture
def lumi(capsys: pytest.CaptureFixture[str]) -> Lumi:
    """`lumi("fmt", path)` runs a command line in this process."""

    def call(*arguments: object) -> Said:
        capsys.readouterr()
        status = run([str(a) for a in arguments])
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return call


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model file."""
    path = tmp_path_factory.mktemp("model") / "scale.lumi"
    path.write_text(MODEL)
    return path


@pytest.fixture(scope="session")
def plan(model: Path) -> Path:
    """Its plan."""
    path = model.with_suffix(".lumiplan")
    assert run(["compile", str(model), "-o", str(path), "--search", "none", "--json"]) == 0
    return path


@pytest.fixture(scope="session")
def speaker(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The plan of a language model that knows the alphabet, and its weights with a tokenizer."""
    folder = tmp_path_factory.mktemp("speaker")
    source, plan = folder / "successor.lumi", folder / "successor.lumiplan"
    source.write_text(SUCCESSOR)
    assert run(["compile", str(source), "-o", str(plan), "--search", "none", "--json"]) == 0
    follows = np.eye(len(PIECES), k=1, dtype=np.float32)
    follows[-1, 1] = 1.0  # after the last letter comes the end
    kinds = [3, 3, 3, 2, *[1] * 8]
    weights = write_gguf(
        folder / "weights.gguf",
        {"token_embd.weight": ("f32", follows)},
        tokenizer__ggml__model="llama",
        tokenizer__ggml__tokens=PIECES,
        tokenizer__ggml__token_type=kinds,
        tokenizer__ggml__scores=[0.0] * len(PIECES),
        tokenizer__ggml__bos_token_id=2,
        tokenizer__ggml__eos_token_id=1,
        tokenizer__ggml__unknown_token_id=3,
        tokenizer__ggml__add_space_prefix=False,
    )
    return plan, weights
