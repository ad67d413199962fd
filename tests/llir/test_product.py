"""Which kernels are matrix products, and that the product found is what the kernel computes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.dtype import BF16, F16, F32, F64, I8, I32
from lumi.field.index import index
from lumi.field.term import Bin, Const, Pos
from lumi.llir.check import check
from lumi.llir.epilogue import Function
from lumi.llir.kernel import Kernel, Load, Loop, Map, Statement, Store
from lumi.llir.product import Product, find
from tests.llir.products import EPILOGUES, Spec, compute, memory, mixed

SIZES = {"g": 3, "m": dim.var("m"), "n": 6, "k": 10}
TYPES = (
    (F32, F32, F32),
    (BF16, F32, BF16),
    (BF16, F32, F32),
    (F16, F32, F16),
    (F64, F64, F64),
    (I8, I32, I32),
)


def assert_found(spec: Spec, values: dict[str, int], seed: int = 0) -> Product:
    kernel = spec.kernel
    found = find(kernel)
    assert found is not None
    want = memory(kernel, values, seed)
    got = {name: array.copy() for name, array in want.items()}
    interpret.run(kernel, want, values)
    compute(found, got, values)
    np.testing.assert_array_equal(got["R"], want["R"])
    return found


@pytest.mark.parametrize(("dtype", "total", "stored"), TYPES, ids=str)
@pytest.mark.parametrize("batch", ["", "g"])
def test_product_of_every_type_is_found(dtype, total, stored, batch: str) -> None:  # type: ignore[no-untyped-def]
    for a, b in itertools.product(("mk", "km"), ("nk", "kn")):
        spec = Spec(SIZES, batch + a, batch + b, batch + "mn", dtype, total, stored)
        found = assert_found(spec, {"m": 5})
        assert found.row_major() is not None
        assert found.is_plain


@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize(("dtype", "stored"), [(F32, F32), (BF16, BF16), (F16, F32)], ids=str)
def test_epilogue_is_found(epilogue: str, dtype, stored) -> None:  # type: ignore[no-untyped-def]
    found = assert_found(Spec(SIZES, dtype=dtype, stored=stored, epilogue=epilogue), {"m": 4})
    words = epilogue.split()
    assert (found.residual is not None) == ("residual" in words or "subtracted" in words)
    assert (found.bias is not None) == ("bias" in words)
    assert (found.function is Function.RELU) == ("relu" in words or "greater" in words)
    assert found.alpha == (0.5 if words[0] == "scaled" else 1)


layouts = st.permutations("gmk"), st.permutations("gnk"), st.permutations("gmn")
gaps = st.dictionaries(st.sampled_from("ABCDR"), st.tuples(st.integers(0, 2), st.integers(0, 3)))


@settings(max_examples=60, deadline=None)
@given(*layouts, st.sampled_from(EPILOGUES), st.booleans(), gaps, st.integers(1, 6), st.integers(0, 99))
def test_any_layout_is_computed_as_the_kernel_computes_it(  # type: ignore[no-untyped-def]
    a, b, out, epilogue, loop, gap, m, seed
) -> None:
    spec = Spec(SIZES, "".join(a), "".join(b), "".join(out), epilogue=epilogue, loop=loop, gaps=gap)
    found = assert_found(spec, {"m": m}, seed)
    rows = found.row_major()
    if rows is not None:
        kernel = spec.kernel
        want, got = (memory(kernel, {"m": m}, seed) for _ in range(2))
        compute(found, want, {"m": m})
        compute(rows, got, {"m": m})
        np.testing.assert_array_equal(got["R"], want["R"])
        assert rows.columns.out == 1


@pytest.mark.parametrize("wide", ["a", "b"])
def test_product_of_f32_and_bf16_is_found(wide: str) -> None:
    kernel = mixed(Spec({"m": 5, "n": 4, "k": 3}), wide)
    found = find(kernel)
    assert found is not None
    assert (found.a.dtype, found.b.dtype) == ((F32, BF16) if wide == "a" else (BF16, F32))
    want = memory(kernel, {}, 0)
    got = {name: array.copy() for name, array in want.items()}
    interpret.run(kernel, want, {})
    compute(found, got, {})
    np.testing.assert_array_equal(got["R"], want["R"])


def test_axes_without_a_gap_between_run_as_one() -> None:
    found = assert_found(Spec({"h": 2, "m": 3, "n": 4, "k": 5}, "hmk", "nk", "hmn"), {})
    assert (found.batch, found.rows.size) == ((), 6)


def test_axes_with_a_gap_between_are_a_batch_that_shares_a_factor() -> None:
    found = assert_found(Spec({"h": 2, "m": 3, "n": 4, "k": 5}, "mhk", "nk", "hmn"), {})
    assert [(s.size, s.a, s.b) for s in found.batch] == [(2, 5, 0)]


def test_grouped_heads_share_a_factor() -> None:
    """A group of queries reads the same keys: the step of its axis is 0 there."""
    found = assert_found(Spec({"h": 2, "g": 3, "m": 3, "n": 4, "k": 5}, "hgmk", "hnk", "hgmn"), {})
    assert [s.size for s in found.batch] == [2]
    assert found.rows.size == 9


def test_two_batches_that_lie_apart_are_kept_apart() -> None:
    found = assert_found(Spec({"g": 2, "h": 3, "m": 3, "n": 4, "k": 5}, "gmhk", "gnhk", "ghmn"), {})
    assert [s.size for s in found.batch] == [2, 3]


def test_rows_that_overlap_have_no_leading_dimension() -> None:
    """Element (m, k) of a sliding window lies at m + k."""
    spec = Spec({"m": 5, "n": 4, "k": 3})
    kernel = spec.kernel
    loop = kernel.body[0]
    assert isinstance(loop, Loop) and isinstance(loop.body[0], Load)
    window = replace(loop.body[0].access, index=(index([("m", 1), ("k", 1)]),), shape=(7,))
    body = (replace(loop.body[0], access=window), *loop.body[1:])
    found = find(replace(kernel, body=(replace(loop, body=body), *kernel.body[1:])))
    assert found is not None
    assert found.row_major() is None


# -- what is no product

M, MN = ("m",), ("m", "n")


def with_store(kernel: Kernel, *extra: Statement, value: str = "e") -> Kernel:
    *body, store = kernel.body
    assert isinstance(store, Store)
    return replace(kernel, body=(*body, *extra, replace(store, value=value)))


def rejected() -> dict[str, Kernel]:
    plain = Spec({"m": 5, "n": 4, "k": 3})
    half = Spec({"m": 5, "n": 4, "k": 3}, dtype=BF16, stored=BF16)
    residual = Spec({"m": 5, "n": 4, "k": 3}, dtype=BF16, stored=BF16, epilogue="residual").kernel
    wide = next(s for s in residual.body if isinstance(s, Load))
    return {
        "types differ": replace_load(half.kernel, "b_", F16),
        "a sum of halves kept in halves": Spec(
            {"m": 5, "n": 4, "k": 3}, dtype=BF16, total=BF16, stored=BF16
        ).kernel,
        "rounded before a residual": with_store(
            half.kernel,
            Map("r", "cast.bf16", ("final",), MN, BF16),
            Map("w", "cast.f32", ("r",), MN, F32),
            Map("e", "mul", ("w", 2.0), MN, F32),
        ),
        "residual of another type": replace(
            residual,
            body=tuple(
                replace(s, access=replace(s.access, dtype=F32), dtype=F32) if s is wide else s
                for s in residual.body
            ),
        ),
        "scaled after a sum": with_store(
            Spec({"m": 5, "n": 4, "k": 3}, epilogue="residual").kernel,
            Map("e", "mul", ("e2", 0.5), MN, F32),
        ),
        "scaled twice": with_store(
            plain.kernel, Map("s", "mul", ("final", 0.1), MN, F32), Map("e", "mul", ("s", 3.0), MN, F32)
        ),
        "times 0": with_store(plain.kernel, Map("e", "mul", ("final", 0.0), MN, F32)),
        "added to itself": with_store(plain.kernel, Map("e", "add", ("final", "final"), MN, F32)),
        "squared": with_store(plain.kernel, Map("e", "mul", ("final", "final"), MN, F32)),
        "a leaky relu": with_store(
            plain.kernel,
            Map("c", "lt", ("final", 0.0), MN, F32),
            Map("l", "mul", ("final", 0.1), MN, F32),
            Map("e", "sel", ("c", "l", "final"), MN, F32),
        ),
        "a greater of 1": with_store(plain.kernel, Map("e", "max", ("final", 1.0), MN, F32)),
        "a matrix times a vector": Spec({"m": 5, "k": 3}, "mk", "k", "m").kernel,
        "an outer product": Spec({"m": 5, "n": 4}, "m", "n", "mn", loop=False).kernel,
        "guards": guarded(plain.kernel),
        "clamped": clamped(plain.kernel),
        "backwards": backwards(plain.kernel),
        "two stores": replace(plain.kernel, body=(*plain.kernel.body, plain.kernel.body[-1])),
    }


def replace_load(kernel: Kernel, var: str, dtype) -> Kernel:  # type: ignore[no-untyped-def]
    loop = kernel.body[0]
    assert isinstance(loop, Loop)
    body = tuple(
        replace(s, access=replace(s.access, dtype=dtype)) if isinstance(s, Load) and s.var == var else s
        for s in loop.body
    )
    return replace(kernel, body=(replace(loop, body=body), *kernel.body[1:]))


def _first(kernel: Kernel, **changes: object) -> Kernel:
    loop = kernel.body[0]
    assert isinstance(loop, Loop) and isinstance(loop.body[0], Load)
    load = replace(loop.body[0], access=replace(loop.body[0].access, **changes))  # type: ignore[arg-type]
    return replace(kernel, body=(replace(loop, body=(load, *loop.body[1:])), *kernel.body[1:]))


def guarded(kernel: Kernel) -> Kernel:
    loop = kernel.body[0]
    assert isinstance(loop, Loop)
    guard = Bin("lt", Pos("k"), Const(2.0))
    return replace(kernel, body=(replace(loop, guards=(guard,)), *kernel.body[1:]))


def clamped(kernel: Kernel) -> Kernel:
    return _first(kernel, clamp=True)


def backwards(kernel: Kernel) -> Kernel:
    return _first(kernel, index=(index([("m", 1)]), index([("k", -1)], 2)))


@pytest.mark.parametrize("name", rejected())
def test_other_kernels_are_no_products(name: str) -> None:
    kernel = rejected()[name]
    check(kernel, name)
    assert find(kernel) is None
