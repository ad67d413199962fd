"""Several axes as one: the same results, by accesses that take the long axis apart where they must."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.errors import Source
from lumi.llir.kernel import Kernel
from lumi.llir.merge import merge
from lumi.llir.parse import parse
from lumi.llir.text import show
from tests.backends.cpu.kernels import random_buffers

WINDOWS = """
(kernel
  :buffers [(X [{a} 5 6 8] f32) (W [4 3 8] f32) (S [6] f32) (R [{a} 5 6 4] f32)]
  :axes [(a {a}) (b 5) (c 6) (d 4) (e 8) (f 3)]
  :grid [(a 1) (b 1) (c 6) (d 4)]
  :tiles [(e 8) (f 3)]
  (let [p (position b) q (position c) s (load (S [c]))]
    (for [e f] :when [(lt 0.0 (add (position c) (position f)))] :carry [[v0 v sum f32 [a b c d]]]
      (let [r (position f)
            t (add q r)
            u (lt 0.0 t)
            x (load (X [a b (+ c f -1) e] [{a} 5 6 8] f32 :clamp))
            y (sel u x 0.0)
            w (load (W [d f e]))
            z (dot [e f] y w)
            n (add v0 z)]
        (next n)))
    (let [p1 (cast.f32 p) v1 (mul v s) v2 (add v1 p1)]
      (store (R [a b c d]) v2))))
"""
"""Sums over windows of rows, with a number for each place in a row, and the number of the row."""


def windows(a: object = 2) -> Kernel:
    return parse(Source("windows", WINDOWS.format(a=a)))


@pytest.mark.parametrize("members", ["a b c", "b c", "a b", "a c"])
@pytest.mark.parametrize("a", [2, "many"])
def test_results_stay_the_same(members: str, a: object) -> None:
    kernel, values = windows(a), {"many": 3}
    merged = merge(kernel, members.split())
    assert merged is not None and "_".join(members.split()) in merged.axes
    want = random_buffers(kernel, values)
    got = {name: array.copy() for name, array in want.items()}
    interpret.run(kernel, want, values)
    interpret.run(merged, got, values)
    np.testing.assert_allclose(got["R"], want["R"], rtol=1e-5, atol=1e-5)


def test_runs_of_memory_are_not_taken_apart() -> None:
    merged = merge(windows(), ["a", "b", "c"])
    assert merged is not None
    assert merged.axes == {"a_b_c": 60, "d": 4, "e": 8, "f": 3}
    text = show(merged)
    assert "(store (R [a_b_c d])" in text and "(S [(mod a_b_c 6)])" in text and ":when" not in text


@pytest.mark.parametrize("members", ["e f", "d e"])
def test_axes_of_loops_are_left_alone(members: str) -> None:
    assert merge(windows(), members.split()) is None


def test_inner_axes_must_have_known_sizes() -> None:
    text = WINDOWS.format(a=2).replace("(b 5)", "(b n)")
    assert merge(parse(Source("windows", text)), ["a", "b"]) is None
