"""Interval evaluation of guards: what a predicate may be over a whole tile.

A guard is a field term over positions and dims.  Over a tile each position is an interval, so the guard
is one too; when its upper end is 0 the guard holds nowhere and the tile can be skipped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from lumi.field.term import Bin, Const, In, Pos, Sel, Term, Un

Interval: TypeAlias = "tuple[float, float]"
"""Least and greatest value, both attained or not; truth values are 0 and 1."""

UNKNOWN: Interval = (-math.inf, math.inf)


def interval(term: Term, positions: Mapping[str, Interval], dims: Mapping[str, int]) -> Interval:
    """Bounds of `term` while each axis runs over `positions[axis]`; what depends on data is unknown."""
    match term:
        case Const(value):
            return value, value
        case Pos(axis):
            return positions[axis]
        case In(name, _, _) if name.startswith("$"):
            return dims[name[1:]], dims[name[1:]]
        case Un(op, a):
            return _unary(op, interval(a, positions, dims))
        case Bin(op, a, b):
            return _binary(op, interval(a, positions, dims), interval(b, positions, dims))
        case Sel(_, a, b):
            (p, q), (r, s) = interval(a, positions, dims), interval(b, positions, dims)
            return min(p, r), max(q, s)
        case _:
            return UNKNOWN


def may_hold(guards: Iterable[Term], positions: Mapping[str, Interval], dims: Mapping[str, int]) -> bool:
    """Whether every guard may hold somewhere in the tile; False only when the tile can be skipped."""
    return all(interval(g, positions, dims)[1] > 0 for g in guards)


def _unary(op: str, a: Interval) -> Interval:
    if op == "not":
        return float(a[1] <= 0), float(a[0] <= 0)
    if op in ("cast.i32", "cast.i64", "cast.f32", "cast.f64") and _integral(a):
        return a
    return UNKNOWN


def _integral(a: Interval) -> bool:
    """Whether both ends are integers that every wide type holds, so that a cast keeps them."""
    return all(abs(x) <= 2**24 and x == math.floor(x) for x in a)


def _binary(op: str, a: Interval, b: Interval) -> Interval:
    match op:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul":
            corners = [x * y for x in a for y in b]
            return UNKNOWN if any(map(math.isnan, corners)) else (min(corners), max(corners))
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "lt":
            return float(a[1] < b[0]), float(a[0] < b[1])
        case "le":
            return float(a[1] <= b[0]), float(a[0] <= b[1])
        case "eq":
            return float(a[0] == a[1] == b[0] == b[1]), float(a[0] <= b[1] and b[0] <= a[1])
        case "and":
            return float(a[0] > 0 and b[0] > 0), float(a[1] > 0 and b[1] > 0)
        case "or":
            return float(a[0] > 0 or b[0] > 0), float(a[1] > 0 or b[1] > 0)
        case _:
            return UNKNOWN
