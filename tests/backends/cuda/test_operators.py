"""Every operator on every type it may meet, on the GPU, against the meaning of field terms."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cuda.emit import emit
from lumi.backends.cuda.schedule import DEFAULT
from lumi.dtype import BF16, F16, F32, DType
from lumi.llir.kernel import Kernel, Load, Map, Step, Store
from tests.backends.cpu.kernels import access, assert_equal_runs, elementwise
from tests.backends.cpu.test_operators import CASES, NAMES, check, expected, operands
from tests.backends.cpu.test_tails import KERNELS, PRODUCTS
from tests.backends.cuda.kernels import OnGpu, variants

LENGTHS = (*range(34), 63, 64, 65, 255, 256, 257, 1025)
SIZES = ((1, 1, 1), (5, 9, 33), (17, 4, 8), (3, 40, 64), (33, 65, 130))

pytestmark = pytest.mark.cuda


@pytest.fixture(scope="module")
def on_gpu() -> OnGpu:
    return OnGpu([Step(elementwise(op, a, r, n), DEFAULT) for op, a, r, n in CASES])


@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_operator_equals_the_reference(number: int, on_gpu: OnGpu) -> None:
    op, operand, result, count = CASES[number]
    arrays = operands(op, operand, count)
    length = len(arrays[0])
    held = dict(zip("ABC", arrays, strict=False)) | {"R": np.zeros(length, result.storage)}
    on_gpu.run(number, held, {"n": length})
    check(held["R"], expected(op, operand, result, arrays), result, op)


@pytest.mark.parametrize("half", [BF16, F16], ids=str)
def test_halves_rounded_two_at_once_are_those_rounded_alone(half: DType, size: int = 1 << 19) -> None:
    numbers = np.concatenate(
        [operands(f"cast.{half.name}", F32, 1)[0], np.random.default_rng(0).normal(size=512)]
    )
    numbers = np.resize(numbers, size).astype(np.float32)
    one = elementwise(f"cast.{half.name}", F32, half, 1)
    axes = {"i": size}
    load = Load("v0", access("A", "i", axes, F32), (), ("i",), F32)
    made = Map("r", f"cast.{half.name}", ("v0",), ("i",), half)
    two = Kernel(axes, ("i",), (), {"i": 16}, (load, made, Store(access("R", "i", axes, half), "r", ("i",))))
    assert f"two_{half.name}(" in emit(Step(two, DEFAULT), "kernel").text
    on_gpu, results = OnGpu([Step(one, DEFAULT), Step(two, DEFAULT)]), []
    for number in range(2):
        held = {"A": numbers, "R": np.zeros(size, half.storage)}
        on_gpu.run(number, held, {"n": size} if number == 0 else {})
        results.append(held["R"].view(np.uint16))
    np.testing.assert_array_equal(results[1], results[0])
    assert np.isnan(numbers).any()


@pytest.fixture(scope="module")
def ragged() -> OnGpu:
    return OnGpu([Step(k, DEFAULT) for k in KERNELS.values()])


@pytest.mark.parametrize("number", range(len(KERNELS)), ids=list(KERNELS))
def test_kernel_covers_each_length_exactly(number: int, ragged: OnGpu) -> None:
    kernel = list(KERNELS.values())[number]
    for length in LENGTHS:
        assert_equal_runs(kernel, {"m": 5, "n": length}, ragged, number)
    for height in (0, 1, 3, 4, 17, 100):
        assert_equal_runs(kernel, {"m": height, "n": 9}, ragged, number)


MADE = [(name, s, kernel) for name, _, kernel in PRODUCTS[::3] for s in variants(kernel)]


@pytest.fixture(scope="module")
def products() -> OnGpu:
    return OnGpu([Step(kernel, s) for _, s, kernel in MADE])


@pytest.mark.parametrize("number", range(len(MADE)))
def test_product_of_ragged_sizes(number: int, products: OnGpu) -> None:
    for sizes in SIZES:
        assert_equal_runs(MADE[number][2], dict(zip("mnk", sizes, strict=True)), products, number)
