"""States, params and outputs from call to call.

Faults that systems like this one have had, and where each is tested:

| fault | test |
|---|---|
| a plan that overwrites what it reads is right once only | `test_runs_repeat_and_kept_outputs_stay` |
| an output kept from one call changes with the next | `test_runs_repeat_and_kept_outputs_stay` |
| NaN in the unused tail of a cache | `test_nan_in_the_unused_tail_of_a_cache_is_never_seen` |
| NaN in a ring | `test_compiler_rings.test_what_a_ring_holds_of_no_position_is_never_seen` |
| a cache that is shifted, replayed | `test_a_shifted_state_replays_ten_times` |
| a ring that goes round, replayed | `test_compiler_rings.test_a_queue_goes_round_its_ring_ten_times` |
| a write at a place outside of its state | `test_starts_outside_never_leave_the_state` |
| a fork that sees its parent write | `test_states.test_whoever_writes_first_leaves_the_other_as_it_was` |
| a tied weight that is held twice | `test_compiler_models.test_tied_embeddings_are_one_param` |
"""

from __future__ import annotations

import numpy as np
import pytest

from lumi.runtime.session import Session
from tests.compilations import Pair, gemma, mlp, plan_of, random_inputs, written
from tests.runtime.numpy_device import NumpyDevice


def test_runs_repeat_and_kept_outputs_stay() -> None:
    session = Session(plan_of(mlp()), init="random")
    x, y = (np.random.default_rng(k).standard_normal((5, 64)).astype(np.float32) for k in (0, 1))
    first = session(x=x)["out"]
    kept = first.copy()
    for _ in range(3):
        np.testing.assert_array_equal(session(x=x)["out"], kept)
    other = session(x=y)["out"]
    assert not np.array_equal(other, kept)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(session(x=x)["out"], kept)


def test_nan_in_the_unused_tail_of_a_cache_is_never_seen() -> None:
    plan = plan_of(gemma())
    clean, dirty = Session(plan, init="random"), Session(plan, init="random")
    dirty.load_states({k: np.full_like(v, np.nan) for k, v in dirty.save_states().items()})
    ids = np.random.default_rng(3).integers(0, 97, 12).astype(np.int32)
    past = 0
    for seq in (5, 1, 3, 1):
        call = {"tokens": ids[None, past : past + seq], "past": past}
        np.testing.assert_array_equal(dirty(**call)["logits"], clean(**call)["logits"])
        past += seq


def test_a_session_starts_again_after_reset() -> None:
    session = Session(plan_of(gemma()), init="random")
    first = session(tokens=[[3, 4, 5]], past=0)["logits"]
    session(tokens=[[6]], past=3)
    session.reset()
    np.testing.assert_array_equal(session(tokens=[[3, 4, 5]], past=0)["logits"], first)


def test_forks_continue_differently_from_one_prefix() -> None:
    session = Session(plan_of(gemma()), init="random")
    session(tokens=[[3, 4, 5]], past=0)
    fork = session.fork()
    a, b = session(tokens=[[6]], past=3)["logits"], fork(tokens=[[7]], past=3)["logits"]
    assert not np.array_equal(a, b)
    np.testing.assert_array_equal(fork(tokens=[[6]], past=3)["logits"], a)


def test_states_are_written_in_place() -> None:
    plan = plan_of(gemma())
    scopes = {plan.kernels[launch.kernel].scope for v in plan.variants for launch in v.launches}
    assert "copy" not in scopes


COUNTERS = """
(defdim n :min 1 :max 8 :hint 4)

(defmodel counters [(x f32 [n])]
  "A running sum, its predecessor, and two states that change places."
  (let [total (state "total" [1])
        last  (state "last" [1])
        left  (state "left" [2])
        right (state "right" [2])
        old   (+ total 0)
        seen  left]
    (set! last total)
    (set! total (+ total (reduce-sum x :keepdims true)))
    (set! left right)
    (set! right (+ seen 1))
    (outputs :old old :new total :left left)))
"""


def test_states_that_depend_on_each_other_change_together() -> None:
    pair = Pair(written(COUNTERS))
    for n in (1, 3, 8, 2):
        pair.call(random_inputs(pair.plan, {"n": n}, n), {"n": n})


SHIFT = """
(defmodel shift [(x f32 [3])]
  "A queue of the last eight numbers."
  (let [queue (state "queue" [8])]
    (set! queue (concat [(slice queue :axis 0 :start 3) x] :axis 0))
    (* queue 2)))
"""


def test_a_shifted_state_replays_ten_times() -> None:
    pair = Pair(written(SHIFT))
    for k in range(10):
        pair.call({"x": np.arange(3 * k, 3 * k + 3, dtype=np.float32)}, {})


FIT = """
(defmodel fit [(x f32 [4 3]) (y f32 [4])]
  "One step of least squares, and the weights before it."
  (let [w    (param "w" [3])
        held w
        e    (- (reduce-sum (* x w) :axis 1) y)
        g    (reduce-sum (* x (expand-dims e 1)) :axis 0)]
    (set! w (- w (* 0.1 g)))
    (outputs :loss (reduce-sum (* e e)) :before held :after w)))
"""


def test_a_param_that_a_model_changes_begins_with_its_weights() -> None:
    plan = plan_of(written(FIT))
    start = np.array([1, -2, 3], np.float32)
    session = Session(plan, {"w": start})
    generator, w = np.random.default_rng(0), start.astype(np.float64)
    x = generator.standard_normal((4, 3)).astype(np.float32)
    y = generator.standard_normal(4).astype(np.float32)
    for _ in range(5):
        found = session(x=x, y=y)
        np.testing.assert_allclose(found["before"], w, rtol=0, atol=1e-5)
        w -= 0.1 * x.T @ (x @ w - y)
        np.testing.assert_allclose(found["after"], w, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(start, [1, -2, 3])
    session.reset()
    np.testing.assert_array_equal(session(x=x, y=y)["before"], start)


def test_an_output_that_is_the_input_is_a_copy() -> None:
    plan = plan_of(written('(defmodel same [(x f32 [4])] "x." (outputs :x (+ x 0) :twice (* x 2)))'))
    x = np.arange(4, dtype=np.float32)
    found = Session(plan)(x=x)
    found["x"][:] = -1
    np.testing.assert_array_equal(x, np.arange(4))
    np.testing.assert_array_equal(found["twice"], 2 * x)


STARTS = """
(defdim seq :min 1 :max 3 :hint [1 3])

(defmodel starts [(x f32 [3 seq 4]) (at i32 [3]) :wrap false]
  "Rows of a state that begin where the caller says."
  (let [rows (state "rows" [3 8 4])]
    (set! rows (update-slice rows x :axis 1 :start at :wrap wrap))
    (outputs :sums (reduce-sum rows :axis 1))))
"""


@pytest.mark.parametrize("wrap", [False, True])
def test_rows_are_written_where_the_caller_says(wrap: bool) -> None:
    pair = Pair(written(STARTS, config={"wrap": wrap}))
    assert "copy" not in {k.scope for k in pair.plan.kernels}
    for seq, at in ((3, [0, 5, 2]), (1, [5, 7, 0]), (2, [7, 6, 15] if wrap else [6, 0, 4])):
        x = np.random.default_rng(seq).standard_normal((3, seq, 4)).astype(np.float32)
        pair.call({"x": x, "at": np.array(at, np.int32)}, {"seq": seq})


@pytest.mark.parametrize("device", ["compiled", "numpy"])
def test_starts_outside_never_leave_the_state(device: str) -> None:
    plan = plan_of(written(STARTS))
    session = Session(plan, device=NumpyDevice() if device == "numpy" else None)
    session(x=np.ones((3, 3, 4), np.float32), at=np.array([-7, 2**31 - 1, 6], np.int32))
    rows = session.save_states()["rows"]
    assert [np.flatnonzero(r.any(1)).tolist() for r in rows] == [[0, 1, 2], [5, 6, 7], [5, 6, 7]]
