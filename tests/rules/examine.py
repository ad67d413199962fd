"""Run variants of a seed on drawn sizes and values beside the naive evaluation."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping

import numpy as np

from lumi.egraph.graph import EGraph
from lumi.egraph.rules import RuleBook
from lumi.egraph.saturate import saturate
from lumi.field.evaluate import evaluate_term
from lumi.field.region import Region
from lumi.field.term import Gat, In
from lumi.hlir.reference import cast
from tests.rules.seeds import LARGEST, Seed, leaves_of
from tests.rules.tiles import Choice, Machine, Value
from tests.rules.variants import variants


def explored(book: RuleBook, name: str, seed: Seed, extra: int) -> tuple[Region, EGraph]:
    """The seed of a rule with batch axes, saturated under the rule, what it needs, and all facts."""
    region, kept = seed.region(extra), {name, *(seed.needs or ())}
    without = [r.name for r in book.rules if r.unites and r.name not in kept and seed.needs is not None]
    egraph = saturate(
        region, families=seed.families, splits=seed.split, without=without, ranges=seed.dims, book=book
    )
    return region, egraph


def fired(egraph: EGraph, name: str) -> int:
    """How often a rule matched."""
    return sum(m.matches for m in egraph.rules if m.name == name)


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
    """Sizes of the axes, and values of the leaves over their own axes."""
    largest = LARGEST if len(region.axes) <= 5 else 4
    sizes = {a.name: rng.randint(0 if a.name in seed.empty else 1, largest) for a in region.axes}
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
    finite = (np.abs(np.where(np.isfinite(a), a, 0)).astype(float) for a in (want, *inputs))
    scale = max(np.max(a, initial=1e-30) for a in finite)
    return float(np.max(np.where(np.isnan(difference), math.inf, difference), initial=0.0) / scale)


def outcome(
    region: Region,
    egraph: EGraph,
    choice: Choice,
    sizes: Mapping[str, int],
    values: Mapping[str, np.ndarray],
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """What a choice computes, and what the region's term means."""
    term = region.stores[0].term
    want, axes = evaluate_term(term, sizes, values, region.accesses)
    inputs = {n: spread(values[n], leaf, region, sizes) for n, leaf in leaves_of(term).items()}
    got = Machine(egraph, choice, region.axes, sizes, inputs, seed).root().array
    shape = [sizes[a] if a in axes else 1 for a in region.axes.axes]
    return np.broadcast_to(got, shape).reshape(want.shape), want


def worst(region: Region, egraph: EGraph, seed: Seed, number: int, count: int) -> float:
    """The largest mismatch of `count` variants for the sizes and values that `number` stands for."""
    rng = random.Random(number)
    sizes, values = draw(rng, seed, region)
    found = 0.0
    for choice in variants(egraph, rng, count):
        got, want = outcome(region, egraph, choice, sizes, values, rng.getrandbits(32))
        found = max(found, mismatch(got, want, values.values()))
    return found
