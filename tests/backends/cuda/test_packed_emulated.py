"""Rings of packed rows, run on the CPU as they are written for the GPU."""

from __future__ import annotations

import re
from itertools import product as product_of

import numpy as np
import pytest

from lumi.backends.cuda.rows import CELLS
from lumi.backends.cuda.schedule import together
from lumi.errors import Source
from lumi.llir.kernel import Kernel, Schedule, Step, Store
from lumi.llir.parse import parse
from lumi.llir.text import show
from tests.backends.cpu.test_templates import PLANES
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.test_packed import Array, is_tiled, operands, product, rings, untiled

pytestmark = pytest.mark.skipif(not is_possible(), reason="there is no g++")

LATE = (False, True)
"""Whether copies come early or late; threads run in the one order or the other."""

ALL = (1 << 32) - 1


def output(kernel: Kernel) -> str:
    (store,) = (s for s in kernel.body if isinstance(s, Store))
    return store.access.buffer


def assert_product(got: Array, weights: Array, vector: Array) -> None:
    wide, x = weights.astype(np.float64), vector.astype(np.float64)
    assert np.all(np.abs(got - wide @ x) <= 1e-6 * (np.abs(wide) @ np.abs(x)))


@pytest.mark.parametrize("name", PLANES)
@pytest.mark.parametrize(("rows", "blocks", "constant"), [(8, 1, 0), (40, 7, ALL), (136, 20, 0)])
def test_product_equals_exact_dequantisation(name: str, rows: int, blocks: int, constant: int) -> None:
    kernel = product(name, rows, blocks)
    held, weights = operands(name, rows, blocks)
    out = output(kernel)
    for number, schedule in enumerate([*filter(is_tiled, rings(kernel)), *untiled(kernel)[:2]]):
        held[out] = np.full(rows, np.nan, np.float32)
        early = bool(number % 2)
        Emulated(Step(kernel, schedule)).run(held, {}, early=early, backwards=early, more=[constant])
        assert_product(held[out], weights, held["B0"])


@pytest.mark.parametrize("late", LATE)
@pytest.mark.parametrize("spread", [0, 1])
def test_pieces_of_several_stages_are_right(spread: int, late: bool) -> None:
    """Sums over neighbours are exact, so that a product is closer than one whose every step is rounded."""
    rows = 2 * CELLS * 8 + 8
    kernel = product("q4_k", rows, 6)
    held, weights = operands("q4_k", rows, 6)
    out = output(kernel)
    held[out] = np.full(rows, np.nan, np.float32)
    schedule = Schedule("packed", (("spread", spread), ("tiles", 1), ("warps", 3), ("width", 32)))
    Emulated(Step(kernel, schedule)).run(held, {}, early=not late, backwards=late, more=[ALL])
    wide, x = weights.astype(np.float64), held["B0"].astype(np.float64)
    assert np.all(np.abs(held[out] - wide @ x) <= 5e-8 * (np.abs(wide) @ np.abs(x)))


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_not_lost(bad: float) -> None:
    kernel = product("q4_0", 24, 40)
    held, _ = operands("q4_0", 24, 40)
    held["B0"][77] = bad
    held[output(kernel)] = np.zeros(24, np.float32)
    Emulated(Step(kernel, rings(kernel)[0])).run(held, {}, early=True, backwards=False, more=[ALL])
    assert not np.isfinite(held[output(kernel)]).any()


@pytest.mark.parametrize("scale", [1e-37, 1e-20, 1e20, 1e33])
@pytest.mark.parametrize("name", ["q8_0", "q4_k"])
def test_vectors_of_any_size_are_summed_alike(name: str, scale: float) -> None:
    kernel = product(name, 40, 7)
    held, weights = operands(name, 40, 7)
    held["B0"] *= np.float32(scale)
    for schedule in (rings(kernel)[0], untiled(kernel)[0]):
        held[output(kernel)] = np.full(40, np.nan, np.float32)
        Emulated(Step(kernel, schedule)).run(held, {}, early=False, backwards=False, more=[ALL])
        assert_product(held[output(kernel)], weights, held["B0"])


@pytest.mark.parametrize(
    "names", [("q4_k", "q4_k", "q4_k"), ("q4_k", "q6_k"), ("q8_0", "q8_0")], ids="+".join
)
def test_kernels_that_share_a_ring_are_right(names: tuple[str, ...]) -> None:
    rows, blocks = (136, 40, 24)[: len(names)], 4 if "q8_0" not in names else 32
    letters = "CDE"[: len(names)]
    kernels = [apart(product(n, r, blocks), x) for n, r, x in zip(names, rows, letters, strict=True)]
    given: dict[str, Array] = {}
    weights = {}
    for name, count, letter, kernel in zip(names, rows, letters, kernels, strict=True):
        held, weights[output(kernel)] = operands(name, count, blocks)
        given["B0"] = held.pop("B0")
        given |= {letter + buffer[1:]: array for buffer, array in held.items()}
    found = [s for s in together(kernels) if s.template == "packed"]
    assert found
    for late, schedule in product_of(LATE, found[:3]):
        for buffer, matrix in weights.items():
            given[buffer] = np.full(len(matrix), np.nan, np.float32)
        one = Emulated(Step(kernels[0], schedule, tuple(kernels[1:])))
        one.run(given, {}, early=not late, backwards=late, more=[0])
        for buffer, matrix in weights.items():
            assert_product(given[buffer], matrix, given["B0"])


def apart(kernel: Kernel, letter: str) -> Kernel:
    """The kernel with buffers of its own but for the vector."""
    return parse(Source("apart", re.sub(r"\bB([1-9]\d*)\b", rf"{letter}\1", show(kernel))))
