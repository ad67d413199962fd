"""Plans within a limit of memory: candidates that would not fit at the largest dims are never taken."""

from __future__ import annotations

import pytest

from lumi.compiler import Compilation, Options, Stage, compile_model
from lumi.errors import LumiError, Source
from lumi.plan.memory import memory
from lumi.search.settings import Mode, Settings
from tests.compilations import Pair, plan_of, random_inputs, source

TEXT = """(defdim n :min 1 :max {most} :hint 64)
(defmodel two [(x f32 [n 64]) (u f32 [512 64]) (v f32 [512 64]) (w f32 [512 512])]
  (let [a (softmax (einsum x [i d]  u [j d]  -> [i j]))
        b (softmax (einsum x [i d]  v [j d]  -> [i j]))
        y (einsum (* a b) [i j]  w [k j]  -> [i k])]
    (outputs :r (reduce-sum y :axis 1) :s (reduce-max (* y (+ a b)) :axis 1))))
"""
TOGETHER = "what is alive at once does not fit memory"
MB = 1 << 20


def compiled(limit: int | None, most: int = 2048, until: Stage = Stage.PLAN) -> Compilation:
    settings = Settings(mode=Mode.MODEL, evaluations=300, growth=1 << 20)
    options = Options(memory=limit, settings=settings, target="cpu")
    return compile_model(Source("two.lumi", TEXT.format(most=most)), options, until)


def refusals(work: Compilation) -> int:
    return sum(found.explanation.refusals.get(TOGETHER, 0) for found in work.found.values())


def seconds(work: Compilation) -> float:
    return sum(found.explanation.modelled for found in work.found.values())


def test_a_slower_plan_is_taken_where_the_fastest_does_not_fit() -> None:
    free, tight = compiled(None), compiled(12 * MB)
    assert memory(plan_of(free)).total > 16 * MB
    assert memory(plan_of(tight)).total <= 12 * MB
    assert refusals(free) == 0 < refusals(tight)
    assert seconds(free) < seconds(tight)
    pair = Pair(tight)
    pair.call(random_inputs(pair.plan, {"n": 5}), {"n": 5})


def test_what_counts_is_the_top_of_the_range_and_not_the_hint() -> None:
    """At the hint of 64 rows all that is stored fits 12 MB many times over."""
    assert refusals(compiled(12 * MB, most=256)) == 0
    assert refusals(compiled(12 * MB, most=2048)) > 0


def test_a_limit_that_no_plan_keeps_names_the_reason() -> None:
    with pytest.raises(LumiError, match=f"region two has no plan: .*{TOGETHER}") as caught:
        compiled(4 * MB)
    assert "--memory" in caught.value.hint


def test_what_the_model_holds_anyway_is_told_before_anything_is_searched() -> None:
    with pytest.raises(LumiError, match=r"two holds 1851392 bytes at its largest dims \(inputs and outputs"):
        compiled(MB, until=Stage.FIELDS)
    held = compiled(None, until=Stage.FIELDS).held()
    assert (held.weights, held.states, held.exchanged) == (0, 0, 1851392)


def test_weights_and_states_are_held_at_the_largest_dims() -> None:
    text = """(defdim b :min 1 :max 8 :hint 2)
    (defmodel m [(x f32 [b 16])]
      (let [s (state "s" [8 16])  w (param "w" [16 16])  n (param "n" [16])]
        (set! s (update-slice s x :axis 0 :start 0))
        (set! n (+ n 1))
        (einsum (+ (slice s :axis 0 :stop b) n) [b i]  w [o i]  -> [b o])))"""
    held = compile_model(Source("m.lumi", text), Options(target="cpu"), Stage.FIELDS).held()
    assert (held.weights, held.states, held.exchanged) == (1024, 512 + 256, 2 * 512)


def test_a_device_with_less_memory_than_usual_is_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from lumi.backends.cpu.backend import CpuBackend

    assert compiled(None, until=Stage.FIELDS).room() == min(1 << 34, CpuBackend().memory)
    monkeypatch.setattr(CpuBackend, "memory", 12 * MB)
    work = compiled(None)
    assert refusals(work) > 0
    assert memory(plan_of(work)).total - work.held().total <= 12 * MB


def test_a_plan_that_needs_more_after_all_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The room is that of one region at a time; what the whole plan needs is known at its end."""
    needed = memory(plan_of(compiled(None))).total
    monkeypatch.setattr(Compilation, "room", lambda self: 1 << 34)
    assert memory(plan_of(compiled(needed))).total == needed
    with pytest.raises(LumiError, match=f"the plan of two needs {needed} bytes, and may have {needed - 1}"):
        compiled(needed - 1)


def test_a_search_comes_from_plans_that_are_too_large_to_one_that_fits() -> None:
    """No plan that a search begins at has room; only when kernels are merged does one."""
    config = {
        "layers": 1,
        "width": 256,
        "heads": 4,
        "kv-heads": 2,
        "hidden": 896,
        "vocab": 128,
        "context": 64,
    }

    def made(limit: int | None, mode: Mode) -> Compilation:
        options = Options(
            config=config, memory=limit, special=False, settings=Settings(mode=mode), target="cpu"
        )
        return compile_model(source("llama.lumi"), options)

    with pytest.raises(LumiError, match=TOGETHER):
        made(20 * 10**6, Mode.NONE)
    found = made(20 * 10**6, Mode.MODEL)
    assert memory(plan_of(found)).total <= 20 * 10**6
    assert refusals(found) > 0
