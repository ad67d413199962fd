"""Random models, compiled whole, compute what their graphs mean, call after call."""

from __future__ import annotations

import pytest

from lumi.compiler import Options, compile_model
from lumi.errors import Source
from lumi.search.settings import Mode, Settings
from tests.compilations import Pair, random_inputs
from tests.random_models import LONGEST, Writer

CALLS = [{"n": 3, "past": 0}, {"n": 1, "past": 3}, {"n": LONGEST, "past": 4}]
TOLERANCE = 2e-4
"""Chains of norms amplify what is rounded."""


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.MODEL])
@pytest.mark.parametrize("seed", [2, 5, 6, 8, 12, 14])
def test_random_models_equal_their_graphs(seed: int, mode: Mode) -> None:
    text = Writer(seed, steps=3 + seed % 7).text
    families = ("exact",) if seed % 5 == 4 else ("exact", "relaxed")
    options = Options(settings=Settings(mode=mode, evaluations=60), families=families)
    pair = Pair(compile_model(Source("random.lumi", text), options))
    for number, values in enumerate(CALLS):
        dims = {name: size for name, size in values.items() if name in pair.plan.dims}
        pair.call(random_inputs(pair.plan, dims, seed=number), dims, TOLERANCE)
