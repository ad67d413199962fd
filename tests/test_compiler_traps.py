"""Faults of memory that such systems have had: what is alive is overwritten, freed, or taken for another.

Each test names the trap that it guards against.  Those of caches stand in `test_compiler_states` and
`test_compiler_rings`, those of dims in `test_compiler_dims`.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from lumi.blocks import BlockFormat
from lumi.compiler import Options, compile_plan
from lumi.dtype import DType
from lumi.errors import Source
from lumi.plan.plan import ALIGNMENT, Plan
from lumi.runtime.params import Random
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings
from tests.compilations import FIRST, Array, gemma, mlp, plan_of, random_inputs

TARGETS = ("cpu", pytest.param("cuda", marks=pytest.mark.cuda))

LIVE = """(defdim n :min 1 :max 64 :hint [1 16])
(defmodel live [(x f32 [n 8])]
  "States that are read, written and returned by the kernels that are timed."
  (let [total (state "total" [8])
        last  (state "last" [64 8])
        y     (linear x 8 :name "w")
        was   total]
    (set! total (+ total (reduce-sum y :axis 0)))
    (set! last (update-slice last y :axis 0 :start 0))
    (outputs :y y :was was :new total :x (+ x 0) :all (reduce-sum last :axis 0))))
"""


def plan(target: str, settings: Settings = FIRST) -> Plan:
    return compile_plan(Source("live.lumi", LIVE), Options(target=target, settings=settings))


def inputs(seed: int, n: int) -> dict[str, Array]:
    return {"x": np.random.default_rng(seed).standard_normal((n, 8)).astype(np.float32)}


def answers(session: Session, *calls: tuple[int, int]) -> list[dict[str, Array]]:
    return [session.run(inputs(*call)) for call in calls]


def assert_equal(one: dict[str, Array], other: dict[str, Array], tolerance: float = 0.0) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_allclose(value, other[name], rtol=0, atol=tolerance, err_msg=name)


def aligned(array: Array) -> Array:
    """The same where a device may adopt it as it lies."""
    raw = np.zeros(array.nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    place = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    place[...] = array
    return place


@pytest.mark.parametrize("target", TARGETS)
def test_candidates_that_were_timed_have_spoiled_nothing(target: str) -> None:
    """Trap: candidates are timed with an output over live data, which the plan then computes with.

    The measured plan runs three times from one state, then on new input, and answers as one that nothing
    was measured for.
    """
    measured = Session(plan(target, Settings(mode=Mode.MEASURE, trials=6, seconds=3)), Random(3))
    plain = Session(plan(target), Random(3))
    first = [(0, 5), (1, 1), (2, 16)]
    wanted = answers(plain, *first, (9, 64))
    for _ in range(3):
        measured.reset()
        for have, want in zip(answers(measured, *first), wanted, strict=False):
            assert_equal(have, want, 1e-4)
    assert_equal(answers(measured, (9, 64))[0], wanted[-1], 1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_a_plan_answers_the_same_three_times_and_then_new_input(target: str) -> None:
    """Trap: an output over an input or a temporary is right once, and wrong when it runs again."""
    session = Session(plan(target), Random(3))
    runs = []
    for _ in range(3):
        session.reset()
        runs.append(answers(session, (0, 5), (1, 1)))
    for later in runs[1:]:
        for have, want in zip(later, runs[0], strict=True):
            assert_equal(have, want)
    fresh = Session(plan(target), Random(3))
    session.reset()
    assert_equal(answers(session, (4, 33))[0], answers(fresh, (4, 33))[0])


@pytest.mark.parametrize("target", TARGETS)
def test_what_a_call_returned_never_changes(target: str) -> None:
    """Trap: an output of step 1 is another after step 2, because a graph or a buffer is used again.

    Outputs that are an input, a state before and after the call, and a computed value; on the host and
    where they lie.
    """
    session = Session(plan(target), Random(3))
    kept = session.run(inputs(0, 5))
    held = session.run_on_device(inputs(1, 5))
    before = {name: value.copy() for name, value in kept.items()}
    there = {name: value.numpy().copy() for name, value in held.items()}
    for k in range(2, 40):
        session.run(inputs(k, 5))
    session.reset()
    assert_equal(kept, before)
    assert_equal({name: value.numpy() for name, value in held.items()}, there)


def test_weights_outlive_the_arrays_they_came_from() -> None:
    """Trap: a weight is freed, or packed otherwise, after the first run.

    The session has its own: the caller's arrays change, then go, and answers stay.
    """
    made = plan("cpu")
    arrays = {b.key: aligned(Random(3).array(b.key, b.dtype, b.shape)) for b in made.bindings}
    session = Session(made, arrays)
    (want,) = answers(session, (0, 5))
    for array in arrays.values():
        array.fill(np.nan)
    session.reset()
    assert_equal(answers(session, (0, 5))[0], want)
    arrays.clear()
    gc.collect()
    spoilt = [np.full((8, 8), np.nan, np.float32) for _ in range(64)]
    session.reset()
    assert_equal(answers(session, (0, 5))[0], want)
    assert len(spoilt) == 64


def test_arrays_that_nobody_can_change_are_not_copied() -> None:
    made = plan("cpu")
    (binding,) = made.bindings
    array = aligned(Random(3).array(binding.key, binding.dtype, binding.shape))
    array.flags.writeable = False
    session = Session(made, {binding.key: array})
    assert session._model.params[binding.param].address == array.ctypes.data


@dataclass
class Counting:
    """A source that counts how often each tensor is asked for."""

    source: Random = field(default_factory=Random)
    asked: Counter[str] = field(default_factory=Counter)

    def __contains__(self, key: object) -> bool:
        return key in self.source

    def array(self, key: str, dtype: DType, shape: Sequence[int] | None = None) -> Array:
        self.asked[key] += 1
        return self.source.array(key, dtype, shape)

    def plane(self, key: str, block: BlockFormat, name: str, shape: Sequence[int] | None = None) -> Array:
        self.asked[f"{key}#{name}"] += 1
        return self.source.plane(key, block, name, shape)


@pytest.mark.parametrize("packing", [(), (("*", "q8_0"),)])
def test_weights_are_converted_and_packed_once_however_many_use_them(packing: Any) -> None:
    """Trap: a table that is embedding and output head is loaded twice, or packed again for the second use.

    Every tensor is asked for once: by the first variant that runs, not by others, later calls or forks.
    """
    config = {"layers": 1, "width": 32, "heads": 2, "kv-heads": 1, "head-dim": 16, "hidden": 32}
    config |= {"vocab": 64, "context": 16, "pattern": 1}
    options = Options(config=config, packing=packing, settings=FIRST, target="cpu")
    from tests.compilations import source as model

    made = compile_plan(model("gemma3.lumi"), options)
    counting = Counting()
    session = Session(made, counting)
    for call in ({"tokens": [[1, 2, 3]], "past": 0}, {"tokens": [[4]], "past": 3}):
        session(**call)
        session.fork()(**call)
    assert set(counting.asked.values()) == {1}
    tables = [k for k in counting.asked if k.startswith("model.embed_tokens.weight")]
    assert len(tables) == (2 if packing else 1)


def test_forks_and_sessions_share_no_arena() -> None:
    """Trap: two sessions of one plan compute in the same memory."""
    made = plan_of(mlp())
    one = Session(made, init="random")
    other = one.fork()
    given = [random_inputs(made, {"batch": 5}, seed) for seed in (0, 1)]
    kept = [one.run_on_device(given[0])["out"], other.run_on_device(given[1])["out"]]
    again = [one.run(given[0])["out"], other.run(given[1])["out"]]
    for have, want in zip(kept, again, strict=True):
        np.testing.assert_array_equal(have.numpy(), want)


def test_tied_weights_are_one_buffer_of_every_variant() -> None:
    """Trap: tied embeddings are two copies, of which one is stale."""
    made = plan_of(gemma())
    for variant in made.variants:
        table = [n for n, b in enumerate(variant.buffers) if b.name == "model.embed_tokens.weight"]
        assert len(table) == 1
        assert sum(table[0] in launch.buffers for launch in variant.launches) >= 2
