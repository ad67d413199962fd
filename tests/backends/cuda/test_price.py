"""What products by cuBLASLt should take: never under the floor, and near it where nothing is in the way."""

from __future__ import annotations

import pytest

from lumi import dim
from lumi.backends.cuda import gemm, price, schedule
from lumi.backends.cuda.backend import MACHINE, CudaBackend
from lumi.backends.cuda.tf32 import is_tf32
from lumi.dtype import BF16, F32, F64
from tests.llir.products import Spec, mixed

EXTENTS = {"m": dim.var("m"), "n": 4096, "k": 4096}


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> CudaBackend:
    monkeypatch.setattr(schedule, "find_library", lambda: "libcublasLt.so.13")
    return CudaBackend()


@pytest.mark.parametrize("m", [1, 7, 128, 129, 4096])
def test_estimate_is_never_under_the_floor(m: int, backend: CudaBackend) -> None:
    kernel = Spec(EXTENTS, dtype=BF16, stored=BF16).kernel
    costs = [backend.cost(kernel, s, {"m": m}) for s in gemm.SCHEDULES]
    assert all(c.seconds > c.floor for c in costs)
    assert costs[0].flops == 2 * m * 4096 * 4096
    assert costs[0].traffic == 2 * (4096 * 4096 + 2 * m * 4096)
    assert [c.seconds for c in costs] == sorted(c.seconds for c in costs)


def test_large_product_is_near_the_rate_of_its_type(backend: CudaBackend) -> None:
    for dtype in (BF16, F32):
        kernel = Spec(EXTENTS, dtype=dtype, stored=dtype).kernel
        cost = backend.cost(kernel, gemm.SCHEDULES[0], {"m": 4096})
        assert cost.floor == pytest.approx(2 * 4096**3 / price.RATES[dtype])
        assert cost.floor < cost.seconds < 1.5 * cost.floor


def test_smallest_products_are_not_left_to_the_library(backend: CudaBackend) -> None:
    kernel = Spec({"m": 2, "n": 2, "k": 3}).kernel
    costs = {s.template: backend.cost(kernel, s, {}).seconds for s in reversed(backend.schedules(kernel))}
    assert costs["simt"] < costs[gemm.TEMPLATE]


def test_product_in_three_parts_costs_three(backend: CudaBackend) -> None:
    halves = Spec(EXTENTS, dtype=BF16).kernel
    parts = mixed(Spec(EXTENTS), "a")
    for m in (128, 4096):
        whole, one = (backend.cost(k, gemm.SCHEDULES[0], {"m": m}) for k in (parts, halves))
        assert 2.5 * one.seconds < whole.seconds < 4 * one.seconds
        assert whole.floor < 1.5 * one.floor


def test_shared_factor_is_read_once() -> None:
    spec = Spec({"g": 8, **EXTENTS}, "gmk", "nk", "gnm")
    found = gemm.find(spec.kernel)
    assert found is not None
    cost = price.cost(found, gemm.SCHEDULES[0], {"m": 4}, MACHINE)
    assert cost.traffic == 4 * (4096 * 4096 + 2 * 8 * 4 * 4096)


def test_schedules_are_offered_where_the_library_is(
    backend: CudaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, other = Spec(EXTENTS).kernel, Spec({"m": 5, "k": 3}, "mk", "k", "m").kernel
    assert set(gemm.SCHEDULES) <= set(backend.schedules(kernel))
    assert backend.schedules(kernel)[0] == schedule.DEFAULT
    assert not set(gemm.SCHEDULES) & set(backend.schedules(other))
    monkeypatch.setattr(schedule, "find_library", lambda: None)
    assert not set(gemm.SCHEDULES) & set(CudaBackend().schedules(kernel))


def test_tf32_is_offered_only_where_it_is_allowed(backend: CudaBackend) -> None:
    allowing, both = CudaBackend(tf32=True), CudaBackend(exact=True, tf32=True)
    for kernel in (Spec(EXTENTS).kernel, Spec(EXTENTS, epilogue="residual").kernel):
        plain = backend.schedules(kernel)
        assert not any(is_tf32(s) for s in plain)
        for found in (allowing.schedules(kernel), both.schedules(kernel)):
            assert set(plain) < set(found) and found[0] == schedule.DEFAULT
            assert all(is_tf32(s) for s in set(found) - set(plain))
            calls = [s for s in found if s.template == gemm.TEMPLATE]
            assert is_tf32(calls[0]), "the search looks at the first of a template"


def test_tf32_is_not_offered_for_what_is_not_f32(backend: CudaBackend) -> None:
    kernels = [Spec(EXTENTS, dtype=d, total=t, stored=t).kernel for d, t in ((BF16, F32), (F64, F64))]
    for kernel in (*kernels, mixed(Spec(EXTENTS), "a")):
        assert CudaBackend(tf32=True).schedules(kernel) == backend.schedules(kernel)


def test_tf32_should_be_faster_where_operations_are_many(backend: CudaBackend) -> None:
    kernel = Spec(EXTENTS).kernel
    fast, exact = (
        next(s for s in CudaBackend(tf32=t).schedules(kernel) if s.template == gemm.TEMPLATE)
        for t in (True, False)
    )
    many = [backend.cost(kernel, s, {"m": 4096}) for s in (fast, exact)]
    few = [backend.cost(kernel, s, {"m": 1}) for s in (fast, exact)]
    assert 4 * many[0].seconds < many[1].seconds
    assert few[0].floor == few[1].floor < few[0].seconds <= few[1].seconds
