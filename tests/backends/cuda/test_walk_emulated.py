"""Walks run on the CPU: right, whenever copies come, whatever thread runs first, however blocks share."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda import cache
from lumi.dtype import F32
from lumi.llir.arithmetic import to_memory
from lumi.llir.kernel import Kernel, Schedule, Step, written
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.kernels import read
from tests.backends.cuda.test_walk import Shape, without_maximum

pytestmark = pytest.mark.skipif(not is_possible(), reason="there is no g++")

TOLERANCE = 1e-5

KERNELS: dict[str, Kernel] = {
    "heads of bf16": Shape(4, 64, "bf16").kernel(),
    "more cells than blocks": Shape(2, 32, "bf16", 9, normalised=False).kernel(),
    "eight heads, window": Shape(8, 80, "bf16", 2, window=40).kernel(),
    "odd rows": Shape(3, 72, "bf16", 2).kernel(),
    "f16": Shape(3, 40, "f16", 2).kernel(),
    "f32": Shape(1, 8, "f32", 9, window=33).kernel(),
    "twelve heads": Shape(12, 32, "bf16", 2).kernel(),
    "no maximum": without_maximum(Shape(4, 64, "bf16")),
    "given products in chunks": read("attention_given"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_walks_are_right(name: str) -> None:
    kernel = KERNELS[name]
    emulated = Emulated(Step(kernel, Schedule("walk", (("least", 1), ("stages", 3), ("warps", 2)))))
    found = cache.find(kernel)
    assert found is not None
    for past in (0, 1, 31, 32, 127, 200, 600):
        arrays = random_buffers(kernel, {"past": past}, past)
        for rows in found.rows:
            no_number = to_memory(np.full(1, np.nan, np.float32), rows.load.access.dtype)
            arrays[rows.load.access.buffer][:, past + 1 :] = no_number
        want = {n: a.copy() for n, a in arrays.items()}
        interpret.run(kernel, want, {"past": past})
        for flip, since in ((False, -1), (True, 0)):
            got = {n: a.copy() for n, a in arrays.items()}
            emulated.run(got, {"past": past}, early=flip, backwards=not flip, more=(0, since))
            for buffer in written(kernel):
                assert_close(got[buffer], want[buffer], F32, TOLERANCE, f"{buffer} at {past}, {since}")


def test_a_walk_that_does_not_wait_is_wrong() -> None:
    kernel = Shape(4, 64, "bf16").kernel()
    step = Step(kernel, Schedule("walk", (("stages", 3), ("warps", 2))))
    emulated = Emulated(step, lambda text: text.replace("await_lots<2>", "await_lots<3>"))
    arrays = random_buffers(kernel, {"past": 90}, 1)
    want, got = ({n: a.copy() for n, a in arrays.items()} for _ in range(2))
    interpret.run(kernel, want, {"past": 90})
    emulated.run(got, {"past": 90}, early=False, backwards=False, more=(0, -1))
    with pytest.raises(AssertionError):
        assert_close(got["T3"], want["T3"], F32, TOLERANCE)
