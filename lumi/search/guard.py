"""Guards of a loop as field terms: what can be known about a tile before it is computed."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from lumi.dtype import I32
from lumi.field.term import Bin, Const, In, Pos, Sel, Term, Un
from lumi.field.traverse import free_axes
from lumi.llir.interval import Interval, may_hold
from lumi.memo import Memo
from lumi.search.dag import Apply, Dag, Dimension, Number, Position

Names = Callable[[int], tuple[str, ...]]
"""The axes of a mask."""


def guards(dag: Dag, names: Names, predicates: Iterable[int]) -> tuple[Term, ...]:
    """The conjuncts of the predicates that depend on positions and dims alone.

    A guard only allows to skip a tile, so one that depends on data may be left out.
    """
    found: dict[int, Term] = {}
    stack = list(predicates)
    while stack:
        number = stack.pop(0)
        match dag.values[number]:
            case Apply("and", (a, b)):
                stack += [a, b]
            case _:
                term = _term(dag, names, number)
                if term is not None:
                    found[number] = term
    return tuple(found.values())


def _term(dag: Dag, names: Names, number: int) -> Term | None:
    match dag.values[number]:
        case Number(value):
            return Const(value)
        case Position(axis):
            return Pos(names(axis)[0])
        case Dimension(dim):
            return In(f"${dim}", (), I32)
        case Apply(op, args):
            parts = [_term(dag, names, a) for a in args]
            return _apply(op, [p for p in parts if p is not None]) if None not in parts else None
        case _:
            return None


def _apply(op: str, parts: list[Term]) -> Term:
    if op == "sel":
        return Sel(*parts)
    return Un(op, *parts) if len(parts) == 1 else Bin(op, *parts)


LATTICE = 16
"""Tiles of an axis that are looked at, evenly spread, when it has more."""


def active_share(
    guards: tuple[Term, ...], sizes: Mapping[str, int], tiles: Mapping[str, int], dims: Mapping[str, int]
) -> float:
    """The share of tiles that a loop with these guards does not skip."""
    axes, known = _known(guards)
    key = tuple((a, sizes[a], tiles[a]) for a in axes), tuple(sorted(dims.items()))
    if key not in known:
        known[key] = _share(guards, *key)
    return known[key]


Spans: TypeAlias = tuple[tuple[str, int, int], ...]
"""Axes with their sizes and tiles."""

Values: TypeAlias = tuple[tuple[str, int], ...]
"""The dims."""


@Memo
def _known(guards: tuple[Term, ...]) -> tuple[list[str], dict[tuple[Spans, Values], float]]:
    """The axes that guards depend on, and the shares that are known of them."""
    return sorted(frozenset().union(*(free_axes([g])[id(g)] for g in guards))), {}


@functools.lru_cache(maxsize=4096)
def _share(guards: tuple[Term, ...], spans: Spans, dims: Values) -> float:
    values = dict(dims)
    rows = [[(a, t) for t in _tiles(size, step)] for a, size, step in spans]
    active = [may_hold(guards, dict(cell), values) for cell in itertools.product(*rows)]
    return sum(active) / len(active)


def _tiles(size: int, step: int) -> list[Interval]:
    """The first and last position of some tiles of an axis."""
    number = -(-size // step)
    picked = (
        range(number) if number <= LATTICE else [k * (number - 1) // (LATTICE - 1) for k in range(LATTICE)]
    )
    return [(k * step, min(size, (k + 1) * step) - 1) for k in picked]
