"""Random models of states compute what their graphs mean, call after call; `make test-slow` tries 1,000."""

from __future__ import annotations

import pytest

from lumi.compiler import Options, compile_model
from lumi.errors import Source
from lumi.search.settings import Mode, Settings
from tests.compilations import Pair, random_inputs
from tests.random_states import Writer

CASES, QUICK, GROUP = 1000, 40, 10
CALLS = [{"n": 2, "past": 1}, {"n": 1, "past": 8}, {"n": 4, "past": 0}, {"n": 3, "past": 5}]
TOLERANCE = 1e-4


def compared(seed: int, settings: Settings) -> list[str]:
    """Compare four calls of a model with its graph; the scopes of its kernels."""
    source = Source("states.lumi", Writer(seed, steps=3 + seed % 9).text)
    pair = Pair(compile_model(source, Options(settings=settings)))
    for number, dims in enumerate(CALLS):
        pair.call(random_inputs(pair.plan, dims, seed=number), dims, TOLERANCE)
    return [kernel.scope for kernel in pair.plan.kernels]


def compare(group: int) -> None:
    for seed in range(group * GROUP, (group + 1) * GROUP):
        compared(seed, Settings(mode=Mode.NONE))


@pytest.mark.parametrize("group", range(QUICK // GROUP))
def test_random_states_equal_their_graphs(group: int) -> None:
    compare(group)


@pytest.mark.slow
@pytest.mark.parametrize("group", range(QUICK // GROUP, CASES // GROUP))
def test_more_random_states_equal_their_graphs(group: int) -> None:
    compare(group)


@pytest.mark.parametrize("seed", [3, 7, 11, 17, 23, 29])
def test_searched_plans_of_random_states_equal_their_graphs(seed: int) -> None:
    compared(seed, Settings(mode=Mode.MODEL, evaluations=60))


def test_some_conflicts_need_copies_and_most_states_do_not() -> None:
    scopes = [compared(seed, Settings(mode=Mode.NONE)) for seed in range(12)]
    copied = sum("copy" in found for found in scopes)
    assert 1 <= copied <= 6
