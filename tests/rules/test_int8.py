"""Products in integers stay within their bound, and are taken only where i32 holds every sum."""

from __future__ import annotations

import random

import numpy as np
import pytest

from lumi.dtype import F32
from lumi.egraph import rules
from lumi.egraph.saturate import saturate
from lumi.field.access import Access
from lumi.field.axis import AxisTable
from lumi.field.evaluate import evaluate_term
from lumi.field.region import Region, Store
from lumi.field.term import Term
from tests.rules import examine
from tests.rules.seeds import NIBBLE, ROW, SEEDS
from tests.rules.variants import variants
from tests.workloads import mul, read, top, total, un

NAME = "integer-product"


def test_error_is_at_most_half_a_step_a_quant() -> None:
    region, egraph = examine.explored(rules.book(), NAME, SEEDS[NAME], 0)
    bound = mul(mul(top("j", un("abs", ROW)), 1 / 254), total("j", un("abs", NIBBLE)))
    largest = 0.0
    for number in range(40):
        rng = random.Random(number)
        sizes, values = examine.draw(rng, SEEDS[NAME], region)
        allowed, _ = evaluate_term(bound, sizes, values, region.accesses)
        for choice in variants(egraph, rng, 4):
            got, want = examine.outcome(region, egraph, choice, sizes, values, number)
            error = np.abs(got - want)
            assert np.all(error <= allowed * (1 + 1e-9))
            largest = max(largest, float(np.max(error / np.maximum(allowed, 1e-30), initial=0.0)))
    assert largest > 0.3  # bytes were used, and the bound is not idle


def region_of(term: Term, extents: dict[str, int]) -> Region:
    table = AxisTable()
    for name, extent in extents.items():
        table.add(name, extent)
    return Region("", table, {}, (Store(term, Access("out", (), (), F32)),), ("out",), {}, (), "")


@pytest.mark.parametrize(("length", "count"), [(3, 0), (4, 1), (1 << 17, 1), ((1 << 17) + 1, 0)])
def test_length_of_the_sum_decides(length: int, count: int) -> None:
    egraph = saturate(
        region_of(total("j", mul(ROW, NIBBLE)), {"i": 1 << 18, "j": length}), families=("exact", "int8")
    )
    assert min(examine.fired(egraph, NAME), 1) == count


def test_quants_that_vary_no_more_than_the_activations_are_left_alone() -> None:
    term = total("j", mul(read("x", "i j"), NIBBLE))
    egraph = saturate(region_of(term, {"i": 8, "j": 32}), families=("exact", "int8"))
    assert examine.fired(egraph, NAME) == 0


def test_the_family_is_off_by_default() -> None:
    egraph = saturate(region_of(total("j", mul(ROW, NIBBLE)), {"i": 8, "j": 32}))
    assert examine.fired(egraph, NAME) == 0
