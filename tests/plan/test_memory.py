"""The memory of a plan: figures that follow from its buffers, and what its calls move."""

from __future__ import annotations

import pytest

from lumi.compiler import Options, compile_plan
from lumi.errors import LumiError
from lumi.plan.memory import VariantMemory, memory
from lumi.plan.plan import Role
from tests.compilations import FIRST, GEMMA, gemma, mlp, plan_of, source, written
from tests.plan.samples import add_plan, counter_plan


def only(found: tuple[VariantMemory, ...]) -> VariantMemory:
    (variant,) = found
    return variant


def test_figures_of_a_plan_made_by_hand() -> None:
    found = memory(add_plan(), {"seq": 3}, {"workspace": 1000})
    assert (found.weights, found.states, found.arena, found.total) == (4, 0, 1536, 4 + 1536 + 1000)
    variant = only(found.variants)
    assert [(b.name, b.most, b.now, b.first, b.last) for b in variant.buffers] == [
        ("x", 512, 256, -1, 1),
        ("%0", 512, 256, 0, 1),
        ("%1", 512, 256, 1, 2),
    ]
    assert (variant.peak, variant.at, variant.ratio, variant.peak_now) == (1536, 1, 1.0, 768)
    assert [(m.kernel, m.read, m.written, m.copies) for m in variant.launches] == [
        ("k0", 16, 12, ""),
        ("k1", 24, 12, ""),
    ]
    assert (variant.read, variant.written) == (40, 24)
    assert found.in_use(variant) == 4 + 768 + 1000
    assert [variant.size(role) for role in Role if role.in_arena] == [512, 512, 512]


def test_a_state_is_told_by_what_a_call_does_to_it() -> None:
    variant = only(memory(counter_plan(), {"seq": 2, "past": 5}).variants)
    (state,) = variant.states
    assert (variant.arena, variant.peak, variant.ratio) == (512, 256, 2.0)
    assert (state.name, state.size, state.read, state.written, state.copied) == ("cache", 256, 64, 8, 0)


def test_dims_not_given_are_as_they_are_hinted() -> None:
    assert only(memory(counter_plan(), {"past": 1}).variants).dims == {"seq": 4, "past": 1}
    assert [v.dims for v in memory(plan_of(mlp())).variants] == [{"batch": 1}, {"batch": 64}]


def test_a_hint_that_there_is_no_room_for_is_lowered() -> None:
    """The cache has 64 rows, and 128 is hinted for what lies before a call."""
    plan = plan_of(gemma())
    assert all(v.dims["past"] + v.dims["seq"] <= 64 for v in memory(plan).variants)
    assert [v.dims for v in memory(plan, {"seq": 7}).variants] == [{"seq": 7, "past": 57}]
    with pytest.raises(LumiError, match=r"a call at seq = 1, past = 64 needs 65 elements along axis"):
        memory(plan, {"seq": 1, "past": 64})


def test_variants_that_no_such_call_runs_are_left_out() -> None:
    plan = plan_of(gemma())
    labels = [v.label for v in memory(plan).variants]
    assert len(labels) > 1
    assert [v.label for v in memory(plan, {"seq": 1}).variants] == labels[:1]
    assert [v.label for v in memory(plan, {"past": 3}).variants] == labels
    assert labels[0] not in [v.label for v in memory(plan, {"seq": 2}).variants]


@pytest.mark.parametrize(("name", "value"), [("sequence", 1), ("seq", 0), ("seq", 101)])
def test_dims_that_cannot_be_are_refused(name: str, value: int) -> None:
    with pytest.raises(LumiError, match=name):
        memory(add_plan(), {name: value})


def test_copies_of_states_are_named() -> None:
    swapped = written(
        """(defmodel swap [(x f32 [2])]
             (let [a (state "a" [2])  b (state "b" [2])  was a]
               (set! a b)
               (set! b was)
               (outputs :y (+ x a))))"""
    )
    variant = only(memory(plan_of(swapped)).variants)
    assert [m.copies for m in variant.launches if m.copies] == ["a → %b.new", "b → a", "%b.new → b"]
    assert {s.name: s.copied for s in variant.states} == {"a": 16, "b": 16}


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("name", ["gemma3.lumi", "llama.lumi"])
def test_caches_are_written_in_place_and_never_copied(name: str, target: str) -> None:
    """A step writes its own row of each cache and reads those up to it; the rest is not touched."""
    config = {k: v for k, v in GEMMA.items() if k not in ("window", "pattern") or name == "gemma3.lumi"}
    options = Options(config={**config, "dtype": "f32"}, settings=FIRST, target=target)
    plan = compile_plan(source(name), options)
    row = 2 * 8 * 4
    for seq, past in ((1, 0), (1, 40), (7, 13)):
        found = memory(plan, {"seq": seq, "past": past})
        assert found.states == 6 * 64 * row
        for variant in found.variants:
            assert not any(m.copies for m in variant.launches)
            assert len(variant.states) == 6
            for state in variant.states:
                assert (state.written, state.copied) == (seq * row, 0)
                assert seq * row <= state.read <= 2 * (past + seq) * row
