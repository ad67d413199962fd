"""Cascades that must not be carried in one loop: on a prefix they would overflow, divide by 0 or make NaN.

Each gate of the calculus is taken out once, and then the same terms compute something else.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest

from lumi.egraph.graph import EGraph
from lumi.egraph.rules import RuleBook
from lumi.egraph.saturate import saturate
from lumi.field.term import Bin, Sel, Term
from tests.egraph.folders import with_change
from tests.rules.examine import mismatch, outcome
from tests.rules.seeds import Seed
from tests.rules.variants import variants
from tests.workloads import LOG2E, add, const, exp2, mul, read, recip, sub, top, total, un

X, Y, W = read("x", "i j"), read("y", "i j"), read("w", "i j")

OVERFLOW = total("j", exp2(mul(sub(X, top("j", Y)), LOG2E)))
OVERFLOW_OF_SUM = total("j", exp2(sub(X, total("j", Y))))
VANISHING = total("j", mul(un("abs", Y), total("j", add(X, 0.001))))
RATIO = total("j", mul(mul(X, recip(top("j", un("abs", Y)))), W))
OTHER_MAX = top("j", sub(X, top("j", Y)))
OTHER_MOMENT = total("j", mul(W, sub(X, top("j", Y))))
ROUNDED = total("j", mul(un("floor", add(mul(X, recip(top("j", un("abs", X)))), const(0.5))), W))


def carried(egraph: EGraph) -> int:
    """Number of accumulators that are rescaled or corrected from tile to tile."""
    units = {
        c
        for c, nodes in egraph.classes.items()
        for n in nodes
        if n.op == "Const" and n.attrs[0] in (0.0, 1.0)
    }
    accs = [n for nodes in egraph.classes.values() for n in nodes if n.op == "Acc"]
    return sum(n.children[2] not in units or n.children[3] not in units for n in accs)


@pytest.mark.parametrize(
    "term", [OVERFLOW, OVERFLOW_OF_SUM, VANISHING, RATIO, OTHER_MAX, OTHER_MOMENT, ROUNDED]
)
def test_cascade_is_not_carried(term: Term) -> None:
    assert carried(saturate(Seed(term, "i j").region(0))) == 0


@pytest.mark.parametrize(
    "term",
    [
        total("j", exp2(mul(sub(X, top("j", X)), LOG2E))),
        total("j", mul(mul(X, recip(top("j", un("abs", X)))), W)),
        top("j", sub(X, total("j", X))),
        total("j", mul(W, sub(X, top("j", X)))),
    ],
)
def test_cascade_on_its_own_reference_is_carried(term: Term) -> None:
    assert carried(saturate(Seed(term, "i j").region(0))) > 0


FRONT_ZERO = [0.0, 0.0, 0.0, 1.0, 2.0, 0.5, 1.5]
FRONT_LOW = [-math.inf, -math.inf, -math.inf, 1.0, 2.0, 0.5, 1.5]
ONES = [1.0] * 7
STEADY = '(Steadiness ?ctx ?r) (= ?r (Red "sum" ?d ?x)) (= ?k'

GATES = [
    ("(NonPos ?u) (Aff", "(Aff", OVERFLOW_OF_SUM, {"x": [2000.0] + [1.0] * 6, "y": [1.0] * 6 + [2000.0]}),
    ("(Zero ?r ?y) (Within ?x ?y) ", "", RATIO, {"x": ONES, "y": FRONT_ZERO, "w": ONES}),
    ("(Shift ?ctx ?u)", "(Want ?ctx ?u)", OTHER_MAX, {"x": ONES, "y": FRONT_LOW}),
    (STEADY, STEADY.replace('"sum"', "?o"), OTHER_MAX, {"x": ONES, "y": FRONT_LOW}),
    ("(Shift ?ctx ?u)", "(Want ?ctx ?u)", OTHER_MOMENT, {"x": ONES, "y": FRONT_LOW, "w": ONES}),
]


@pytest.mark.parametrize(("gate", "without", "term", "rows"), GATES)
def test_gate_is_needed(
    tmp_path: Path, gate: str, without: str, term: Term, rows: dict[str, list[float]]
) -> None:
    assert worst(term, rows, None) < 1e-9
    assert worst(term, rows, with_change(tmp_path, gate, without)) > 1e-3


def test_moment_needs_its_guard_against_an_empty_prefix(tmp_path: Path) -> None:
    term, rows = total("j", sub(X, top("j", X))), {"x": ONES}
    guarded = '(Bin "mulz" (Prev (Acc "sum" ?d (Const 1.0) (Const 1.0) (Const 0.0))) ?q)'
    assert worst(term, rows, None) < 1e-9
    assert worst(term, rows, with_change(tmp_path, guarded, guarded.replace("mulz", "mul"))) > 1e-3


def test_factor_of_a_selection_needs_its_guard(tmp_path: Path) -> None:
    chosen = Sel(Bin("lt", X, Y), mul(W, recip(read("t", "i"))), const(0.0))
    term, rows = total("j", chosen), {"x": [2.0] * 7, "y": ONES, "w": ONES, "t": 0.0}
    guarded = '(Bin "mulz" (Red "sum" ?d ?bo) ?p)))\n      :ruleset rs-use :name "pull-selected-factor"'
    assert worst(term, rows, None) < 1e-9
    assert worst(term, rows, with_change(tmp_path, guarded, guarded.replace("mulz", "mul"))) > 1e-3


def test_factor_of_a_sum_over_nothing_needs_its_guard(tmp_path: Path) -> None:
    term, rows = total("j", mul(X, recip(read("t", "i")))), {"x": ONES, "t": 0.0}
    guarded = '(Bin "mulz" (Red "sum" ?d ?bo) ?p)))\n      :ruleset rs-use :name "pull-factor-of-none"'
    assert worst(term, rows, None, 0) == 0
    assert worst(term, rows, with_change(tmp_path, guarded, guarded.replace("mulz", "mul")), 0) > 1e-3


def worst(term: Term, rows: dict[str, object], book: RuleBook | None, length: int = 7) -> float:
    """The largest mismatch of any of some variants, on two equal rows of given values."""
    seed = Seed(term, "i j", empty=() if length else ("j",))
    region = seed.region(0)
    egraph = saturate(region, book=book, ranges=seed.dims)
    values = {n: np.broadcast_to(row, (2, length) if np.ndim(row) else (2,)) for n, row in cut(rows, length)}
    rng, found = random.Random(0), 0.0
    for choice in variants(egraph, rng, 60):
        got, want = outcome(region, egraph, choice, {"i": 2, "j": length}, values, rng.getrandbits(32))
        found = max(found, mismatch(got, want, values.values()))
    return found


def cut(rows: dict[str, object], length: int) -> list[tuple[str, np.ndarray]]:
    """The first values of every row."""
    return [
        (n, np.asarray(row, float)[:length] if np.ndim(row) else np.asarray(row, float))
        for n, row in rows.items()
    ]
