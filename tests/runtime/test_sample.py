"""Sampling: greedy, filters, frequencies, seeds."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.errors import LumiError
from lumi.runtime.sample import Sampler, Sampling, top_logits

LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.3], np.float32))


def frequencies(sampling: Sampling, logits: np.ndarray = LOGITS, count: int = 4000) -> np.ndarray:
    sampler = Sampler(sampling)
    picked = np.bincount([sampler.pick(logits) for _ in range(count)], minlength=len(logits))
    return picked / count


def test_greedy_takes_the_first_of_equals() -> None:
    assert Sampler(Sampling()).pick(np.array([1.0, 3.0, 3.0, 2.0], np.float32)) == 1


def test_draws_follow_the_softmax() -> None:
    want = np.array([0.1, 0.4, 0.2, 0.3])
    deviation = 5 * np.sqrt(want * (1 - want) / 4000)
    assert (np.abs(frequencies(Sampling(temperature=1.0)) - want) < deviation).all()


def test_temperature_sharpens_as_a_power() -> None:
    want = np.array([0.1, 0.4, 0.2, 0.3]) ** 2
    want /= want.sum()
    deviation = 5 * np.sqrt(want * (1 - want) / 4000)
    assert (np.abs(frequencies(Sampling(temperature=0.5)) - want) < deviation).all()


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        (Sampling(temperature=1.0, top_k=2), {1, 3}),
        (Sampling(temperature=1.0, top_k=1), {1}),
        (Sampling(temperature=1.0, top_k=100), {0, 1, 2, 3}),
        (Sampling(temperature=1.0, top_p=0.39), {1}),
        (Sampling(temperature=1.0, top_p=0.41), {1, 3}),
        (Sampling(temperature=1.0, top_p=0.89), {1, 2, 3}),
        (Sampling(temperature=1.0, min_p=0.6), {1, 3}),
        (Sampling(temperature=1.0, min_p=1.0), {1}),
        (Sampling(temperature=1.0, top_k=3, top_p=0.5), {1, 3}),
    ],
)
def test_filters_keep_exactly_their_tokens(sampling: Sampling, kept: set[int]) -> None:
    assert set(np.flatnonzero(frequencies(sampling, count=400))) == kept


def test_tiny_temperature_and_infinite_logits_stay_finite() -> None:
    logits = np.array([-np.inf, 5.0, 80.0, -1e30], np.float32)
    assert Sampler(Sampling(temperature=1e-30)).pick(logits) == 2


def test_one_seed_gives_one_sequence() -> None:
    def draw(seed: int) -> list[int]:
        sampler = Sampler(Sampling(temperature=1.0, seed=seed))
        return [sampler.pick(LOGITS) for _ in range(50)]

    assert draw(7) == draw(7)
    assert draw(7) != draw(8)


def test_equal_logits_are_cut_at_the_lower_tokens() -> None:
    logits = np.zeros(9, np.float32)
    assert set(np.flatnonzero(frequencies(Sampling(temperature=1.0, top_k=3), logits, 400))) == {0, 1, 2}


def test_top_logits_are_sorted_with_ties_by_token() -> None:
    logits = np.array([2.0, 5.0, 2.0, 7.0, 2.0], np.float32)
    assert top_logits(logits, 4) == [(3, 7.0), (1, 5.0), (0, 2.0), (2, 2.0)]
    assert len(top_logits(logits, 50)) == 5


def test_logit_that_is_no_number_is_an_error() -> None:
    with pytest.raises(LumiError, match="the logit of token 2 is not a number"):
        Sampler(Sampling()).pick(np.array([1.0, 2.0, np.nan], np.float32))


@pytest.mark.parametrize(
    ("name", "value"), [("temperature", -1.0), ("top_k", -1), ("top_p", 0.0), ("min_p", 1.5), ("seed", -1)]
)
def test_values_outside_their_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(LumiError, match=f"{name.replace('_', '-')} is {value}"):
        Sampling(**{name: value})  # type: ignore[arg-type]
