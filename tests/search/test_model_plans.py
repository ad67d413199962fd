"""Plans of whole models' regions, searched and random: states, gathers, windows, values under two roles."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from lumi import dim, paths
from lumi.dtype import round_to_bf16
from lumi.egraph.saturate import saturate
from lumi.errors import Source
from lumi.field.access import Access
from lumi.field.region import Region
from lumi.field.term import Gat
from lumi.field.traverse import postorder
from lumi.interpreter.module import load
from lumi.interpreter.trace import trace
from lumi.llir.kernel import Step
from lumi.lower.lower import lower
from lumi.search.finish import finish
from lumi.search.model import estimate
from lumi.search.planner import Planner
from lumi.search.search import search
from lumi.search.settings import Settings
from lumi.search.space import Space
from tests.search.plans import DEFAULT, MACHINE, Modelled, assert_equal, reference, run
from tests.search.test_random_plans import Walker
from tests.workloads import Arrays

GEMMA = {
    "layers": 2,
    "width": 12,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 4,
    "hidden": 10,
    "vocab": 17,
    "context": 24,
    "window": 5,
    "pattern": 2,
}


@dataclass(frozen=True)
class Case:
    """A model of the models folder: its config, bound dims, and the sizes to search for and to run at."""

    model: str
    config: Mapping[str, object]
    bind: Mapping[str, int]
    hint: Mapping[str, int]
    dims: Mapping[str, int]


CASES = {
    "decode": Case("gemma3", GEMMA, {"seq": 1}, {"past": 9}, {"past": 3}),
    "prefill": Case("gemma3", GEMMA, {}, {"past": 6, "seq": 8}, {"past": 2, "seq": 7}),
    "convnet": Case("convnet", {"size": 8, "channels": 2, "classes": 3}, {}, {"batch": 4}, {"batch": 2}),
    "mlp": Case("mlp", {"width": 6, "hidden": 8, "classes": 3}, {}, {"batch": 4}, {"batch": 3}),
}


@cache
def regions(name: str) -> tuple[Region, ...]:
    """The distinct regions of a case."""
    case = CASES[name]
    path = paths.data("models") / f"{case.model}.lumi"
    graph = trace(load(Source(path.name, path.read_text())), config=case.config, bind=case.bind)
    found: dict[str, Region] = {}
    for region in lower(graph):
        found.setdefault(region.key, region)
    return tuple(found.values())


COUNTS = {"decode": 5, "prefill": 5, "convnet": 1, "mlp": 1}
"""Distinct regions of each case."""

REGIONS = [(name, k) for name, count in COUNTS.items() for k in range(count)]


def memory(region: Region, dims: Mapping[str, int]) -> Arrays:
    """Seeded content for every buffer that the region reads before it writes it, or updates in part."""
    rng = np.random.default_rng(0)
    accesses: dict[str, Access] = {}
    for access in (*region.accesses.values(), *(s.access for s in region.stores)):
        accesses.setdefault(access.buffer, access)
    made: Arrays = {}
    for buffer, access in accesses.items():
        shape = [dim.value(e, dims) for e in access.shape]
        if access.dtype.is_float:
            values = rng.standard_normal(shape) + 0.1
            made[buffer] = (
                round_to_bf16(values) if access.dtype.name == "bf16" else values.astype(access.dtype.storage)
            )
        else:
            low, high = access.dtype.bounds
            made[buffer] = rng.integers(max(low, 0), min(high, 16) + 1, shape).astype(access.dtype.storage)
    return made


def settings_of(name: str) -> Settings:
    case = CASES[name]
    return Settings(hints=(dict(case.hint),), evaluations=120)


def stored(region: Region) -> list[str]:
    return sorted({s.access.buffer for s in region.stores})


@pytest.mark.parametrize(("name", "number"), REGIONS)
def test_searched_plan_of_a_region_equals_the_reference(name: str, number: int) -> None:
    region, dims = regions(name)[number], CASES[name].dims
    graph = search(region, saturate(region), settings_of(name), Modelled()).graph
    held = memory(region, dims)
    got, want = run(graph, region, held, dims), reference(region, held, dims)
    for buffer in stored(region):
        assert_equal(got[buffer], want[buffer], 2e-5)


@pytest.mark.parametrize(("name", "number"), REGIONS)
def test_random_plan_of_a_region_equals_the_reference(name: str, number: int) -> None:
    check(name, number, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), REGIONS)
def test_many_random_plans_of_a_region_equal_the_reference(name: str, number: int) -> None:
    check(name, number, 60)


def check(name: str, number: int, count: int) -> None:
    region, case = regions(name)[number], CASES[name]
    hint = dict(case.hint)
    planner = Planner(
        Space(region, saturate(region)),
        settings_of(name),
        lambda k: (estimate(k, hint, MACHINE).seconds, DEFAULT),
    )
    held = memory(region, case.dims)
    want = reference(region, held, case.dims)
    ran = 0
    for plan in Walker(planner, random.Random(f"{name} {number}")).plans(count):
        graph = finish([Step(p.kernel, p.schedule) for p in plan.pieces], frozenset(stored(region)))
        got = run(graph, region, held, case.dims)
        for buffer in stored(region):
            assert_equal(got[buffer], want[buffer], 5e-5)
        ran += 1
    assert ran > 0


def test_some_region_gathers_and_some_updates_a_state() -> None:
    found = [r for name in CASES for r in regions(name)]
    assert any(isinstance(t, Gat) for r in found for t in postorder([s.term for s in r.stores]))
    assert any(s.access.index != () and "past" in str(s.access) for r in found for s in r.stores)


@pytest.mark.parametrize("name", CASES)
def test_equal_layers_share_a_region(name: str) -> None:
    assert len(regions(name)) == COUNTS[name]
