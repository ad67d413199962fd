"""The analytic cost: what it counts, and how it moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi import dim
from lumi.dtype import F32
from lumi.errors import Source
from lumi.field.access import Access
from lumi.field.index import of_axis
from lumi.field.term import Bin, Pos
from lumi.llir.kernel import Carry, Dot, Kernel, Load, Loop, Map, Reduce, Statement, Store
from lumi.llir.parse import parse
from lumi.search.live import live_bytes
from lumi.search.model import Machine, estimate

MACHINE = Machine(
    units=4,
    bandwidth=1e9,
    cache_bandwidth=1e10,
    dot_rate=1e11,
    element_rate=1e10,
    launch=1e-6,
    tile_memory=1 << 20,
    cache=1 << 20,
)


def access(buffer: str, *axes: str, extents: dict[str, dim.Extent]) -> Access:
    return Access(buffer, tuple(map(of_axis, axes)), tuple(extents[a] for a in axes), F32)


def copy(extent: dim.Extent = 4096, tile: int = 64, op: str = "add") -> Kernel:
    axes = {"i": extent}
    body = (
        Load("v1", access("B0", "i", extents=axes), (), ("i",), F32),
        Map("v2", op, ("v1", 1.0), ("i",), F32),
        Store(access("B1", "i", extents=axes), "v2", ("i",)),
    )
    return Kernel(axes, ("i",), (), {"i": tile}, body)


def product(m: int = 256, n: int = 256, k: int = 256, tile: int = 64) -> Kernel:
    axes: dict[str, dim.Extent] = {"m": m, "n": n, "k": k}
    inner = (
        Load("v2", access("B0", "m", "k", extents=axes), (), ("m", "k"), F32),
        Load("v3", access("B1", "k", "n", extents=axes), (), ("k", "n"), F32),
        Dot("v4", ("k",), "v2", "v3", ("m", "n"), F32),
        Map("v5", "add", ("v1", "v4"), ("m", "n"), F32),
    )
    loop = Loop(("k",), None, (), (Carry("sum", "v1", "v5", "v6", ("m", "n"), F32),), inner)
    store = Store(access("B2", "m", "n", extents=axes), "v6", ("m", "n"))
    return Kernel(axes, ("m", "n"), (), {"m": tile, "n": 64, "k": 64}, (loop, store))


def test_copy_moves_every_byte_once() -> None:
    cost = estimate(copy(), {}, MACHINE)
    assert cost.traffic == 2 * 4096 * 4
    assert cost.floor == pytest.approx(cost.traffic / 1e9)
    assert cost.seconds >= cost.floor + MACHINE.launch
    assert cost.flops == 4096


def test_expensive_operators_cost_more() -> None:
    slow = replace(MACHINE, element_rate=1e8)
    assert estimate(copy(op="exp2"), {}, slow).seconds > 4 * estimate(copy(op="add"), {}, slow).seconds


def test_idle_units_cost_time() -> None:
    slow = replace(MACHINE, element_rate=1e8)
    assert estimate(copy(tile=4096), {}, slow).seconds > 2 * estimate(copy(tile=1024), {}, slow).seconds


def test_symbolic_extents_take_their_values_from_the_dims() -> None:
    n = dim.var("n")
    short, long = (estimate(copy(n), {"n": size}, MACHINE) for size in (512, 4096))
    assert long.traffic == 8 * short.traffic
    assert long == estimate(copy(4096), {}, MACHINE)


def test_product_counts_operations_and_rereads() -> None:
    cost = estimate(product(), {}, MACHINE)
    assert cost.flops >= 2 * 256**3
    assert cost.traffic == 3 * 256 * 256 * 4
    small_cache = replace(MACHINE, cache=1 << 10, dot_rate=1e15, element_rate=1e15)
    narrow, wide = (estimate(product(m=2048, tile=t), {}, small_cache) for t in (16, 256))
    assert narrow.seconds > wide.seconds


def test_narrow_product_runs_at_the_rate_of_elements() -> None:
    slow = replace(MACHINE, element_rate=1e9)
    vector, matrix = estimate(product(m=1, tile=1), {}, slow), estimate(product(m=64), {}, slow)
    assert vector.seconds > matrix.seconds / 8


def test_bytes_run_at_their_own_rate() -> None:
    text = """(kernel :buffers [(B0 [64] i8) (B1 [512 64] u8) (B2 [512] i32)]
      :axes [(a 512) (c 64)] :grid [(a 4)] :resident [c]
      (let [v1 (load (B0 [c])) v2 (cast.i32 v1) v3 (load (B1 [a c])) v4 (cast.i32 v3) v5 (bitand v4 15.0)
            v6 (cast.i8 v5) v7 (cast.i32 v6) v8 (dot [c] v2 v7)]
        (store (B2 [a]) v8)))"""
    kernel, slow = parse(Source("bytes", text)), replace(MACHINE, element_rate=1e6)
    usual, fast = (estimate(kernel, {}, replace(slow, byte_rate=rate)) for rate in (0.0, 8e6))
    assert usual == estimate(kernel, {}, replace(slow, byte_rate=1e6))
    assert usual.seconds == pytest.approx(8 * fast.seconds, rel=0.01)
    assert fast.floor <= fast.seconds and fast.flops == usual.flops


@pytest.mark.parametrize("dot_rate", [1e8, 1e9, 1e11])
@pytest.mark.parametrize("rows", [1, 64])
def test_floor_is_never_above_the_estimate(dot_rate: float, rows: int) -> None:
    cost = estimate(product(m=rows, tile=rows), {}, replace(MACHINE, dot_rate=dot_rate, element_rate=1e9))
    assert 0 < cost.floor <= cost.seconds


def test_tiles_beyond_memory_are_punished() -> None:
    tight = replace(MACHINE, tile_memory=4 << 10)
    assert estimate(product(), {}, tight).seconds > 10 * estimate(product(), {}, MACHINE).seconds


def test_guard_saves_the_tiles_it_skips() -> None:
    axes: dict[str, dim.Extent] = {"i": 1024, "j": 1024}
    load = Load("v2", access("B0", "i", "j", extents=axes), (), ("i", "j"), F32)
    inner = (
        load,
        Reduce("v3", "max", ("j",), "v2", ("i",), F32),
        Map("v4", "max", ("v1", "v3"), ("i",), F32),
    )

    def rows(*guards: Bin) -> Kernel:
        loop = Loop(("j",), None, guards, (Carry("max", "v1", "v4", "v5", ("i",), F32),), inner)
        store = Store(access("B1", "i", extents=axes), "v5", ("i",))
        return Kernel(axes, ("i",), (), {"i": 16, "j": 16}, (loop, store))

    slow = replace(MACHINE, element_rate=1e8)
    whole, half = estimate(rows(), {}, slow), estimate(rows(Bin("le", Pos("j"), Pos("i"))), {}, slow)
    never = estimate(rows(Bin("lt", Pos("j"), Bin("sub", Pos("i"), Pos("i")))), {}, slow)
    assert half.seconds == pytest.approx(0.53 * whole.seconds, rel=0.05)
    assert never.seconds < half.seconds


def test_chunk_shortens_its_loop() -> None:
    def chunked(chunk: str | None) -> Kernel:
        axes: dict[str, dim.Extent] = {"c": 8, "j": 4096}
        load = Load("v2", access("B0", "j", extents=axes), (), ("j",), F32)
        inner = (load, Reduce("v3", "sum", ("j",), "v2", (), F32), Map("v4", "add", ("v1", "v3"), (), F32))
        loop = Loop(("j",), chunk, (), (Carry("sum", "v1", "v4", "v5", (), F32),), inner)
        store = Store(access("B1", "c", extents=axes), "v5", ("c",))
        return Kernel(axes, ("c",), (), {"c": 1, "j": 64}, (loop, store))

    slow = replace(MACHINE, element_rate=1e7)
    whole, part = estimate(chunked(None), {}, slow), estimate(chunked("c"), {}, slow)
    assert whole.seconds == pytest.approx(8 * part.seconds, rel=0.05)


def body(*statements: Statement) -> Kernel:
    return Kernel({"i": 8}, ("i",), (), {"i": 8}, statements)


def test_value_dies_after_its_last_use() -> None:
    a = access("B0", "i", extents={"i": 8})
    first = Load("v1", a, (), ("i",), F32)
    second = Map("v2", "exp2", ("v1",), ("i",), F32)
    third = Map("v3", "add", ("v2", "v2"), ("i",), F32)
    again = Map("v3", "add", ("v2", "v1"), ("i",), F32)

    def live(*statements: Statement) -> float:
        return live_bytes(body(*statements), lambda axes: 8 ** len(axes))

    assert live(first, second) == 2 * 32
    assert live(first, second, third) == 2 * 32
    assert live(first, second, again) == 3 * 32


def test_accumulators_live_through_their_loop() -> None:
    count = live_bytes(product(), lambda axes: 64 ** len(axes))
    assert count >= 4 * 64 * 64 * 4
