"""Every rule fires on its seed, and whatever it makes equal computes the same numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumi.egraph import rules
from lumi.egraph.graph import EGraph
from lumi.egraph.rules import RuleBook
from lumi.egraph.saturate import saturate
from lumi.field.evaluate import evaluate_term
from lumi.field.region import Region
from lumi.field.term import Gat, In
from lumi.hlir.reference import cast
from tests.rules.seeds import LARGEST, SEEDS, Seed, leaves_of
from tests.rules.tiles import Machine, Value
from tests.rules.variants import variants

BOOK = rules.book()
RULES = {rule.name: rule for rule in BOOK.rules}
VARIANTS = 6


@cache
def explored(name: str, extra: int) -> tuple[Region, EGraph]:
    """The region of a rule's seed with batch axes, saturated under the rule, what it needs, and all facts."""
    return run(BOOK, name, SEEDS[name], extra)


def run(book: RuleBook, name: str, seed: Seed, extra: int) -> tuple[Region, EGraph]:
    region = seed.region(extra)
    kept = {name, *(seed.needs or ())}
    without = [r.name for r in book.rules if r.unites and r.name not in kept and seed.needs is not None]
    graph = saturate(
        region, families=seed.families, splits=seed.split, without=without, ranges=seed.dims, book=book
    )
    return region, graph


def fired(graph: EGraph, name: str) -> int:
    return sum(m.matches for m in graph.rules if m.name == name)


def array(rng: random.Random, seed: Seed, leaf: In | Gat, shape: tuple[int, ...]) -> np.ndarray:
    """Values for a leaf: normal ones, at times with a special value all over, here and there, or in front."""
    draw = np.random.default_rng(rng.getrandbits(32))
    if not leaf.dtype.is_float:
        low, high = (0, LARGEST - 1) if "table" in seed.leaves else leaf.dtype.bounds
        return draw.integers(low, high, shape, endpoint=True).astype(leaf.dtype.storage)
    made = draw.standard_normal(shape)
    value, way = rng.choice(seed.specials), rng.choice(("none", "none", "some", "front", "all"))
    if way == "some":
        made = np.where(draw.random(shape) < 0.4, value, made)
    elif way == "front" and shape:
        axis = rng.randrange(len(shape))
        places = np.arange(shape[axis]).reshape([-1 if k == axis else 1 for k in range(len(shape))])
        made = np.where(places < rng.randint(1, max(1, shape[axis])), value, made)
    elif way == "all":
        made = np.full(shape, value)
    return np.asarray(cast(made, leaf.dtype, True))


def draw(rng: random.Random, seed: Seed, region: Region) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Sizes of the axes, and values of the inputs over their axes in the region's order."""
    sizes = {a.name: rng.randint(0 if a.name in seed.empty else 1, LARGEST) for a in region.axes}
    sizes |= {a: rng.randint(1, 2) for a in sizes if a.startswith("z")}
    leaves = leaves_of(region.stores[0].term)
    if "table" in leaves:
        sizes["v"] = LARGEST
    shapes = {n: tuple(sizes[a] for a in t.axes) for n, t in leaves.items()}
    shapes |= {"table": (LARGEST, LARGEST)} if "table" in leaves else {}
    return sizes, {n: array(rng, seed, leaves[n], shape) for n, shape in shapes.items()}


def spread(values: np.ndarray, leaf: In | Gat, region: Region, sizes: Mapping[str, int]) -> Value:
    """A leaf's values with a dimension for every axis of the region; a table keeps its rows in front."""
    rows = values.shape[: values.ndim - len(leaf.axes)]
    shape = [sizes[a] if a in leaf.axes else 1 for a in region.axes.axes]
    return Value(values.reshape([*rows, *shape]), leaf.dtype)


def mismatch(got: np.ndarray, want: np.ndarray, inputs: Iterable[np.ndarray]) -> float:
    """The largest difference relative to the largest finite value or input; NaN in `want` allows anything."""
    with np.errstate(all="ignore"):
        same = (got == want) | np.isnan(want)
        difference = np.where(same, 0.0, np.abs(got.astype(float) - want.astype(float)))
    scale = max(
        np.max(np.abs(np.where(np.isfinite(a), a, 0)).astype(float), initial=1e-30) for a in (want, *inputs)
    )
    return float(np.max(np.where(np.isnan(difference), math.inf, difference), initial=0.0) / scale)


def check(region: Region, graph: EGraph, seed: Seed, number: int) -> None:
    """Variants of the seed equal the seed, for the sizes and values that `number` stands for."""
    rng = random.Random(number)
    sizes, values = draw(rng, seed, region)
    term = region.stores[0].term
    want, axes = evaluate_term(term, sizes, values, region.accesses)
    inputs = {n: spread(values[n], leaf, region, sizes) for n, leaf in leaves_of(term).items()}
    shape = [sizes[a] if a in axes else 1 for a in region.axes.axes]
    for choice in variants(graph, rng, VARIANTS):
        got = Machine(graph, choice, region.axes, sizes, inputs, rng.getrandbits(32)).root().array
        whole = np.broadcast_to(got, shape).reshape(want.shape)
        assert mismatch(whole, want, values.values()) <= seed.tolerance, (sizes, values, whole, want, choice)


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_rule_keeps_the_value_of_its_seed(name: str) -> None:
    @settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(extra=st.integers(0, 3), number=st.integers(0, 2**32))
    def examine(extra: int, number: int) -> None:
        region, graph = explored(name, extra)
        assert graph.saturated
        assert fired(graph, name) > 0, f"{name} does not fire with {extra} batch axes"
        check(region, graph, SEEDS[name], number)

    examine()


def test_every_rule_has_a_seed() -> None:
    assert set(RULES) == set(SEEDS)
