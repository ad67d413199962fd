"""Made-up numbers: what they are made of, how they are spread, and that a place alone decides."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.dtype import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, DType, round_to_bf16
from lumi.noise import FACTORS, STRIDE, Noise


def mixed(seed: int, place: int) -> int:
    """SplitMix64, in Python's own integers."""
    z = (seed + (place + 1) * STRIDE) % 2**64
    z = (z ^ (z >> 30)) * FACTORS[0] % 2**64
    z = (z ^ (z >> 27)) * FACTORS[1] % 2**64
    return z ^ (z >> 31)


def test_first_number_of_seed_0_is_the_published_one() -> None:
    assert mixed(0, 0) == 0xE220A8397B1DCDAF


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_floats_are_centred_sums_of_four_parts(seed: int) -> None:
    noise = Noise(seed, F32, scale=0.5)
    for place, found in enumerate(noise.array(9)):
        bits = mixed(seed, place)
        total = sum((bits >> shift) & 0xFFFF for shift in (0, 16, 32, 48)) - 131070
        assert found == np.float32(total) * noise.factor


@pytest.mark.parametrize(
    ("dtype", "low", "span"), [(I8, -128, 256), (U8, 0, 256), (I32, 0, 101), (BOOL, 0, 2)]
)
def test_integers_fill_their_range(dtype: DType, low: int, span: int) -> None:
    found = Noise(3, dtype, low=low, span=span).array(20000).astype(int)
    assert (found.min(), found.max()) == (low, low + span - 1)
    assert found.mean() == pytest.approx(low + (span - 1) / 2, abs=span / 100)
    assert found[5] == low + ((mixed(3, 5) >> 32) * span >> 32)


def test_floats_are_spread_as_a_normal_variable() -> None:
    found = Noise(1, F64, scale=2.0).array(200_000)
    assert found.mean() == pytest.approx(0, abs=0.02)
    assert found.std() == pytest.approx(2, rel=0.01)
    assert np.mean(np.abs(found) < 2) == pytest.approx(0.68, abs=0.02)


def test_halves_are_the_rounded_numbers() -> None:
    whole = Noise(5, F32).array(100)
    np.testing.assert_array_equal(Noise(5, F16).array(100), whole.astype(np.float16))
    np.testing.assert_array_equal(Noise(5, BF16).array(100), round_to_bf16(whole))


def test_length_does_not_change_the_numbers() -> None:
    long = Noise(2, I64, span=1000).array((1 << 20) + 5)
    np.testing.assert_array_equal(long[:10], Noise(2, I64, span=1000).array(10))
    assert long[1 << 20] == (mixed(2, 1 << 20) >> 32) * 1000 >> 32
