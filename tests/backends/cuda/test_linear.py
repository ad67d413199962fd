"""Sums over rows as polynomials."""

from __future__ import annotations

import pytest

from lumi.backends.cuda.linear import Monomial, expand
from lumi.backends.cuda.values import stores, without_arrays
from lumi.errors import Source
from lumi.llir.parse import parse

TEXT = """\
(kernel
  :buffers [(B0 [8] f32) (B1 [4 2] f32) (B2 [4 2 4] f32) (B3 [4 2] f32) (B4 [4] f32)]
  :axes [(r 4) (b 2) (i 4)]
  :grid [(r 1)]
  :resident [b i]
  (let [x (load (B0 [(+ (* 4 b) i)]))
        a (load (B1 [r b]))
        q (load (B2 [r b i]))
        c (load (B3 [r b]))
        %s]
    (store (B4 [r]) out)))
"""


def monomials(body: str) -> set[Monomial] | None:
    program = without_arrays(parse(Source("sum", TEXT % body)))
    assert program is not None
    found = expand(program, stores(program)[0].value, frozenset("r"))
    return None if found is None else set(found)


@pytest.mark.parametrize(
    "body",
    [
        "w (mul a q) out (dot [b i] x w)",
        "s (dot [i] x q) out (dot [b] a s)",
        "s (dot [i] q x) t (mul s a) out (reduce sum [b] t)",
    ],
)
def test_nested_sums_are_one(body: str) -> None:
    found = monomials(body)
    assert found is not None
    (only,) = found
    assert (sorted(map(str, only.factors)), only.negative) == (["a", "q", "x"], False)
    assert only.over == {"b", "i"}


def test_products_are_distributed_over_differences() -> None:
    found = monomials("w (mul a q) v (sub w c) out (dot [b i] x v)")
    over = frozenset("bi")
    assert found == {Monomial(("x", "a", "q"), False, over), Monomial(("x", "c"), True, over)}


def test_what_no_row_touches_is_a_factor() -> None:
    assert monomials("w (mul 2.0 q) out (dot [b i] x w)") == {
        Monomial(("x", 2.0, "q"), False, frozenset("bi"))
    }


def test_too_many_products_are_none() -> None:
    terms = "u (add a c) v (mul u u) w (mul v u) y (mul w q) out (dot [b i] x y)"
    assert monomials(terms) is None


def test_product_of_sums_over_one_axis_is_none() -> None:
    assert monomials("s (dot [i] x q) t (mul s s) out (reduce sum [b] t)") is None
