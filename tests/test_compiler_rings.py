"""Sliding windows keep only their window: caches that are rings against caches of the whole context.

The model is models/gemma3.lumi at a small size, compiled with rings and without (see its `chunk`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from lumi import paths
from lumi.compiler import Compilation, Options, compile_model
from lumi.errors import LumiError, Source
from lumi.hlir.reference import evaluate
from lumi.plan.plan import Plan
from lumi.runtime.params import Random, content
from lumi.runtime.session import Session
from tests.compilations import FIRST, GEMMA, graph_of, plan_of, written
from tests.language import Array

TARGETS = ("cpu", pytest.param("cuda", marks=pytest.mark.cuda))
CHUNK, WINDOW, CONTEXT = 8, 5, 96
CONFIG = GEMMA | {"context": CONTEXT, "window": WINDOW, "last-only": False}
IDS = np.random.default_rng(0).integers(0, 97, CONTEXT).astype(np.int32)
STEPS = [1] * 40
CALLS: dict[str, list[int]] = {
    "whole chunks": [8] * 11,
    "steps": [1] * 60,
    "a prompt shorter than the window, then steps": [3, *STEPS],
    "chunks of any length across the end of the ring": [7, 5, 8, 3, 1, 1, 6, 8, 2, 8, 8, 1, 7, 8],
    "steps between chunks": [8, 1, 8, 1, 1, 8, 1, 1, 1, 8, 8, 1, 5, 1],
}


def small() -> Source:
    text = (paths.data("models") / "gemma3.lumi").read_text()
    return Source("gemma3.lumi", text.replace(":max 512 :hint [1 128]", f":max {CHUNK} :hint [1 4]"))


@cache
def compiled(chunk: int = CHUNK, target: str = "cpu") -> Compilation:
    options = Options(config=CONFIG | {"chunk": chunk}, settings=FIRST, target=target)
    return compile_model(small(), options)


def ring_plan(target: str = "cpu") -> Plan:
    return plan_of(compiled(target=target))


@cache
def wanted() -> Array:
    """The logits of every position, by the meaning of the model with whole caches, in calls of one chunk."""
    work = compiled(chunk=CONTEXT)
    graph, params = graph_of(work), content(plan_of(work), Random(0))
    states: dict[str, Array] = {}
    found = []
    for past in range(0, CONTEXT, CHUNK):
        given = {**params, **states, "tokens": IDS[None, past : past + CHUNK]}
        result = evaluate(graph, given, {"seq": CHUNK, "past": past}, wide=True)
        found.append(result.pop("logits")[0])
        states = result
    return np.concatenate(found)


def compare(session: Session, calls: Sequence[int], past: int = 0) -> None:
    """Run calls of so many tokens; every position's logits are those wanted."""
    want = wanted()
    for count in calls:
        found = session(tokens=IDS[None, past : past + count], past=past)["logits"][0]
        scale = np.abs(want).max()
        np.testing.assert_allclose(found, want[past : past + count], rtol=0, atol=2e-5 * scale)
        past += count


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS.keys())
def test_chunked_and_unchunked_prefill_agree_at_every_position(calls: list[int], target: str) -> None:
    compare(Session(ring_plan(target), init="random"), calls)


def test_a_window_keeps_itself_and_what_a_chunk_needs() -> None:
    rooms = {s.name: s.shape[2] for s in ring_plan().states}
    near = [room for name, room in rooms.items() if name.split(".")[2] in "01"]
    far = [room for name, room in rooms.items() if name.split(".")[2] == "2"]
    assert near == [WINDOW + CHUNK - 1] * 4 and far == [CONTEXT] * 2


def test_what_a_ring_holds_of_no_position_is_never_seen() -> None:
    """Keys are NaN and values are large where no token has been yet."""
    session = Session(ring_plan(), init="random")
    states = session.save_states()
    session.load_states({k: np.full_like(v, np.nan if "k_cache" in k else 1e30) for k, v in states.items()})
    compare(session, CALLS["chunks of any length across the end of the ring"])


def test_a_ring_is_read_by_the_kernel_of_attention_and_never_copied() -> None:
    plan = ring_plan()
    rings = {s.name for s in plan.states}
    for variant in plan.variants:
        kernels = [plan.kernels[launch.kernel] for launch in variant.launches]
        assert "copy" not in {k.scope for k in kernels}
        assert {b.name for b in variant.buffers if b.name in rings} == rings
    source = "\n".join(k.source for k in plan.kernels)
    assert "floor_mod(" in source


def test_a_session_starts_again_in_the_middle_of_a_ring() -> None:
    session = Session(ring_plan(), init="random")
    compare(session, [8, 8, 3])
    session.reset()
    compare(session, [8, 8, 8, 1])


def test_a_chunk_that_is_too_small_for_the_calls_is_refused() -> None:
    with pytest.raises(LumiError, match="a ring of 8 "):
        compile_model(small(), Options(config=CONFIG | {"chunk": 4}, settings=FIRST))


QUEUE = """
(defdim past :min 0 :max 1000)

(defmodel queue [(x f32 [3 2])]
  "The last five of a queue, of which eight are kept."
  (let [kept (state "kept" [8 2])]
    (set! kept (update-slice kept x :start past :wrap true))
    (outputs :last (around kept (- past 2) 5))))
"""


def test_a_queue_goes_round_its_ring_ten_times() -> None:
    session = Session(plan_of(written(QUEUE)))
    seen = np.zeros((2, 2), np.float32)
    for turn in range(27):
        x = np.random.default_rng(turn).standard_normal((3, 2)).astype(np.float32)
        seen = np.concatenate([seen, x])
        np.testing.assert_array_equal(session(x=x, past=3 * turn)["last"], seen[-5:])
