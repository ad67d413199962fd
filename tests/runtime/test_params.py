"""Params come from arrays, from initial values or from a seed, in exactly the declared type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lumi.blocks import BLOCKS
from lumi.dtype import BF16, BOOL, F16, F32, I8, I32, U8, DType
from lumi.errors import LumiError
from lumi.plan.plan import Binding
from lumi.runtime.params import Arrays, Random, content
from tests.plan.samples import Array, add_plan


def fill(binding: Binding, arrays: dict[str, Array] | None) -> Array:
    plan = replace(add_plan(), bindings=(binding,))
    return content(plan, None if arrays is None else Arrays(arrays))[binding.param]


@pytest.mark.parametrize(
    ("given", "dtype", "want"),
    [
        (np.array([1.5, -2], np.float64), F32, np.array([1.5, -2], np.float32)),
        (np.array([1.5, -2], np.float32), BF16, np.array([0x3FC0, 0xC000], np.uint16)),
        (np.array([0x3FC0, 0xC000], np.uint16), BF16, np.array([0x3FC0, 0xC000], np.uint16)),
        (np.array([1, 2], np.int8), I8, np.array([1, 2], np.int8)),
    ],
)
def test_floats_convert_and_others_stay(given: Array, dtype: DType, want: Array) -> None:
    found = fill(Binding("w", "w", dtype, (2,)), {"w": given})
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


def test_scalars_stay_scalars() -> None:
    for dtype in (F32, F16, BF16):
        assert fill(Binding("w", "w", dtype, ()), {"w": np.array(2.0, np.float32)}).shape == ()


def test_a_transposed_array_becomes_contiguous() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3).T
    found = fill(Binding("w", "w", F32, (3, 2)), {"w": array})
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, array)


def test_planes_are_arrays_of_their_own() -> None:
    binding = Binding("w#qs", "w", I8, (2, 1, 32), "q8_0", "qs")
    planes = {"w#qs": np.ones((2, 1, 32), np.int8), "w#d": np.ones((2, 1), np.float16)}
    assert fill(binding, planes).shape == (2, 1, 32)


def test_initial_values_fill_only_what_is_missing() -> None:
    binding = Binding("b", "b", F32, (2,), init=3.0)
    np.testing.assert_array_equal(fill(binding, None), [3, 3])
    np.testing.assert_array_equal(fill(binding, {"x": np.zeros(2, np.float32)}), [3, 3])
    np.testing.assert_array_equal(fill(binding, {"b": np.zeros(2, np.float32)}), [0, 0])


@pytest.mark.parametrize(
    ("binding", "arrays", "message"),
    [
        (Binding("w", "w", F32, (2,)), None, "add needs weights: w"),
        (Binding("layer.w", "layer.w", F32, (2,)), {"layers.w": np.zeros(2)}, "the nearest are layers.w"),
        (Binding("w", "w", F32, (2,)), {"w": np.zeros(3)}, r"w has the shape \[3\], the model wants \[2\]"),
        (Binding("w", "w", F32, (2,)), {"w": np.zeros(2, np.int32)}, "w is i32, the model wants f32"),
        (Binding("w", "w", I8, (2,)), {"w": np.zeros(2, np.float32)}, "w is f32, the model wants i8"),
        (Binding("w", "w", F32, (2,)), {"w": np.zeros(2, np.complex64)}, "complex64, which Lumi does not"),
    ],
)
def test_a_fault_is_named(binding: Binding, arrays: dict[str, Array] | None, message: str) -> None:
    with pytest.raises(LumiError, match=message):
        fill(binding, arrays)


def test_random_params_depend_on_seed_and_key_alone() -> None:
    one, same, other = Random(1), Random(1), Random(2)
    np.testing.assert_array_equal(one.array("a", F32, (4, 9)), same.array("a", F32, (4, 9)))
    assert not np.array_equal(one.array("a", F32, (4, 9)), other.array("a", F32, (4, 9)))
    assert not np.array_equal(one.array("a", F32, (4, 9)), one.array("b", F32, (4, 9)))


@pytest.mark.parametrize("dtype", [F32, F16, BF16, I32, I8, U8, BOOL])
def test_random_params_have_the_type_and_shape(dtype: DType) -> None:
    for shape in [(), (0,), (3, 4)]:
        array = Random().array("a", dtype, shape)
        assert (array.dtype, array.shape) == (dtype.storage, shape)


def test_random_planes_are_small() -> None:
    scale = Random().plane("w", BLOCKS["q8_0"], "d", (50, 2))
    assert scale.dtype == np.float16
    assert 0 < float(scale.astype(np.float64).mean()) < 0.05
