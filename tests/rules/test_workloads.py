"""All rules together: variants of whole workloads, and of cascades that no one would write a rule for."""

from __future__ import annotations

import math

import pytest

from lumi.egraph.saturate import saturate
from lumi.field.term import Bin, Pos, Sel, Term
from tests.rules import examine
from tests.rules.seeds import FINITE, INF, SPLIT, Seed, X, Y, Z, mean, positive, shifted, softmax, weights
from tests.workloads import add, all_workloads, attention, const, exp2, mul, read, recip, sub, top, total

SCORES = total("v", mul(Z, read("u", "i v")))
CAUSAL = Bin("le", Pos("j"), Pos("i"))
AXES = "b hk g i j d v c"


def cascades() -> dict[str, Seed]:
    """Terms from the corners of the calculus."""
    two = mul(total("j", mul(exp2(add(mul(shifted(X), 0.5), shifted(Y))), Z)), recip(total("j", weights(Y))))
    lse = add(top("j", X), add(total("j", weights(X)), 0.0))
    inner = total("j", mul(weights(SCORES), total("v", mul(Z, weights(SCORES)))))
    amax = mul(X, recip(top("j", positive(X))))
    shifted_twice = sub(sub(X, top("j", Y)), top("j", sub(X, top("j", Y))))
    variance = total("j", mul(softmax(X), mul(sub(Y, mean(Y)), sub(Y, mean(Y)))))
    masked_rows = Sel(Bin("lt", Pos("j"), sub(Pos("i"), 2.0)), X, const(-INF))
    both = Bin("and", CAUSAL, Bin("lt", Pos("i"), add(Pos("j"), 3.0)))
    return {
        "two maxima in one exponent": Seed(two, "i j v c", split=SPLIT),
        "sum of a maximum and a sum": Seed(lse, "i j c", split=SPLIT),
        "sums inside the exponent": Seed(inner, "i j v"),
        "amax scale and softmax weights": Seed(total("j", mul(mul(amax, softmax(Y)), Z)), "i j v"),
        "maximum of a difference to a maximum": Seed(total("j", mul(exp2(shifted_twice), Z)), "i j v"),
        "entropy": Seed(total("j", mul(softmax(X), shifted(X))), "i j c", split=SPLIT, specials=FINITE),
        "spread under weights": Seed(variance, "i j c", split=SPLIT, specials=FINITE),
        "fully masked rows": Seed(total("j", mul(softmax(masked_rows), Z)), "i j v c", split=SPLIT),
        "windowed attention": Seed(attention(both, 4), AXES, split=SPLIT),
        "softmax over two axes": Seed(
            total("i j", mul(exp2(sub(X, top("i j", X))), Y)), "i j c", split=SPLIT
        ),
        "selected softmax": Seed(
            total("j", mul(Sel(CAUSAL, softmax(X), const(0.0)), Z)), "i j v c", split=SPLIT
        ),
        "product over a mask": Seed(guarded(masked_rows), "i j v c", split=SPLIT),
    }


def guarded(scores: Term) -> Term:
    """A softmax that gives 0 for a row of -inf."""
    m = top("j", scores)
    e = exp2(sub(scores, Sel(Bin("eq", m, const(-INF)), const(0.0), m)))
    s = total("j", e)
    return total("j", mul(mul(e, Sel(Bin("lt", const(0.0), s), recip(s), const(0.0))), Z))


def workloads() -> dict[str, Seed]:
    """The classic fusion problems."""
    return {
        w.name: Seed(w.term, " ".join(w.large), None, w.splits, w.families, FINITE, tolerance=1e-8)
        for w in all_workloads()
    }


ALL = {**cascades(), **workloads()}


@pytest.mark.parametrize("name", ALL)
def test_variants_keep_the_value(name: str) -> None:
    seed = ALL[name]
    region = seed.region(0)
    egraph = saturate(region, families=seed.families, splits=seed.split)
    assert egraph.saturated
    for number in range(4):
        worst = examine.worst(region, egraph, seed, number, 12)
        assert worst <= seed.tolerance and math.isfinite(worst), number
