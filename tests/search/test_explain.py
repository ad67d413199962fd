"""Explanations: rank correlation, ratios, and plain data."""

from __future__ import annotations

import json

import pytest

from lumi.llir.json import decode, encode
from lumi.search.explain import Explanation, KernelStory, rank_correlation
from tests.search.plans import found
from tests.workloads import WORKLOADS


@pytest.mark.parametrize(
    ("pairs", "want"),
    [
        ([(1, 10), (2, 20), (3, 30)], 1.0),
        ([(1, 30), (2, 20), (3, 10)], -1.0),
        ([(1, 1), (2, 3), (3, 2), (4, 4)], 0.8),
        ([(1, 1), (1, 2), (2, 3), (2, 4)], 0.894427191),
        ([(1, 1), (2, 2)], None),
        ([(1, 5), (2, 5), (3, 5)], None),
    ],
)
def test_rank_correlation_is_spearmans(pairs: list[tuple[float, float]], want: float | None) -> None:
    found = rank_correlation(pairs)
    assert found is None if want is None else found == pytest.approx(want)


def test_ratio_prefers_what_was_measured() -> None:
    assert KernelStory(2.0, None, 1.0, 0.0, 0.0).ratio == 2.0
    assert KernelStory(2.0, 3.0, 1.0, 0.0, 0.0).ratio == 3.0
    assert KernelStory(2.0, None, 0.0, 0.0, 0.0).ratio == float("inf")


def test_explanation_is_plain_data() -> None:
    made = found(WORKLOADS["decode"]).explanation
    assert decode(Explanation, json.loads(json.dumps(encode(made)))) == made
