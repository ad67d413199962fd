"""Attention as `models/attention.lumi` spells it becomes one kernel with one online loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from lumi import dim, paths
from lumi.egraph.saturate import saturate
from lumi.errors import LumiError, Source
from lumi.field.region import Region
from lumi.interpreter.module import Module, load
from lumi.interpreter.trace import trace
from lumi.llir.kernel import KernelGraph
from lumi.llir.text import show_graph
from lumi.lower.lower import lower
from lumi.search.search import search
from lumi.search.settings import Settings
from lumi.search.split import offer
from tests.search.plans import Modelled, assert_equal, loops, reference, run

LENGTHS = (1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 130)

ALL_LENGTHS = [
    pytest.param(n, marks=() if n in LENGTHS else pytest.mark.slow, id=str(n)) for n in range(1, 131)
]

VARIANTS: dict[str, tuple[str, dict[str, object]]] = {
    "full": ("bidirectional", {"kv_heads": 4}),
    "full_grouped": ("bidirectional", {"kv_heads": 2}),
    "causal": ("causal", {"kv_heads": 4}),
    "causal_grouped": ("causal", {"kv_heads": 2}),
    "window": ("causal", {"kv_heads": 4, "window": 16}),
    "length": ("ragged", {"kv_heads": 2}),
}


@cache
def module() -> Module:
    path = paths.data("models") / "attention.lumi"
    return load(Source(path.name, path.read_text()))


@cache
def region_of(name: str) -> tuple[Region, Settings]:
    entry, config = VARIANTS[name]
    graph = trace(module(), entry, config={"heads": 4, "width": 16, **config})
    (region,) = lower(graph)
    hint = {n: d.hints[0] for n, d in graph.dims.items()}
    return region, Settings(hints=(hint,), ranges=graph.dims, evaluations=800)


@cache
def plan_of(name: str) -> tuple[Region, KernelGraph]:
    region, settings = region_of(name)
    return region, search(region, saturate(region), settings, Modelled()).graph


@pytest.mark.parametrize("name", VARIANTS)
def test_attention_is_one_kernel_with_one_online_loop(name: str, golden: Callable[..., None]) -> None:
    _, graph = plan_of(name)
    golden(show_graph(graph), ".kernels", name=name)
    assert not graph.temporaries
    (step,) = graph.steps
    (loop,) = loops(step.kernel)
    assert sorted(c.op for c in loop.carries) == ["max", "sum", "sum"]
    assert bool(loop.guards) == (VARIANTS[name][0] != "bidirectional")


@pytest.mark.parametrize("length", ALL_LENGTHS)
@pytest.mark.parametrize("name", VARIANTS)
def test_plan_holds_for_lengths_it_was_not_searched_at(name: str, length: int) -> None:
    region, graph = plan_of(name)
    rng = np.random.default_rng(length)
    dims = {"seq": length, "keys": LENGTHS[(length * 5) % len(LENGTHS)], "length": length % 20}
    buffers = {
        a.buffer: rng.standard_normal([dim.value(e, dims) for e in a.shape]).astype(np.float32)
        for a in region.accesses.values()
    }
    got, want = run(graph, region, buffers, dims), reference(region, buffers, dims)
    out = region.stores[0].access.buffer
    assert not np.isnan(want[out]).any()
    assert_equal(got[out], want[out], 1e-5)


@pytest.mark.parametrize("name", ["full", "causal", "length"])
def test_row_that_sees_nothing_is_zero(name: str) -> None:
    region, graph = plan_of(name)
    dims = {"seq": 5, "keys": 5, "length": 0}
    buffers = {
        a.buffer: np.ones([dim.value(e, dims) for e in a.shape], np.float32) for a in region.accesses.values()
    }
    result = run(graph, region, buffers, dims)[region.stores[0].access.buffer]
    assert (result == (0.0 if name == "length" else 1.0)).all()


@pytest.mark.parametrize("name", ["full_grouped", "length"])
def test_split_attention_is_a_partial_and_a_combining_kernel(name: str, golden: Callable[..., None]) -> None:
    region, settings = region_of(name)
    (axis,) = {a for loop in loops(plan_of(name)[1].steps[0].kernel) for a in loop.axes}
    offered, splits = offer(region, {axis: 8})
    hint = {"seq": 1, "keys": 8192, "length": 8192}
    hints = ({n: hint[n] for n in settings.hints[0]},)
    made = Settings(hints=hints, splits=splits, evaluations=800)
    graph = search(offered, saturate(offered, splits=splits), made, Modelled()).graph
    golden(show_graph(graph), ".kernels", name=f"{name}_split")
    assert len(graph.steps) == 2
    assert all(splits[0][1] in step.kernel.axes for step in graph.steps)
    dims = {"seq": 1, "keys": 1000, "length": 700}
    rng = np.random.default_rng(0)
    buffers = {
        a.buffer: rng.standard_normal([dim.value(e, dims) for e in a.shape]).astype(np.float32)
        for a in region.accesses.values()
    }
    got, want = run(graph, offered, buffers, dims), reference(region, buffers, dims)
    out = region.stores[0].access.buffer
    assert_equal(got[out], want[out], 1e-5)


def test_axis_that_is_not_reduced_cannot_be_split() -> None:
    region, _ = region_of("causal")
    free = next(iter(region.axes)).name
    with pytest.raises(LumiError, match=f"does not reduce axis {free}"):
        offer(region, {free: 4})
