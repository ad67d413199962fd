"""Results are compared within what their own rounding allows, and no further."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from lumi.field.operators import UNARY
from lumi.llir.kernel import KernelGraph
from lumi.search.child import SharedMemory
from lumi.search.data import Bench
from tests.workloads import Workload, mul, read, un

FACTOR = 3000.0
ANGLES = Workload("angles", un("sin", mul(read("x", "i"), FACTOR)), {"i": 4096}, {"i": 4096}, "", {"x": "i"})
"""sin(3000 x): the sine makes of an angle's rounding an error of thousands of spacings."""


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
    assert "off by 0.01" in compared(memory, 0.01)
