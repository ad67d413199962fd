"""Kernels that memory bounds, run on the CPU as they are written for the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.schedule import schedules
from lumi.dtype import BF16, F32, I64, DType
from lumi.llir.kernel import Step, accesses, written
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.kernels import read
from tests.backends.cuda.test_nests import sized

pytestmark = pytest.mark.skipif(not is_possible(), reason="there is no g++")

VALUES = {"n": 11}

LINES = {
    **{name: read(name) for name in ("softmax", "standardize", "loss", "rms_norm")},
    "softmax of 4096": read("softmax", (1040, 4096)),
    "loss of 2052": read("loss", (1040, 2052)),
}


def check(step: Step, values: dict[str, int], tolerance: float) -> None:
    emulated = Emulated(step)
    arrays = random_buffers(step.kernel, values)
    types = {a.buffer: a.dtype for a, _ in accesses(step.kernel)}
    want = {n: a.copy() for n, a in arrays.items()}
    interpret.run(step.kernel, want, values)
    for backwards in (False, True):
        got = {n: a.copy() for n, a in arrays.items()}
        for buffer in written(step.kernel):
            got[buffer].view(np.uint8)[:] = 0xFF
        emulated.run(got, values, early=False, backwards=backwards, more=[0])
        for buffer in written(step.kernel):
            dtype = types[buffer]
            assert_close(got[buffer], want[buffer], dtype, tolerance, f"{buffer} under {step.schedule}")


@pytest.mark.parametrize("name", LINES)
def test_lines_in_registers_are_right(name: str) -> None:
    kernel = LINES[name]
    found = [s for s in schedules(kernel) if s.template == "direct" and dict(s.options).get("blocks", 1) == 1]
    assert found
    for schedule in found:
        check(Step(kernel, schedule), VALUES, 1e-5)


@pytest.mark.parametrize(("count", "dtype"), [(1030, F32), (5000, F32), (3000, BF16), (4096, I64)])
def test_elementwise_kernels_are_right(count: int, dtype: DType) -> None:
    kernel = sized(count, dtype)
    for schedule in schedules(kernel)[1:4]:
        check(Step(kernel, schedule), {"n": count}, 0.0)
