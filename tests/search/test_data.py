"""Results are compared within what their own rounding allows, and no further."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from lumi.field.evaluate import evaluate
from lumi.field.operators import UNARY
from lumi.llir.kernel import KernelGraph
from lumi.search.child import SharedMemory
from lumi.search.data import Bench
from lumi.search.samples import cut_to_tf32
from tests.workloads import Workload, add, mul, read, total, un

FACTOR = 3000.0
ANGLES = Workload("angles", un("sin", mul(read("x", "i"), FACTOR)), {"i": 4096}, {"i": 4096}, "", {"x": "i"})
"""sin(3000 x): the sine makes of an angle's rounding an error of thousands of spacings."""

Change = Callable[[np.ndarray], np.ndarray]


@pytest.fixture
def memory() -> Iterator[SharedMemory]:
    made = SharedMemory()
    yield made
    made.close()


def compared(memory: SharedMemory, error: float) -> str:
    """What is wrong with sines of f32 angles of which one result is off by `error`."""
    bench = Bench(ANGLES.region(), {})
    layout = bench.layout(KernelGraph((), {}))
    memory.hold(layout.size)
    bench.fill(memory, layout)
    angles = bench.given["B0"] * np.float32(FACTOR)
    got = memory.view(layout.copies[0]["B1"], bench.given["B1"])
    got[...] = UNARY["sin"](angles)
    got[7] += np.float32(error)
    return bench.compare(memory, layout)


def test_rounding_that_the_region_amplifies_is_right(memory: SharedMemory) -> None:
    wanted = Bench(ANGLES.region(), {})
    angles = wanted.given["B0"] * np.float32(FACTOR)
    error = float(np.abs(UNARY["sin"](angles) - wanted.wanted["B1"]).max())
    assert error > wanted.limit
    assert compared(memory, 0.0) == ""


def test_error_beyond_that_rounding_is_wrong(memory: SharedMemory) -> None:
    assert "is allowed" in compared(memory, 0.01)


PRODUCT = Workload(
    "product",
    total("k", mul(read("a", "i k"), read("b", "k j"))),
    {"i": 96, "j": 64, "k": 2048},
    {"i": 96, "j": 64, "k": 2048},
    "",
    {"a": "i k", "b": "k j"},
)
"""Long sums of products of f32."""


def multiplied(memory: SharedMemory, a: Change, b: Change, tf32: bool) -> str:
    """What is wrong with a product of changed factors."""
    bench = Bench(PRODUCT.region(), {})
    layout = bench.layout(KernelGraph((), {}))
    memory.hold(layout.size)
    bench.fill(memory, layout)
    factors = a(bench.given["B0"]).astype(np.float64), b(bench.given["B1"]).astype(np.float64)
    memory.view(layout.copies[0]["B2"], bench.given["B2"])[...] = factors[0] @ factors[1]
    return bench.compare(memory, layout, tf32)


def nearest(values: np.ndarray) -> np.ndarray:
    """f32 rounded to TF32."""
    raw = values.view(np.uint32) + np.uint32(0x1000)
    return (raw & np.uint32(0xFFFFE000)).view(np.float32)


def same(values: np.ndarray) -> np.ndarray:
    return values


@pytest.mark.parametrize("change", [cut_to_tf32, nearest])
def test_products_in_tf32_are_right_only_where_it_is_allowed(memory: SharedMemory, change: Change) -> None:
    assert multiplied(memory, change, change, True) == ""
    assert "is allowed" in multiplied(memory, change, change, False)
    assert multiplied(memory, same, same, True) == multiplied(memory, same, same, False) == ""


def shorter(values: np.ndarray) -> np.ndarray:
    """The first factor without a few of the terms of its sums."""
    found = values.copy()
    found[:, -4:] = 0
    return found


def coarse(values: np.ndarray) -> np.ndarray:
    """f32 with 5 bits of its mantissas."""
    return (values.view(np.uint32) & np.uint32(0xFFFC0000)).view(np.float32)


@pytest.mark.parametrize("change", [shorter, coarse])
def test_what_is_wrong_is_so_in_tf32(memory: SharedMemory, change: Change) -> None:
    assert "is allowed" in multiplied(memory, change, same, True)


def test_factors_of_sums_alone_are_cut() -> None:
    """A product that is no sum's, and what is added, stay f32."""
    fine = np.float32(1 + 2.0**-20)
    term = add(total("k", mul(read("a", "i k"), read("b", "k"))), mul(read("c", "i"), read("c", "i")))
    work = Workload("sum", term, {"i": 2, "k": 3}, {}, "", {"a": "i k", "b": "k", "c": "i"})
    region = work.region()
    given = {n: np.full(s, fine, np.float32) for n, s in (("B0", (2, 3)), ("B1", (3,)), ("B2", (2,)))}
    found = []
    for factors in (None, cut_to_tf32):
        arrays = dict(given)
        evaluate(region, arrays, {}, factors=factors)
        (made,) = (a for n, a in arrays.items() if n not in given)
        found.append(made[0])
    square = float(fine) ** 2
    assert found == pytest.approx([4 * square, 3 + square], rel=1e-15)
