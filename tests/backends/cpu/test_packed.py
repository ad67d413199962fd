"""Products with packed weights, unpacked inside the kernels, against the weights of the gguf package."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest

from lumi.backends.cpu.schedule import schedules
from lumi.blocks import BLOCKS
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.plan import Plan
from lumi.runtime.session import Session
from lumi.search.settings import Settings
from tests.runtime.files import random_blocks, write_gguf

ROWS, BLOCKS_A_ROW = 13, 3


def every_schedule(plan: Plan) -> Iterator[Plan]:
    """The plan with each kernel under its first schedule, its second, and so on."""
    choices = [schedules(k.kernel) for k in plan.kernels]
    for number in range(max(map(len, choices))):
        kernels = [
            replace(k, schedule=c[min(number, len(c) - 1)])
            for k, c in zip(plan.kernels, choices, strict=True)
        ]
        yield replace(plan, kernels=tuple(kernels))


@pytest.mark.parametrize("kind", BLOCKS)
def test_vectors_under_every_schedule(kind: str, tmp_path: Path) -> None:
    examine(kind, 1, tmp_path, every_schedule)


@pytest.mark.parametrize("kind", BLOCKS)
def test_matrices(kind: str, tmp_path: Path) -> None:
    examine(kind, 5, tmp_path, lambda plan: iter([plan]))


def examine(kind: str, tokens: int, folder: Path, plans: Callable[[Plan], Iterator[Plan]]) -> None:
    """Compare x [tokens cols] times packed weights [cols ROWS] with a product in f64."""
    raw = random_blocks(BLOCKS[kind], ROWS, BLOCKS_A_ROW)
    cols = BLOCKS_A_ROW * BLOCKS[kind].elements
    file = write_gguf(folder / "w.gguf", {"output.weight": (kind, raw)})
    text = (
        f"(defmodel product [(x f32 [{tokens} {cols}])]"
        f' (matmul x (transpose (param "lm_head.weight" [{ROWS} {cols}]))))'
    )
    options = Options(weights=file, packed=True, settings=Settings(evaluations=60))
    plan = compile_plan(Source("product.lumi", text), options)
    assert {b.format for b in plan.bindings} == {kind}
    x = np.random.default_rng(2).standard_normal((tokens, cols)).astype(np.float32)
    w = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind.upper()]).astype(np.float64)
    scale = np.abs(x) @ np.abs(w).T
    for candidate in plans(plan):
        found = Session(candidate, file)(x=x)["out"]
        assert (np.abs(found - x @ w.T) <= 1e-6 * scale).all()


@pytest.mark.parametrize("kind", BLOCKS)
def test_products_in_bytes_stay_within_their_bound(kind: str, tmp_path: Path) -> None:
    rows, count = 1024, 4
    raw = random_blocks(BLOCKS[kind], rows, count)
    cols = count * BLOCKS[kind].elements
    file = write_gguf(tmp_path / "w.gguf", {"output.weight": (kind, raw)})
    text = (
        f"(defmodel product [(x f32 [1 {cols}])]"
        f' (matmul x (transpose (param "lm_head.weight" [{rows} {cols}]))))'
    )
    chosen = Options(
        weights=file, packed=True, families=("exact", "int8"), settings=Settings(evaluations=300)
    )
    plan = compile_plan(Source("product.lumi", text), chosen)
    assert "dot8" in {k.schedule.template for k in plan.kernels}
    x = np.random.default_rng(2).standard_normal((1, cols)).astype(np.float32)
    w = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind.upper()]).astype(np.float64)
    found, want = Session(plan, file)(x=x)["out"], x @ w.T
    error = np.abs(found - want)
    assert error.max() > 1e-4 * np.abs(want).max()  # not computed from floats
    assert (error <= np.abs(x).max() / 254 * np.abs(without_minimum(raw, kind)).sum(1)).all()


def without_minimum(raw: np.ndarray, kind: str) -> np.ndarray:
    """The weights as multiples of their scales, without what is subtracted from them."""
    plain = raw.copy()
    if kind in ("q4_k", "q5_k"):
        plain.reshape(-1, BLOCKS[kind].bytes)[:, 2:4] = 0
    return gguf.quants.dequantize(plain, gguf.GGMLQuantizationType[kind.upper()]).astype(np.float64)
