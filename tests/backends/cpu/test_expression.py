"""Sums whose eight addends wait for what they are multiplied by."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.dtype import F32
from lumi.llir.kernel import Dot, Kernel, Load, Map, Reduce, Schedule, Step, Store
from tests.backends.cpu.kernels import (
    SCHEDULES,
    Compiled,
    access,
    assert_equal_runs,
    random_buffers,
    run_compiled,
)

EXTENTS = {"m": 5, "n": 16, "k": 17}


def scaled_sums(over: str) -> Kernel:
    """R[m] = the greatest of (Σₖ A[m, k] · B[k]) · C[n], or Σ of them, over n."""
    body = (
        Load("a", access("A", "mk", EXTENTS), (), ("m", "k"), F32),
        Load("b", access("B", "k", EXTENTS), (), ("k",), F32),
        Dot("d", ("k",), "a", "b", ("m",), F32),
        Load("c", access("C", "n", EXTENTS), (), ("n",), F32),
        Map("y", "mul", ("d", "c"), ("m", "n"), F32),
        Reduce("r", over, ("n",), "y", ("m",), F32),
        Store(access("R", "m", EXTENTS), "r", ("m",)),
    )
    return Kernel(EXTENTS, ("m",), ("n", "k"), {"m": 4}, body)


@pytest.mark.parametrize("over", ["max", "sum"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_sum_is_whole_before_lanes_are_multiplied_by_it(over: str, schedule: Schedule) -> None:
    kernel = scaled_sums(over)
    assert_equal_runs(kernel, {}, Compiled([Step(kernel, schedule)]), 0)


def test_a_sum_times_infinity_is_infinite() -> None:
    """Its addends differ in sign: each times infinity, they would add up to NaN."""
    body = (
        Load("a", access("A", "mk", EXTENTS), (), ("m", "k"), F32),
        Load("c", access("C", "m", EXTENTS), (), ("m",), F32),
        Reduce("s", "sum", ("k",), "a", ("m",), F32),
        Map("y", "mul", ("s", "c"), ("m",), F32),
        Store(access("R", "m", EXTENTS), "y", ("m",)),
    )
    kernel = Kernel(EXTENTS, ("m",), ("k",), {"m": 4}, body)
    want = random_buffers(kernel, {}) | {"C": np.full(EXTENTS["m"], np.inf, np.float32)}
    got = {name: array.copy() for name, array in want.items()}
    interpret.run(kernel, want, {})
    run_compiled(kernel, got)
    assert np.isinf(want["R"]).all()
    np.testing.assert_array_equal(got["R"], want["R"])
