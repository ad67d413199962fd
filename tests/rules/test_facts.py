"""What fact rules say about a term holds for the term's values."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from lumi.egraph import encode, rules
from lumi.egraph.explore import Limits, Task, explore
from lumi.egraph.graph import EGraph
from lumi.egraph.readout import Tables
from lumi.egraph.saturate import saturate
from lumi.field.axis import LIMIT
from lumi.field.region import Region
from tests.rules import examine
from tests.rules.seeds import SEEDS, Seed
from tests.rules.tiles import Choice, Machine, Place
from tests.rules.variants import choose

BOOK = rules.book()
IDENTITY = {"sum": 0.0, "max": -np.inf, "mul": 1.0}

Of = Callable[[int], np.ndarray]


def not_positive(of: Of, e: int) -> bool:
    return bool(np.all(~(of(e) > 0)))


def not_negative(of: Of, e: int) -> bool:
    return bool(np.all(~(of(e) < 0) | (of(e) == -np.inf)))


def negative_infinity(of: Of, e: int, p: int) -> bool:
    return idle(of, "max", e, p)


def idle(of: Of, op: str, e: int, p: int) -> bool:
    value, holds = np.broadcast_arrays(of(e), of(p))
    return bool(np.all(holds | (value == IDENTITY[op]) | np.isnan(value)))


def zero(of: Of, r: int, y: int) -> bool:
    """Where r is 0, y is 0 along every axis that r lacks.  The reciprocal of an infinite y is 0 too."""
    value, other = np.broadcast_arrays(of(r), of(y))
    return bool(np.all((value != 0) | (other == 0) | np.isnan(other))) or bool(np.isinf(other).any())


def within(of: Of, x: int, y: int) -> bool:
    value, other = np.broadcast_arrays(of(x), of(y))
    return bool(np.all((other != 0) | (value == 0) | np.isnan(value)))


def exponent(of: Of, e: int, n: int) -> bool:
    return bool(np.all(of(e) == 2.0 ** of(n)))


DISTINCT = {name: seed for seed, name in {seed: name for name, seed in SEEDS.items()}.items()}
"""One name for each of the seeds, which rules share."""

FACTS: dict[str, Callable[..., bool]] = {
    "NonPos": not_positive,
    "NonNeg": not_negative,
    "NegInf": negative_infinity,
    "Idle": idle,
    "Zero": zero,
    "Within": within,
    "Exponent": exponent,
}


@cache
def tables(name: str) -> tuple[Region, EGraph, Tables]:
    """A rule's seed saturated under all rules, and the tables behind it."""
    seed = SEEDS[name]
    region = seed.region(1)
    chosen = rules.select(BOOK.rules, seed.families)
    task = Task.of(BOOK, chosen, encode.encode(region, seed.split, seed.dims))
    found = explore(task, Limits(), relations=tuple(FACTS)).tables
    return region, saturate(region, families=seed.families, splits=seed.split, ranges=seed.dims), found


def is_closed(region: Region, egraph: EGraph, seed: Seed, cls: int) -> bool:
    """Whether a class means something outside loops, over whole axes."""
    chunks = region.axes.mask(c for _, c in seed.split)
    return not egraph.free[cls] >> LIMIT and not egraph.free[cls] & chunks


@pytest.mark.parametrize("fact", sorted(FACTS))
def test_fact_holds_for_values(fact: str) -> None:
    met = 0
    for name, seed in DISTINCT.items():
        region, egraph, found = tables(name)
        rows = sorted(found.relations.get(fact, ()), key=repr)
        rows = [r for r in rows if all(is_closed(region, egraph, seed, c) for c in r if isinstance(c, int))]
        if not rows:
            continue
        rng = random.Random(name)
        choice = choose(egraph, {}, rng) or {}
        sizes, values = examine.draw(rng, seed, region)
        of = reader(region, egraph, sizes, values, choice)
        for row in rows:
            assert FACTS[fact](of, *row), (name, row, [egraph.classes[c] for c in row if isinstance(c, int)])
            met += 1
    assert met >= 3


def reader(
    region: Region, egraph: EGraph, sizes: dict[str, int], values: dict[str, np.ndarray], choice: Choice
) -> Of:
    leaves = examine.leaves_of(region.stores[0].term)
    inputs = {n: examine.spread(values[n], leaf, region, sizes) for n, leaf in leaves.items()}
    machine = Machine(egraph, choice, region.axes, sizes, inputs, 0)
    whole = Place({a.name: tuple(range(sizes[a.name])) for a in region.axes}, {})
    return lambda cls: machine.value(cls, whole).array


def test_bounds_hold_for_values() -> None:
    met = 0
    for name in (n for n in SEEDS if n.startswith(("bounds", "div", "rem", "mod", "exponent"))):
        region, egraph, found = tables(name)
        rng = random.Random(name)
        choice = choose(egraph, {}, rng) or {}
        sizes, values = examine.draw(rng, SEEDS[name], region)
        of = reader(region, egraph, sizes, values, choice)
        for cls, low in found.facts["low"].items():
            assert np.all(of(cls) >= low), (name, egraph.classes[cls], low)
            met += 1
        for cls, high in found.facts["high"].items():
            assert np.all(of(cls) <= high), (name, egraph.classes[cls], high)
    assert met > 20
