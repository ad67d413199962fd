"""Axes of every length from 0 to 33 against tiles and lanes that do not divide them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi import dim
from lumi.dtype import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, DType
from lumi.llir.kernel import Kernel, Load, Step, Store
from tests.backends.cpu.kernels import (
    SCHEDULES,
    C,
    Compiled,
    access,
    assert_equal_runs,
    elementwise,
    matmul,
    reduction,
)

LENGTHS = range(34)
TYPES = (F16, BF16, F32, F64, I8, U8, I32, I64, BOOL)


def kernels() -> dict[str, Kernel]:
    found = {f"mul {t} tile {n}": elementwise("mul", t, t, 2, n) for t in TYPES for n in (1, 13)}
    for dtype in TYPES:
        for op in ("sum", "max", "mul"):
            found[f"{op} {dtype} rows"] = reduction(op, dtype, 12, "j")
            found[f"{op} {dtype} columns"] = reduction(op, dtype, 12, "i")
    return found


KERNELS = kernels()


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return Compiled([Step(k, C) for k in KERNELS.values()])


@pytest.mark.parametrize("number", range(len(KERNELS)), ids=list(KERNELS))
def test_kernel_covers_each_length_exactly(number: int, compiled: Compiled) -> None:
    kernel = list(KERNELS.values())[number]
    for length in LENGTHS:
        assert_equal_runs(kernel, {"m": 5, "n": length}, compiled, number)
    for height in (0, 1, 3, 4, 17):
        assert_equal_runs(kernel, {"m": height, "n": 9}, compiled, number)


def shifted(dtype: DType, by: int) -> Kernel:
    """B1[m n] = B0[m n + by], clamped into the rows of B0."""
    extents = {"m": dim.var("m"), "n": dim.var("n")}
    source = replace(access("B0", "mn", extents, dtype), clamp=True)
    source = replace(source, index=(source.index[0], source.index[1] + by))
    body = (
        Load("a", source, (), ("m", "n"), dtype),
        Store(access("B1", "mn", extents, dtype), "a", ("m", "n")),
    )
    return Kernel(extents, ("m", "n"), (), {"m": 2, "n": 24}, body)


SHIFTED = [shifted(dtype, by) for dtype in TYPES for by in (-9, 3)]


@pytest.fixture(scope="module")
def shifts() -> Compiled:
    return Compiled([Step(kernel, C) for kernel in SHIFTED])


@pytest.mark.parametrize("number", range(len(SHIFTED)))
def test_rows_are_clamped_at_each_length(number: int, shifts: Compiled) -> None:
    for length in LENGTHS:
        assert_equal_runs(SHIFTED[number], {"m": 2, "n": length}, shifts, number)


EXTENTS = {"m": dim.var("m"), "n": dim.var("n"), "k": dim.var("k")}
LAYOUTS = {"rows by rows": ("mk", "nk"), "rows by columns": ("mk", "kn"), "columns by columns": ("km", "kn")}
PRODUCTS = [
    (name, schedule, matmul(EXTENTS, a, b, {"m": tile, "n": tile, "k": 16}))
    for name, (a, b) in LAYOUTS.items()
    for schedule in SCHEDULES
    for tile in (1, 7, 24)
]


@pytest.fixture(scope="module")
def products() -> Compiled:
    return Compiled([Step(kernel, schedule) for _, schedule, kernel in PRODUCTS])


@pytest.mark.parametrize("number", range(len(PRODUCTS)))
def test_matrix_product_is_right_at_ragged_sizes(number: int, products: Compiled) -> None:
    kernel = PRODUCTS[number][2]
    for m, n, k in ((1, 1, 1), (1, 33, 17), (3, 2, 8), (4, 3, 0), (7, 25, 33), (26, 31, 16), (0, 5, 5)):
        assert_equal_runs(kernel, {"m": m, "n": n, "k": k}, products, number)
