"""How long numpy takes for the reference of a region, by what it takes here for a point and a product."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping

import numpy as np

from lumi import dim
from lumi.dtype import F32
from lumi.field.evaluate import evaluate_term, is_contraction
from lumi.field.region import Region
from lumi.field.term import Bin, In, Red, Term, Un
from lumi.field.traverse import free_axes, postorder

SIZE = 64
"""Positions of each axis of what is measured."""

RUNS = 3
"""How often it is measured; the fastest counts."""


def numpy_seconds(region: Region, dims: Mapping[str, int]) -> float:
    """What the reference of a region should take at these dims."""
    extents = {a.name: dim.value(a.extent, dims) for a in region.axes}
    roots = [s.term for s in region.stores]
    free, order = free_axes(roots), postorder(roots)

    def size(term: Term) -> int:
        return math.prod(extents[a] for a in free[id(term)])

    sums = [t.body for t in order if isinstance(t, Red) and is_contraction(t)]
    folded = {id(body) for body in sums}
    points = sum(size(t) for t in order if id(t) not in folded)
    point, product = _rates()
    return point * points + product * sum(map(size, sums))


@functools.cache
def _rates() -> tuple[float, float]:
    """Seconds of a point of an elementwise term, and of a product that is summed."""
    x = In("x", ("h", "i", "k"), F32)
    arrays = {name: np.ones((SIZE, SIZE, SIZE), np.float32) for name in "xy"}
    point = _seconds(Un("exp2", x), arrays) / (2 * SIZE**3)
    other = In("y", ("h", "j", "k"), F32)
    return point, _seconds(Red("sum", ("k",), Bin("mul", x, other)), arrays) / SIZE**4


def _seconds(term: Term, arrays: Mapping[str, np.ndarray]) -> float:
    extents, took = dict.fromkeys("hijk", SIZE), list[float]()
    for _ in range(RUNS):
        start = time.perf_counter()
        evaluate_term(term, extents, arrays)
        took.append(time.perf_counter() - start)
    return min(took)
