"""Templates on the structures they are for: packed weights, matrix products, memory that is shared."""

from __future__ import annotations

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cpu import interpret, library, product
from lumi.backends.cpu.schedule import BLAS, schedules
from lumi.blocks import BLOCKS
from lumi.dtype import F32, I32
from lumi.field.access import Access
from lumi.field.index import Data, index, of_axis
from lumi.llir.kernel import Dot, Kernel, Load, Map, Schedule, Step, Store
from lumi.runtime.dequantize import dequantize, split_plane
from tests.backends.cpu.kernels import (
    SCHEDULES,
    Array,
    Compiled,
    access,
    assert_equal_runs,
    matmul,
    random_buffers,
    read,
    run_compiled,
)
from tests.runtime.files import random_blocks

PLANES = {
    "q8_0": {"d": "B1", "qs": "B2"},
    "q4_0": {"d": "B1", "qs": "B2"},
    "q5_0": {"d": "B1", "qs": "B2", "qh": "B3"},
    "q4_k": {"d": "B1", "scales": "B2", "qs": "B3", "dmin": "B4"},
    "q5_k": {"d": "B1", "scales": "B2", "qs": "B3", "qh": "B4", "dmin": "B5"},
    "q6_k": {"d": "B1", "scales": "B2", "ql": "B3", "qh": "B4"},
}


def packed(name: str, columns: int) -> tuple[dict[str, Array], Array]:
    """The buffers of the kernel of a format, and the weights they hold, exactly dequantised."""
    block, shape = BLOCKS[name], (24, columns)
    raw = random_blocks(block, 24, columns // block.elements)
    x = np.random.default_rng(1).standard_normal(columns).astype(np.float32)
    held = {"B0": x}
    for plane in block.planes:
        held[PLANES[name][plane.name]] = np.ascontiguousarray(split_plane(raw, block, plane, shape))
    return held, dequantize(raw, block, shape)


@pytest.mark.parametrize("name", PLANES)
@pytest.mark.parametrize("schedule", SCHEDULES[:4], ids=str)
def test_packed_product_equals_exact_dequantisation(name: str, schedule: Schedule) -> None:
    kernel = read(name)
    stores = [s for s in kernel.body if isinstance(s, Store)]
    held, weights = packed(name, 768 if name.endswith("k") else 96)
    out = stores[0].access.buffer
    held[out] = np.full(24, np.nan, np.float32)
    run_compiled(kernel, held, {}, schedule)
    want = weights.astype(np.float64) @ held["B0"].astype(np.float64)
    size = np.abs(weights).astype(np.float64) @ np.abs(held["B0"]).astype(np.float64)
    assert np.all(np.abs(held[out] - want) <= 2e-6 * size)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_causal_attention_equals_the_numpy_executor(schedule: Schedule) -> None:
    kernel = read("causal")
    compiled = Compiled([Step(kernel, schedule)])
    for length in (1, 7, 64, 65, 130):
        assert_equal_runs(kernel, {"seq": length}, compiled, 0)


# -- BLAS

SIZES = {"m": dim.var("m"), "n": dim.var("n"), "k": dim.var("k")}
LAYOUTS = [(a, b) for a in ("mk", "km") for b in ("nk", "kn")]


@pytest.mark.skipif(library.find_blas() is None, reason="this machine has no BLAS")
@pytest.mark.parametrize(("a", "b"), LAYOUTS)
def test_blas_product_is_right_in_every_layout(a: str, b: str) -> None:
    kernel = matmul(SIZES, a, b, {"m": 8, "n": 8, "k": 16})
    assert BLAS in schedules(kernel)
    compiled = Compiled([Step(kernel, BLAS)])
    for m, n, k in ((1, 1, 1), (1, 40, 9), (40, 1, 9), (3, 5, 0), (33, 70, 17), (70, 33, 64)):
        assert_equal_runs(kernel, {"m": m, "n": n, "k": k}, compiled, 0)


def test_product_of_a_value_with_itself_is_not_two_factors() -> None:
    """Σ x·x over one load is no product of two tensors."""
    extents = {"i": 4, "k": 8}
    load = Load("x", access("A", "ik", extents), (), ("i", "k"), F32)
    dot = Dot("r", ("k",), "x", "x", ("i",), F32)
    kernel = Kernel(
        extents, ("i",), ("k",), {"i": 4}, (load, dot, Store(access("R", "i", extents), "r", ("i",)))
    )
    assert product.find(kernel) is None


def test_scaled_product_is_not_left_to_blas() -> None:
    extents = {"m": 8, "n": 8, "k": 8}
    plain = matmul(extents, "mk", "nk", {"m": 8, "n": 8, "k": 8})
    *loop, store = plain.body
    assert isinstance(store, Store)
    scaled = (*loop, Map("s", "mul", ("final", 2.0), ("m", "n"), F32), Store(store.access, "s", store.axes))
    assert product.find(plain) is not None
    assert product.find(Kernel(plain.axes, plain.grid, plain.resident, plain.tiles, scaled)) is None


# -- memory


def test_gather_clamps_indices_that_leave_the_table() -> None:
    extents = {"i": 6, "e": 9}
    ids = Load("t", Access("I", (of_axis("i"),), (6,), I32), (), ("i",), I32)
    table = Access("T", (index([(Data(0), 1)]), of_axis("e")), (4, 9), F32)
    row = Load("r", table, ("t",), ("i", "e"), F32)
    kernel = Kernel(
        extents,
        ("i", "e"),
        (),
        {"i": 3, "e": 9},
        (ids, row, Store(access("R", "ie", extents), "r", ("i", "e"))),
    )
    held = random_buffers(kernel, {})
    held["I"] = np.array([0, 3, -1, 4, 2**31 - 1, -(2**31)], np.int32)
    run_compiled(kernel, held)
    np.testing.assert_array_equal(held["R"], held["T"][[0, 3, 0, 3, 3, 0]])


def test_update_in_place_reads_each_element_before_it_writes_it() -> None:
    extents = {"i": dim.var("n")}
    load = Load("x", access("A", "i", extents), (), ("i",), F32)
    add = Map("y", "add", ("x", 1.0), ("i",), F32)
    kernel = Kernel(
        extents, ("i",), (), {"i": 16}, (load, add, Store(access("A", "i", extents), "y", ("i",)))
    )
    for length in (0, 1, 7, 8, 9, 40):
        held = {"A": np.arange(length, dtype=np.float32)}
        want = {"A": held["A"].copy()}
        run_compiled(kernel, held, {"n": length})
        interpret.run(kernel, want, {"n": length})
        np.testing.assert_array_equal(held["A"], np.arange(length) + 1)
        np.testing.assert_array_equal(want["A"], held["A"])
