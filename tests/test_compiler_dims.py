"""Dims from a model's text to what a session answers: every length of a range, wherever it was searched.

Plans are compared with the meaning of their graphs at lengths around the edges of boxes and tiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from lumi.compiler import Compilation, Options, compile_model
from lumi.errors import LumiError, Source
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings
from tests.compilations import Pair, plan_of, random_inputs

TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@cache
def compiled(text: str, target: str, mode: Mode = Mode.MODEL) -> Compilation:
    settings = Settings(mode, evaluations=40)
    return compile_model(Source("dims.lumi", text), Options(target=target, settings=settings))


def check(text: str, target: str, *calls: Mapping[str, int], mode: Mode = Mode.MODEL) -> None:
    """One plan gives at all dims what the model means."""
    pair = Pair(compiled(text, target, mode))
    for number, dims in enumerate(calls):
        pair.call(random_inputs(pair.plan, dims, number), dims)


SIZES = """
(defdim n :min 0 :max 70 :hint [1 17])
(defdim m :min 1 :max 5 :hint 2)

(defmodel sizes [(x f32 [n 6]) (y f32 [m 6]) (z f32 [n m 2])]
  "Sums, products, floors and remainders of dims, as sizes and as numbers."
  (let [joined (concat [x y] :axis 0)
        filled (pad x [[0 (mod (- 0 n) 4)] [0 0]])]
    (outputs :sum (reduce-sum joined :axis 0) :joined (softmax joined :axis 0)
             :flat (+ 1 (reshape z [(* n m) 2]))
             :steps (slice (* x 2) :axis 0 :step 4)
             :filled (+ filled 1) :count (iota (floor-div (+ n 3) 4))
             :number (+ (* n m) (cast (reduce-sum x) i32)))))
"""

LENGTHS = (0, 1, 2, 3, 4, 5, 15, 16, 17, 18, 31, 32, 33, 63, 64, 65, 69, 70)


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_may_be_computed(target: str) -> None:
    check(SIZES, target, *({"n": n, "m": 1 + n % 5} for n in LENGTHS))


BLOCKS = """
(defdim n :min 0 :max 70 :hint 17)

(defmodel blocks [(x f32 [n 6])]
  "Rows in blocks of four, of which the last is filled up: sums of blocks, and each row less its block's."
  (let [rows   (pad x [[0 (mod (- 0 n) 4)] [0 0]])
        blocks (reshape rows [(floor-div (+ n 3) 4) 4 6])
        sums   (reduce-sum blocks :axis 1 :keepdims true)]
    (outputs :sums sums :rest (slice (reshape (- blocks sums) (shape rows)) :axis 0 :stop n))))
"""


@pytest.mark.parametrize("target", TARGETS)
def test_rows_fill_whole_blocks(target: str) -> None:
    check(BLOCKS, target, *({"n": n} for n in LENGTHS))


BROADCAST = """
(defdim n :min 1 :max 9 :hint [1 8])
(defdim m :min 1 :max 9 :hint 4)

(defmodel broadcast [(x f32 [n m 3]) (y f32 [1 m 3]) (z f32 [n 1 3]) (w f32 [m])]
  "Axes of one position, by declaration and by chance, beside others."
  (outputs :all (+ (* x y) z) :by-rows (softmax (* x z) :axis 0) :by-columns (reduce-max (- x y) :axis 1)
           :weighed (* (expand-dims w 1) (reduce-sum x :axis 0)) :outer (einsum x [a b c] w [b] -> [a c])))
"""


@pytest.mark.parametrize("target", TARGETS)
def test_a_dim_of_one_still_broadcasts(target: str) -> None:
    check(BROADCAST, target, *({"n": n, "m": m} for n in (1, 2, 9) for m in (1, 2, 9)))


EDGES = """
(defdim n :min 1 :max 300 :hint [1 4 64])

(defmodel edges [(x f32 [n 24])]
  "A product, what surrounds it, and a sum along the dim."
  (let [y (relu (matmul x (param "w" [24 40])))]
    (outputs :y (softmax y) :total (reduce-sum y :axis 0))))
"""


def edges(work: Compilation) -> Iterator[int]:
    """Lengths at, before and behind every end of a box."""
    for variant in plan_of(work).variants:
        r = variant.dims["n"]
        yield from (n for end in (r.low, r.high) for n in (end - 1, end, end + 1) if 1 <= n <= 300)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("mode", [Mode.NONE, Mode.MODEL])
def test_boxes_meet_without_a_gap(target: str, mode: Mode) -> None:
    work = compiled(EDGES, target, mode)
    if mode is Mode.NONE:
        assert [v.dims["n"].high for v in plan_of(work).variants] == [1, 16, 300]
    check(EDGES, target, *({"n": n} for n in sorted({*edges(work), 16, 17})), mode=mode)


HEADS = """
(defdim seq :min 1 :max 40 :hint 12)

(defmodel heads [(q f32 [1 7 seq 10]) (k f32 [1 7 seq 10]) (v f32 [1 7 seq 10])]
  "Attention of seven heads of width 10: no tile divides anything."
  (sdpa q k v :causal true))
"""


@pytest.mark.parametrize("target", TARGETS)
def test_sizes_that_no_tile_divides(target: str) -> None:
    check(HEADS, target, *({"seq": seq} for seq in (1, 2, 3, 7, 8, 9, 31, 33, 40)))


FAR = """
(defdim at :min 0 :max 69999)

(defmodel far [(x u8 [1 65536])]
  "Rows of a state of 4.6 billion elements: it keeps one, and gives it back with the first."
  (let [rows (state "rows" [70000 65536] :dtype u8)]
    (set! rows (update-slice rows x :axis 0 :start at))
    (outputs :here (+ 0 (slice rows :axis 0 :start at :stop (+ at 1)))
             :first (+ 0 (slice rows :axis 0 :stop 1)))))
"""
"""Only the rows that are written ever take memory."""


@pytest.mark.parametrize("target", TARGETS)
def test_elements_beyond_two_to_the_31st_are_found(target: str) -> None:
    session = Session(plan_of(compiled(FAR, target, Mode.NONE)))
    first = np.full((1, 65536), 7, np.uint8)
    session(x=first, at=0)
    for at in (32767, 32768, 65535, 65536, 69999):
        x = np.random.default_rng(at).integers(0, 256, (1, 65536)).astype(np.uint8)
        found = session(x=x, at=at)
        np.testing.assert_array_equal(found["here"], x)
        np.testing.assert_array_equal(found["first"], first)


WIDE = """
(defmodel wide [(at i32 [1])]
  "Adds 1 to 4.6 billion elements, and gives back the last of each of some rows."
  (let [rows (state "rows" [70000 65536] :dtype u8)]
    (set! rows (+ rows 1))
    (outputs :ends (slice (take rows at) :axis 1 :start 65535))))
"""


def test_no_axis_is_longer_than_32_bits_count() -> None:
    """Rows that every kernel sees as one run of memory stay rows where there are too many elements."""
    plan = plan_of(compiled(WIDE, "cuda"))
    extents = [e for k in plan.kernels for kernel in k.step.kernels for e in kernel.axes.values()]
    assert {70000, 65536} <= set(extents) and all(isinstance(e, int) and e <= 1 << 30 for e in extents)


@pytest.mark.cuda
def test_elements_beyond_two_to_the_31st_are_changed() -> None:
    session = Session(plan_of(compiled(WIDE, "cuda")))
    for count, at in enumerate((0, 32767, 32768, 65535, 69999), 1):
        assert session(at=np.array([at], np.int32))["ends"].tolist() == [[count]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(defmodel m [(x u8 [4587520000])] (+ x 1))", "may have 4587520000 positions"),
        (
            "(defdim n :min 1 :max 4000000000 :hint 9) (defmodel m [(x u8 [n])] (+ x 1))",
            "may have 4000000000 positions",
        ),
    ],
)
def test_an_axis_that_the_gpu_cannot_count_is_refused(text: str, message: str) -> None:
    with pytest.raises(LumiError, match=message) as caught:
        compiled(text, "cuda", Mode.NONE)
    assert caught.value.hint.startswith("cuda counts to 2146435072")
    assert plan_of(compiled(text, "cpu", Mode.NONE)).kernels


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 71, "m": 1}, "n is 71, outside of 0 … 70"),
        ({"n": 3, "m": 0}, "m is 0, outside of 1 … 5"),
    ],
)
def test_dims_outside_of_their_range_are_refused(given: dict[str, int], message: str) -> None:
    pair = Pair(compiled(SIZES, "cpu"))
    with pytest.raises(LumiError, match=message):
        pair.session.run(random_inputs(pair.plan, given))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(reshape x [(floor-div n 4) 4 6])", "reshape"),
        ("(slice x :axis 0 :stop (+ n 1))", "slice"),
        ("(slice x :axis 0 :start 3)", "negative"),
        ("(+ x (reshape x [6 n]))", "shape"),
    ],
)
def test_what_fails_somewhere_in_the_range_is_refused(text: str, message: str) -> None:
    """Though it would work at the hint."""
    with pytest.raises(LumiError, match=message):
        compiled(f"(defdim n :min 0 :max 70 :hint 6) (defmodel m [(x f32 [n 6])] {text})", "cpu", Mode.NONE)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return np.zeros(shape, np.float32)


def test_contradicting_shapes_are_told_apart() -> None:
    session = Pair(compiled(SIZES, "cpu")).session
    with pytest.raises(LumiError, match=r"z is f32 \[3 2 2\], expected f32 \[n m 2\] with m=2, n=4"):
        session(x=array(4, 6), y=array(2, 6), z=array(3, 2, 2))
