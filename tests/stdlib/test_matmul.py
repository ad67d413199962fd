"""einsum against numpy's, on ranks 1 to 4 and with operands that are one tensor."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lumi.dtype import round_to_tf32
from tests.language import Array, run

EPS = float(np.finfo(np.float32).eps)
SIZES = {"b": 2, "h": 3, "i": 4, "j": 5, "k": 6, "d": 7}


def operand(axes: str, seed: int) -> Array:
    shape = [SIZES[a] for a in axes]
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    "equation",
    [
        "k,k->",
        "ik,k->i",
        "ik,jk->ij",
        "bik,bkj->bij",
        "bhid,bhjd->bhij",
        "bhij,bhjd->bihd",
        "ij,ij->j",
        "i,j->ji",
        "ik,k->ki",
        "ij->ji",
        "bij->i",
        "ik,kj,jd->id",
        "bi,ik,bk->b",
        "i,j,k->",
        "hd,bhd,hd->b",
    ],
)
def test_einsum_equals_numpy(equation: str) -> None:
    left, right = equation.split("->")
    axes = left.split(",")
    arrays = {f"x{n}": operand(a, n) for n, a in enumerate(axes)}
    pairs = "  ".join(f"x{n} [{' '.join(a)}]" for n, a in enumerate(axes))
    found = run(f"(einsum {pairs} -> [{' '.join(right)}])", **arrays)
    wide = [a.astype(np.float64) for a in arrays.values()]
    want = np.einsum(equation, *wide)
    scale = np.einsum(equation, *[np.abs(a) for a in wide])
    np.testing.assert_array_less(np.abs(found - want), 8 * 42 * EPS * scale + EPS)


def test_product_of_a_tensor_with_itself_is_no_matmul() -> None:
    x = operand("ij", 0)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(run("(einsum x [i j] x [i j] -> [i])", x=x), (wide**2).sum(1), rtol=60 * EPS)
    np.testing.assert_allclose(run("(einsum x [i j] x [k j] -> [i k])", x=x), wide @ wide.T, atol=60 * EPS)


def test_ellipsis_broadcasts_like_matmul() -> None:
    a, b = np.ones((5, 1, 2, 3), np.float32), np.ones((4, 3, 6), np.float32)
    found = run("(einsum a [... m k] b [... k n] -> [... m n])", a=a, b=b)
    np.testing.assert_array_equal(found, np.matmul(a, b))


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_halves_are_rounded_once(dtype: type) -> None:
    a, b = operand("ik", 1).astype(dtype), operand("kj", 2).astype(dtype)
    found = run("(matmul a b)", a=a, b=b)
    assert found.dtype == dtype
    want = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    unit = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(found.astype(np.float64), want, rtol=unit, atol=unit / 8)


def test_integers_wrap_like_the_dtype() -> None:
    a = np.full((2, 3), 100, np.int8)
    np.testing.assert_array_equal(run("(matmul a b)", a=a, b=a.T.copy()), np.matmul(a, a.T))


AXES = st.lists(st.sampled_from(sorted(SIZES)), unique=True, max_size=4)


@given(AXES, AXES, AXES)
@settings(max_examples=60, deadline=None)
def test_any_equation_of_two_operands_equals_numpy(a: list[str], b: list[str], out: list[str]) -> None:
    kept = [axis for axis in out if axis in a or axis in b]
    equation = f"{''.join(a)},{''.join(b)}->{''.join(kept)}"
    x, y = operand("".join(a), 1), operand("".join(b), 2)
    found = run(f"(einsum x [{' '.join(a)}] y [{' '.join(b)}] -> [{' '.join(kept)}])", x=x, y=y)
    want = np.einsum(equation, x.astype(np.float64), y.astype(np.float64))
    scale = np.einsum(equation, np.abs(x), np.abs(y))
    np.testing.assert_array_less(np.abs(found - want), 2000 * EPS * scale + EPS)


@given(st.permutations(list("abcd")), st.integers(0, 3), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_rearrange_undoes_itself(order: list[str], first: int, second: int) -> None:
    low, high = sorted((first, second))
    merged = f"{' '.join(order[:low])} ({' '.join(order[low:high])}) {' '.join(order[high:])}"
    x = np.arange(2 * 3 * 4 * 5, dtype=np.int32).reshape(2, 3, 4, 5)
    sizes = " ".join(
        f":{axis} {size}" for axis, size in zip("abcd", x.shape, strict=True) if axis in order[low:high]
    )
    there = run(f"(rearrange x [a b c d] -> [{merged}])", x=x)
    moved = x.transpose(["abcd".index(axis) for axis in order])
    np.testing.assert_array_equal(there.ravel(), moved.ravel())
    back = run(f"(rearrange x [{merged}] -> [a b c d] {sizes})", x=there)
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_factors_are_rounded_to_the_precision(dtype: type) -> None:
    """Those of each product, what was multiplied before too; halves have no digits to lose."""
    x, y, z = (operand("ij", n).astype(dtype) for n in range(3))
    product = "(einsum x [i j] y [i j] z [i j] -> [i] :precision {})"
    rounded, plain = (run(product.format(p), wide=True, x=x, y=y, z=z) for p in ("tf32", "nil"))
    a, b, c = (round_to_tf32(v.astype(np.float64)) for v in (x, y, z))
    want = (round_to_tf32(a * b) * c).sum(1)
    if dtype is np.float32:
        np.testing.assert_allclose(rounded, want, rtol=1e-12)
        assert np.abs(rounded - plain).max() > 1e-5
    else:
        np.testing.assert_allclose(rounded, want, atol=2.0**-8 * np.abs(want).max())


@pytest.mark.parametrize(
    ("precise", "plain"),
    [
        ("(matmul x w :precision tf32)", "(matmul (tf32 x) (tf32 w))"),
        ("(dot x x :precision tf32)", "(dot (tf32 x) (tf32 x))"),
        ("(outer v v :precision tf32)", "(outer (tf32 v) (tf32 v))"),
        ("(conv1d i k :precision tf32)", "(conv1d (tf32 i) (tf32 k))"),
        ("(conv2d j l :precision tf32)", "(conv2d (tf32 j) (tf32 l))"),
    ],
)
def test_products_take_a_precision(precise: str, plain: str) -> None:
    shapes = {"x": (3, 4), "w": (4, 5), "v": (6,), "i": (1, 2, 7), "k": (3, 2, 2)}
    shapes |= {"j": (1, 2, 5, 5), "l": (3, 2, 2, 2)}
    generator = np.random.default_rng(0)
    given = {
        n: generator.standard_normal(s).astype(np.float32) for n, s in shapes.items() if f" {n}" in plain
    }
    np.testing.assert_array_equal(run(precise, **given), run(plain, **given))
