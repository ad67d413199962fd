"""The text of plans: everything that matters of a buffer, a launch and a binding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lumi.dtype import F16
from lumi.plan.plan import Binary, Binding, Plan
from lumi.plan.text import show
from tests.plan.samples import add_plan, counter_plan


def packed_plan() -> Plan:
    """The sum with its weight as a plane of a packed one, and a binary."""
    plan = add_plan()
    binding = Binding("w", "layer.weight", F16, (1,), "q8_0", "d", 0.5)
    return replace(plan, bindings=(binding,), binaries=(Binary("x86-64", b"1234"),))


@pytest.mark.parametrize(
    "plan", [add_plan(), counter_plan(), packed_plan()], ids=["add", "counter", "packed"]
)
def test_a_plan_prints_readably(plan: Plan, golden: Callable[..., None]) -> None:
    golden(show(plan), ".plan")
