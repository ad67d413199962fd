from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lumi.dtype import BF16, DTYPES, DType, from_numpy, round_to_bf16, widen_bf16


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


def test_a_numpy_type_without_counterpart_is_named() -> None:
    with pytest.raises(KeyError, match="complex64"):
        from_numpy(np.dtype(np.complex64))
