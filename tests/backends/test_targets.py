"""Which target is compiled for, and plans that run on another target than theirs."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from lumi import paths
from lumi.backends import targets
from lumi.compiler import Options, Stage, compile_model, compile_plan
from lumi.errors import LumiError, Source
from lumi.plan.check import check
from lumi.plan.plan import Plan
from lumi.runtime.session import Session
from lumi.search.settings import Settings

STEPS = ((0, 5), (5, 1), (6, 1), (7, 4))
CONFIG = {
    "layers": 2,
    "width": 32,
    "heads": 4,
    "kv-heads": 2,
    "hidden": 48,
    "vocab": 97,
    "context": 64,
    "dtype": "f32",
}


@cache
def plan(target: str) -> Plan:
    path = paths.data("models") / "llama.lumi"
    settings = Settings(evaluations=60)
    return compile_plan(
        Source(path.name, path.read_text()), Options(config=CONFIG, target=target, settings=settings)
    )


def logits(used: Plan) -> list[np.ndarray]:
    session, generator = Session(used, init="random"), np.random.default_rng(0)
    return [
        session(tokens=generator.integers(0, 97, (1, seq)).astype(np.int32), past=past)["logits"]
        for past, seq in STEPS
    ]


@pytest.mark.parametrize(
    ("made", "target"), [("cuda", "cpu"), pytest.param("cpu", "cuda", marks=pytest.mark.cuda)]
)
def test_plan_runs_on_another_target(made: str, target: str) -> None:
    moved = targets.retarget(plan(made), target)
    assert moved.target == target
    for found, want in zip(logits(moved), logits(plan(target)), strict=True):
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize(("made", "target"), [("cuda", "cpu"), ("cpu", "cuda")])
def test_moved_plan_is_sound_and_has_the_targets_code(made: str, target: str) -> None:
    moved = targets.retarget(plan(made), target)
    check(moved)
    backend = targets.open_backend(target)
    for kernel in moved.kernels:
        assert kernel.schedule == backend.schedules(kernel.kernel)[0]
    assert ("__global__" in moved.kernels[0].source) == (target == "cuda")


def test_plan_for_its_own_target_stays_as_it_is() -> None:
    assert targets.retarget(plan("cpu"), "cpu") is plan("cpu")


def test_unknown_target_is_refused() -> None:
    with pytest.raises(LumiError, match="does not compile for 'abacus'"):
        targets.retarget(plan("cpu"), "abacus")


def test_kernel_that_does_not_fit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> str:
        raise ValueError("96 KiB are too little")

    monkeypatch.setattr("lumi.backends.cuda.emit.emit", refuse)
    with pytest.raises(LumiError, match="k0_embed does not fit cuda: 96 KiB") as caught:
        targets.retarget(plan("cpu"), "cuda")
    assert caught.value.hint == "compile the model with --target cuda"


def test_default_target_is_what_is_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LUMI_TARGET", raising=False)
    monkeypatch.setattr(targets, "missing", lambda: "there is no NVIDIA GPU")
    assert targets.default_target() == "cpu"
    monkeypatch.setattr(targets, "missing", lambda: "")
    assert targets.default_target() == "cuda"
    monkeypatch.setenv("LUMI_TARGET", "cpu")
    assert targets.default_target() == "cpu"


def test_unknown_way_of_rounding_is_refused() -> None:
    with pytest.raises(LumiError, match="no way of rounding 'f8'"):
        targets.open_backend("cuda", relaxed=("f8",))


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_barred_templates_are_left_out_but_for_the_one_that_works_for_all(target: str) -> None:
    kernels = [k.kernel for k in plan(target).kernels]
    every = [targets.open_backend(target).schedules(k) for k in kernels]
    barred = {s.template for schedules in every for s in schedules[1:]}
    assert barred
    fewer = targets.open_backend(target, barred=barred)
    assert [list(fewer.schedules(k)) for k in kernels] == [[schedules[0]] for schedules in every]


def test_rules_can_be_left_out() -> None:
    source = Source(
        "scaled", "(defmodel scaled [(x f32 [8 64]) (s f32 [8 1])]\n  (reduce-sum (* x s) :axis 1))\n"
    )
    fired = [
        {
            r.name
            for e in compile_model(source, Options(without=without), Stage.EGRAPH).egraphs.values()
            for r in e.rules
        }
        for without in ((), ("rs-use", "mul-one-right"))
    ]
    assert {"pull-factor", "mul-one-right", "tile"} <= fired[0]
    assert "tile" in fired[1] and not fired[1] & {"pull-factor", "mul-one-right"}
