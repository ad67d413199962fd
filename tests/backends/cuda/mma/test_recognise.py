"""What tensor cores compute, and why they do not compute other kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi.backends.cuda.mma.form import Computed, RefusalError, Stored
from lumi.backends.cuda.mma.known import look
from lumi.backends.cuda.mma.plan import plan
from lumi.backends.cuda.mma.recognise import recognise
from lumi.dtype import BF16, F16
from lumi.llir.kernel import Kernel
from tests.backends.cpu.kernels import matmul
from tests.backends.cuda.kernels import plan_of, read
from tests.backends.cuda.mma.forms import batched, cascade, chunked, gated_pair, product, two_summed


def test_product_has_rows_and_columns_that_are_stored_side_by_side() -> None:
    form = recognise(product("seq", 72, 64, epilogue="gated"))
    assert (form.row, form.column, form.outer, form.dtype) == ("m", "n", (), BF16)
    (found,) = form.products
    assert isinstance(found.a, Stored)
    assert (found.a.load.access.buffer, found.b.load.access.buffer, found.summed) == ("A", "B", "k")


def test_products_of_one_sum_share_their_factor() -> None:
    (sums,) = recognise(gated_pair(64, 64, 64)).sums
    first, second = sums.products
    assert first.a == second.a
    assert first.b != second.b


def test_axes_of_both_factors_and_groups_are_outer() -> None:
    assert recognise(batched(3, 2, "seq", 72, 64)).outer == ("h", "g")


def test_sum_over_two_axes_runs_in_tiles_of_one() -> None:
    (found,) = recognise(two_summed(70, 80, 3, 40)).products
    assert (found.summed, found.outer_summed) == ("d", ("h",))


def test_sum_over_chunks_is_a_sum() -> None:
    (sums,) = recognise(chunked(64, 128, 1000, 8)).sums
    assert sums.loop is not None
    assert sums.loop.chunk == "c"


def test_neighbours_may_lie_along_rows() -> None:
    (found,) = recognise(product(64, 64, 64, "k m", "n k")).products
    assert isinstance(found.a, Stored)
    assert (found.a.along, found.b.along) == ("m", "k")


def test_cascade_carries_rows_and_sums() -> None:
    form = recognise(cascade("causal"))
    found = form.cascade
    assert found is not None
    assert (form.row, form.column, form.outer, found.axis) == ("i", "e", ("h", "g"), "j")
    assert [c.previous for c in found.rows] == ["m0", "l0"]
    (update,) = found.updates
    assert (update.carry.previous, update.factor) == ("o0", "r")
    assert update.product.a == Computed("w", exact=False, bounded=True)


@pytest.mark.parametrize(
    ("kernel", "reason"),
    [
        (plan_of("softmax").steps[0].kernel, "it multiplies nothing"),
        (matmul({"m": 64, "n": 64, "k": 64}, "mk", "nk", {"k": 16}), "no factor is of halves"),
        (matmul({"m": 64, "n": 64, "k": 64}, "mk", "nk", {"k": 16}, BF16), "it sums in bf16"),
        (product(1, 64, 64), "its products have no rows and columns"),
        (read("attention_chunks"), "a product lacks the rows or the columns of the others"),
    ],
    ids=["no product", "f32", "sums in halves", "one row", "row of one position"],
)
def test_refusals_say_why(kernel: Kernel, reason: str) -> None:
    with pytest.raises(RefusalError, match=reason):
        recognise(kernel)


def test_what_is_known_of_a_kernel_is_not_said_of_another() -> None:
    kernel = product(64, 64, 64)
    assert look(kernel).form is not None
    assert look(kernel) is look(kernel)
    assert look(replace(kernel, axes={**kernel.axes, "m": 1})).form is None


def test_sum_inside_a_loop_must_be_short() -> None:
    with pytest.raises(RefusalError, match="a sum inside its loop is long"):
        recognise(cascade("full", 1024, 64))


def test_axes_that_only_divide_are_no_lines() -> None:
    kernel = product(64, 64, 64)
    with pytest.raises(RefusalError, match="its products have no rows and columns"):
        recognise(replace(kernel, grid=("m",), resident=("n",)))


@pytest.mark.parametrize(
    ("kernel", "options", "reason"),
    [
        (cascade(t="f16", out="f16", rounded=True), {"rows": 72}, "its warps do not share its tile"),
        (cascade(out="f32"), {"parts": 1}, "a computed factor of bf16 cannot be 1 halves"),
        (cascade("capped", t="f16", out="f16"), {"parts": 3}, "a computed factor of f16 cannot be 3 halves"),
        (product(64, 64, 64), {"stages": 32}, "bytes of shared memory"),
        (product(64, 64, 64), {"rows": 256, "columns": 256, "wide": 2}, "registers"),
    ],
    ids=["rows", "rounding of f32", "parts of f16", "shared memory", "registers"],
)
def test_numbers_that_do_not_fit_are_refused(kernel: Kernel, options: dict[str, int], reason: str) -> None:
    with pytest.raises(RefusalError, match=reason):
        plan(recognise(kernel), options)


def test_halves_of_few_exponents_hold_what_is_between_zero_and_one() -> None:
    form = recognise(cascade(t="f16", out="f16"))
    assert form.dtype == F16
    assert [c.bounded for c in form.computed] == [True]
