"""Plans that candidates are compared with, as they are written for the GPU: they equal numpy's reference."""

from __future__ import annotations

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cuda.schedule import DEFAULT
from lumi.dtype import F64
from lumi.field.evaluate import evaluate
from lumi.field.widen import widened
from lumi.llir.kernel import Step
from lumi.search.unfused import unfused
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.field.test_widen import NAMES, REGIONS, held

FEW = 24
"""Positions of an axis at most: threads are slow here."""

pytestmark = pytest.mark.skipif(not is_possible(), reason="there is no g++")


CHOSEN = (
    *("decode model.layers.1", "prefill embed", "convnet convnet", "attention_causal", "rmsnorm_matmul"),
    *("linear_cross_entropy", "matmul_dequantised", "gate_vanishing", "rounding"),
)
"""Regions that together have every kind of term; all of them run on the GPU."""


@pytest.mark.parametrize("name", CHOSEN)
def test_unfused_plan_equals_numpy(name: str) -> None:
    _, region, sizes = REGIONS[NAMES.index(name)]
    dims = {name: min(size, FEW) for name, size in sizes.items()}
    want, got = held(region, dims), held(region, dims)
    evaluate(region, want, dims)
    plan = unfused(widened(region), dims, 1 << 30, F64)
    for name, made in plan.temporaries.items():
        got[name] = np.full([dim.value(e, dims) for e in made.shape], -1, made.dtype.storage)
    for kernel in plan.kernels:
        Emulated(Step(kernel, DEFAULT)).run(got, dims, early=False, backwards=True)
    for name in {s.access.buffer for s in region.stores}:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-11, atol=1e-13, err_msg=name)
