"""Factors whose lines lie anywhere: what is known of where they are read, and which products have them."""

from __future__ import annotations

import pytest

from lumi.backends.cuda.mma import placed
from lumi.backends.cuda.mma.form import Form, RefusalError, Stored
from lumi.backends.cuda.mma.recognise import recognise
from lumi.errors import Source
from lumi.llir.parse import parse

CONVOLVED = """
(kernel
  :buffers [(X [2 9 14 {channels}] bf16) (W [16 3 {channels}] bf16) (R [2 9 14 16] bf16)]
  :axes [(a 2) (b 9) (c 14) (d 16) (e {channels}) (f 3)]
  :grid [(a 1) (b 1) (c 14) (d 16)]
  :tiles [(e 8) (f 3)]
  (let [q (position c)]
    (for [e f] :when [(lt 0.0 (add (position c) (position f)))] :carry [[v0 v sum f32 [a b c d]]]
      (let [r (position f)
            t (add q r)
            {condition}
            x (load (X [a b (+ c f -1) e] [2 9 14 {channels}] bf16 :clamp))
            x1 (cast.f32 x)
            y (sel u x1 {other})
            w (load (W [d f e]))
            w1 (cast.f32 w)
            z (dot [e f] y w1)
            n (add v0 z)]
        (next n)))
    (let [o (cast.bf16 v)]
      (store (R [a b c d]) o))))
"""

BOTH = "u1 (lt 0.0 t) u2 (lt t 15.0) u (and u1 u2)"


def form(condition: str = BOTH, other: str = "0.0", channels: int = 8) -> Form:
    text = CONVOLVED.format(condition=condition, other=other, channels=channels)
    return recognise(parse(Source("convolved", text)))


def image(found: Form) -> Stored:
    (product,) = found.products
    (factor,) = (f for f in (product.a, product.b) if isinstance(f, Stored) and f.load.access.buffer == "X")
    return factor


def test_rows_of_all_images_are_one_axis() -> None:
    found = form()
    factor = image(found)
    assert (found.row, found.column, factor.along) == ("a_b_c", "d", "e")
    assert factor.placed and not factor.scattered and factor.seen is not None


@pytest.mark.parametrize(
    ("condition", "clamped"),
    [
        (BOTH, False),
        ("u0 (lt t 1.0) u1 (not u0) u2 (lt 14.0 t) u3 (not u2) u (and u1 u3)", False),
        ("u (lt 0.0 t)", True),
        ("u (lt t 15.0)", True),
        ("u1 (lt 0.0 t) u2 (lt t 16.0) u (and u1 u2)", True),
        ("u1 (lt 0.0 r) u2 (lt t 15.0) u (and u1 u2)", False),
    ],
    ids=["inside", "not outside", "below only", "above only", "one too many", "by the window"],
)
def test_what_is_known_to_be_inside_is_not_clamped(condition: str, clamped: bool) -> None:
    found = form(condition)
    assert placed.exact(found.program, image(found)).clamp == clamped


def test_what_is_not_0_elsewhere_is_no_factor() -> None:
    with pytest.raises(RefusalError, match="computed"):
        form(other="1.0")


def test_conditions_of_single_elements_are_looked_up_with_them() -> None:
    factor = image(form("p (position e) u1 (lt p t) u2 (lt t 15.0) u (and u1 u2)"))
    assert factor.scattered
