"""The unfused plan computes what its region says, by itself and as the reference on a device."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.dtype import F64
from lumi.field.evaluate import evaluate
from lumi.field.region import Region
from lumi.field.widen import widened
from lumi.llir.check import check
from lumi.llir.kernel import Loop, Reduce, walk
from lumi.search.draft import InfeasibleError
from lumi.search.samples import samples, wide
from lumi.search.unfused import Unfused, unfused
from tests.field.test_widen import EACH, held
from tests.workloads import WORKLOADS

ROOM = 1 << 30


def run(plan: Unfused, buffers: dict[str, np.ndarray], dims: Mapping[str, int]) -> None:
    """Run a plan in place."""
    for name, made in plan.temporaries.items():
        shape = [dim.value(e, dims) for e in made.shape]
        buffers[name] = np.full(shape, -1, made.dtype.storage)
    for number, kernel in enumerate(plan.kernels):
        check(kernel, str(number))
        interpret.run(kernel, buffers, dims)


def assert_reference(region: Region, dims: Mapping[str, int], plan: Unfused) -> None:
    want, got = held(region, dims), held(region, dims)
    evaluate(region, want, dims)
    run(plan, got, dims)
    for name in {s.access.buffer for s in region.stores}:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-11, atol=1e-13, err_msg=name)


@EACH
def test_unfused_plan_in_f64_is_the_reference(region: Region, dims: dict[str, int]) -> None:
    assert_reference(region, dims, unfused(widened(region), dims, ROOM, F64))


@EACH
def test_unfused_plan_in_its_own_types_is_near_the_reference(region: Region, dims: dict[str, int]) -> None:
    want, got = held(region, dims), samples(region, dims)
    evaluate(region, want, dims)
    run(unfused(region, dims, ROOM), got, dims)
    for store in region.stores:
        name, finite = store.access.buffer, np.isfinite(want[store.access.buffer])
        scale = np.abs(want[name][finite]).max(initial=1e-30)
        error = np.abs(wide(got[name], store.access.dtype)[finite] - want[name][finite]).max(initial=0.0)
        assert error <= 2e-3 * scale


@EACH
def test_no_kernel_has_two_reductions_that_need_each_other(region: Region, dims: dict[str, int]) -> None:
    """With room for all, a kernel reduces once: what is reduced is read, or computed point by point."""
    for kernel in unfused(region, dims, ROOM).kernels:
        assert sum(isinstance(s, Reduce) for s in walk(kernel.body)) <= 1
        assert not any(
            isinstance(s, Loop) for loop in kernel.body if isinstance(loop, Loop) for s in loop.body
        )


@pytest.mark.parametrize(
    "name", ["attention_full", "attention_causal", "rmsnorm_matmul", "linear_cross_entropy"]
)
def test_values_without_room_are_computed_where_they_are_read(name: str) -> None:
    work = WORKLOADS[name]
    region, dims = work.region(), work.sizes(work.small)
    whole = unfused(widened(region), dims, ROOM, F64)
    sizes = sorted(math.prod(dim.value(e, dims) for e in t.shape) * 8 for t in whole.temporaries.values())
    made = unfused(widened(region), dims, sizes[-1] - 1, F64)
    assert 0 < len(made.temporaries) < len(sizes)
    assert_reference(region, dims, made)


def test_no_room_where_an_axis_would_run_twice_is_infeasible() -> None:
    """Softmax needs its rows' sums before it can run along the rows."""
    work = WORKLOADS["softmax"]
    with pytest.raises(InfeasibleError):
        unfused(work.region(), work.sizes(work.small), 0)
