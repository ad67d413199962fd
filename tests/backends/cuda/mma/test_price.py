"""What tensor cores should take: large tiles where there is much to do, small ones where there is little."""

from __future__ import annotations

from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.mma.known import look
from lumi.llir.kernel import Kernel
from tests.backends.cuda.mma.forms import cascade, chunked, product

BACKEND = CudaBackend()


def best(kernel: Kernel, dims: dict[str, int]) -> dict[str, int]:
    found = min(look(kernel).schedules, key=lambda s: BACKEND.cost(kernel, s, dims).seconds)
    return dict(found.options)


def seconds(kernel: Kernel, dims: dict[str, int]) -> float:
    return min(BACKEND.cost(kernel, s, dims).seconds for s in look(kernel).schedules)


def test_large_products_take_large_tiles_and_small_ones_small() -> None:
    large, small = (best(product("seq", n, 4096), {"seq": m}) for m, n in ((4096, 4096), (64, 1024)))
    assert large["rows"] * large["columns"] > 4 * small["rows"] * small["columns"]


def test_product_of_4096_is_about_as_fast_as_caches_allow() -> None:
    assert 250e-6 < seconds(product(4096, 4096, 4096), {}) < 450e-6


def test_groups_of_warps_read_few_rows_products_about_as_fast_as_memory() -> None:
    kernel, dims = product("seq", 14336, 4096), {"seq": 128}
    known = look(kernel)
    single, groups = (
        min((BACKEND.cost(kernel, s, dims) for s in kind), key=lambda c: c.seconds)
        for kind in (known.schedules, known.groups)
    )
    assert groups.floor < groups.seconds < 1.6 * groups.floor
    assert single.seconds > 1.3 * groups.seconds


def test_groups_that_copy_share_narrow_results_out_among_all_multiprocessors() -> None:
    kernel, dims = product("seq", 4096, 14336), {"seq": 128}
    known = look(kernel).groups
    costs = {
        (o["groups"], o["columns"]): BACKEND.cost(kernel, s, dims) for s in known for o in [dict(s.options)]
    }
    assert min(costs, key=lambda tile: costs[tile].seconds) == (1, 64)
    assert costs[2, 128].seconds > 1.5 * costs[1, 64].seconds


def test_cascades_skip_what_is_masked() -> None:
    dims = {"seq": 4096, "keys": 4096}
    full, causal = (seconds(cascade(s, 128, heads=16, group=4), dims) for s in ("full", "causal"))
    assert 0.4 < causal / full < 0.7


def test_no_estimate_is_below_its_floor() -> None:
    for kernel, dims in (
        (product(4096, 4096, 4096), {}),
        (cascade("full", 128), {"seq": 4096, "keys": 4096}),
        (chunked(512, 512, 32768, 16), {}),
    ):
        for schedule in look(kernel).schedules:
            found = BACKEND.cost(kernel, schedule, dims)
            assert found.seconds > found.floor


def test_a_sum_in_chunks_has_the_operations_of_the_whole() -> None:
    for chunks in (1, 16):
        kernel = chunked(512, 512, 32768, chunks)
        assert BACKEND.cost(kernel, look(kernel).schedules[0], {}).flops == 2 * 512 * 512 * 32768
