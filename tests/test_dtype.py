from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lumi.dtype import (
    BF16,
    DTYPES,
    F8E4M3,
    F8E5M2,
    DType,
    from_memory,
    from_numpy,
    round_to_bf16,
    round_to_tf32,
    to_memory,
    widen_bf16,
)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_numpy_types_map_back(dtype: DType) -> None:
    assert from_numpy(dtype.numpy) is dtype
    assert dtype.storage.itemsize == dtype.numpy.itemsize == dtype.size


def test_bf16_conversion_equals_ml_dtypes() -> None:
    every = np.arange(2**16, dtype=np.uint16)
    wide = widen_bf16(every)
    np.testing.assert_array_equal(wide, every.view(ml_dtypes.bfloat16).astype(np.float32))
    bits = np.random.default_rng(0).integers(0, 2**32, 10_000, dtype=np.uint32).view(np.float32)
    with np.errstate(invalid="ignore"):
        want = bits.astype(ml_dtypes.bfloat16)
    got = round_to_bf16(bits).view(BF16.numpy)
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("dtype", [F8E4M3, F8E5M2], ids=str)
def test_conversion_of_floats_of_a_byte_equals_ml_dtypes(dtype: DType) -> None:
    codes = np.arange(2**8, dtype=np.uint8)
    values = codes.view(dtype.numpy).astype(np.float32)
    np.testing.assert_array_equal(from_memory(codes, dtype), values)
    finite = np.sort(values[np.isfinite(values)])
    middle = (finite[1:] + finite[:-1]) / 2
    bits = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    edges = [np.nextafter(middle, np.float32(side)) for side in (-np.inf, np.inf)]
    ends = np.float32([448, 463, 464, 465, 480, 57344, 61439, 61440, 65536, np.inf, 0.0, 2.0**-140])
    numbers = np.concatenate([bits, values, middle, *edges, ends, -ends])
    with np.errstate(invalid="ignore", over="ignore"):
        want = numbers.astype(dtype.numpy).astype(np.float32)
    got = from_memory(to_memory(numbers, dtype), dtype)
    np.testing.assert_array_equal(got, want)
    there = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(want[there]))


def test_a_numpy_type_without_counterpart_is_named() -> None:
    with pytest.raises(KeyError, match="complex64"):
        from_numpy(np.dtype(np.complex64))


def test_tf32_is_the_nearest_of_its_numbers() -> None:
    """In steps of 2⁻¹⁰ between 1 and 2; a number half way goes away from 0, what is no number stays."""
    step = 2.0**-10
    of = {0.0: 0.0, 1.0: 1.0, 1 + 0.49 * step: 1.0, 1 + 0.5 * step: 1 + step, -1 - 0.5 * step: -1 - step}
    of |= {
        2 - step / 2: 2.0,
        3e38: float.fromhex("0x1.c38p127"),
        float(np.finfo(np.float32).max): np.inf,
        np.inf: np.inf,
    }
    for kind in (np.float32, np.float64):
        for value, want in of.items():
            if kind is np.float32 or value != np.finfo(np.float32).max:
                assert round_to_tf32(np.asarray(value, kind)) == want, (value, kind)
        assert np.isnan(round_to_tf32(np.asarray([np.nan, -np.nan], kind))).all()


def test_tf32_leaves_halves_as_they_are() -> None:
    every = np.arange(2**16, dtype=np.uint16)
    for values in (widen_bf16(every), every.view(np.float16).astype(np.float32)):
        normal = values[np.isfinite(values)]
        np.testing.assert_array_equal(round_to_tf32(normal), normal)
