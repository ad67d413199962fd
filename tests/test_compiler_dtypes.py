"""Models whose weights and states are stored in floats of one byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from lumi.compiler import Options, compile_plan
from lumi.dtype import F8E4M3, F8E5M2, DType
from lumi.errors import Source
from lumi.runtime.session import Session
from lumi.search.settings import Settings

TARGETS = ("cpu", pytest.param("cuda", marks=pytest.mark.cuda))

SCALED = """
(defdim rows :min 1 :max 8 :hint [2])
(defdim past :min 0 :max 15 :hint [7])

(defmodel scaled [(x f32 [rows 96])]
  "x by weights of a byte with a scale a row, and what a state of bytes holds of it."
  (let [w (param "w" [40 96] :dtype DTYPE)
        scale (param "scale" [40])
        kept (state "kept" [24 40] :dtype DTYPE)
        y (* (matmul x (transpose (cast w f32))) scale)]
    (set! kept (update-slice kept (cast y DTYPE) :axis 0 :start past))
    (outputs :y y :kept (reduce-sum (cast kept f32) :axis 0))))
"""


@pytest.mark.parametrize("dtype", [F8E4M3, F8E5M2], ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_weights_and_states_of_bytes(target: str, dtype: DType, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    w = rng.standard_normal((40, 96)).astype(np.float32).astype(dtype.numpy)
    scale = rng.uniform(0.5, 1.5, 40).astype(np.float32)
    save_file({"w": w, "scale": scale}, tmp_path / "w.safetensors")
    source = Source("scaled.lumi", SCALED.replace("DTYPE", str(dtype)))
    options = Options(weights=tmp_path / "w.safetensors", target=target, settings=Settings(evaluations=80))
    session = Session(compile_plan(source, options), tmp_path / "w.safetensors")
    kept = np.zeros(40)
    for past, rows in ((0, 3), (3, 1), (4, 8)):
        x = rng.standard_normal((rows, 96)).astype(np.float32)
        found = session(x=x, past=past)
        want = x.astype(np.float64) @ w.astype(np.float64).T * scale
        np.testing.assert_allclose(found["y"], want, rtol=1e-4, atol=1e-4)
        kept += found["y"].astype(dtype.numpy).astype(np.float64).sum(0)
        np.testing.assert_allclose(found["kept"], kept, rtol=1e-5, atol=1e-4)
