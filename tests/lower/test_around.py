"""Gathers at indices that are computed from positions and dims: they are index maps, and no gathers."""

from __future__ import annotations

import numpy as np
import pytest

from lumi import dim
from lumi.dtype import F32, I32
from lumi.field.region import Region
from lumi.field.term import Gat
from lumi.field.traverse import postorder
from lumi.hlir.graph import Node
from lumi.hlir.op import BinaryKind
from tests.lower.check import check
from tests.lower.spell import Spell

PAST = dim.var("past")
X = np.random.default_rng(6).standard_normal((12, 3))


def gathers(region: Region) -> int:
    return sum(isinstance(t, Gat) for t in postorder(s.term for s in region.stores))


def gathered(b: Spell, index: Node, past: int = 0) -> Region:
    y = b.gather(b.input("x", F32, (12, 3)), index)
    (region,) = check(b.result(b.mul(y, 2.0)), {"x": X}, {"past": past})
    return region


@pytest.mark.parametrize("past", [0, 1, 6, 7, 11, 12, 13, 100])
def test_a_window_of_a_ring_is_read_where_it_lies(past: int) -> None:
    b = Spell(past=(0, 200))
    region = gathered(b, b.mod(b.add(b.iota(7), b.symbol(PAST - 6)), 12), past)
    assert gathers(region) == 0
    assert not any(a.clamp for a in region.accesses.values())


@pytest.mark.parametrize(
    "index",
    [
        lambda b: b.add(b.mul(b.iota(4), 3), 2),
        lambda b: b.sub(b.const(11, I32), b.iota(12)),
        lambda b: b.div(b.iota(24), 2),
        lambda b: b.mod(b.mul(b.iota(9), 5), 12),
        lambda b: b.add(b.mul(b.mod(b.iota(8), 4), 3), b.div(b.iota(8), 4)),
        lambda b: b.add(b.reshape(b.iota(3), (3, 1)), b.reshape(b.mul(b.iota(2), 4), (1, 2))),
    ],
)
def test_sums_multiples_quotients_and_remainders_are_index_maps(index: object) -> None:
    b = Spell(past=(0, 1))
    assert gathers(gathered(b, index(b))) == 0  # type: ignore[operator]


def test_what_wraps_at_its_width_stays_a_gather() -> None:
    """The sum overflows: its value is not that of the index map."""
    b = Spell(past=(0, 1))
    index = b.mod(b.add(b.mul(b.iota(3), 2**30), 2**30), 12)
    assert gathers(gathered(b, index)) == 1


def test_a_quotient_of_what_may_be_negative_stays_a_gather() -> None:
    b = Spell(past=(0, 1))
    index = b.add(b.binary(BinaryKind.DIV, b.add(b.iota(5), -2), b.const(2, I32)), 1)
    assert gathers(gathered(b, index)) == 1
