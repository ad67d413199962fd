"""Whole models on the GPU against the same models on the CPU, and what sessions promise."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from lumi import paths
from lumi.compiler import Options, compile_plan
from lumi.errors import Source
from lumi.plan.plan import Plan
from lumi.runtime.session import Session

GEMMA: dict[str, Any] = {
    "batch": 1,
    "layers": 3,
    "width": 64,
    "heads": 4,
    "kv-heads": 2,
    "head-dim": 16,
    "hidden": 96,
    "vocab": 97,
    "context": 64,
    "window": 5,
    "pattern": 3,
}
CONFIGS = {"mlp": {}, "convnet": {}, "gemma3": GEMMA}

pytestmark = pytest.mark.cuda


@cache
def plan_of(model: str, target: str) -> Plan:
    path = paths.data("models") / f"{model}.lumi"
    return compile_plan(Source(path.name, path.read_text()), Options(config=CONFIGS[model], target=target))


def sessions(model: str) -> tuple[Session, Session]:
    return tuple(Session(plan_of(model, t), init="random", seed=3) for t in ("cuda", "cpu"))  # type: ignore[return-value]


def assert_same(got: dict[str, Any], want: dict[str, Any]) -> None:
    assert set(got) == set(want)
    for name, array in want.items():
        y = np.asarray(array, np.float64)
        scale = np.abs(y).max(initial=1e-6)
        np.testing.assert_allclose(np.asarray(got[name], np.float64), y, rtol=0, atol=2e-4 * scale)


def inputs(plan: Plan, dims: dict[str, int], seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    made = {}
    for one in plan.inputs:
        shape = tuple(z if isinstance(z, int) else dims[str(z)] for z in one.shape)
        whole = one.dtype.kind in ("int", "uint")
        made[one.name] = (
            generator.integers(0, 97, shape).astype(one.dtype.numpy)
            if whole
            else generator.standard_normal(shape).astype(one.dtype.numpy)
        )
    return made


@pytest.mark.parametrize("model", ["mlp", "convnet"])
@pytest.mark.parametrize("batch", [1, 2, 5, 64])
def test_model_equals_the_cpu(model: str, batch: int) -> None:
    gpu, cpu = sessions(model)
    given = inputs(gpu.plan, {"batch": batch}, batch)
    assert_same(gpu.run(given), cpu.run(given))


def test_decoder_equals_the_cpu_step_by_step() -> None:
    gpu, cpu = sessions("gemma3")
    past = 0
    for seed, seq in enumerate((7, 1, 1, 5, 1, 20, 1)):
        given = inputs(gpu.plan, {"seq": seq}, seed)
        got, want = (s.run(given, {"past": past}) for s in (gpu, cpu))
        assert_same(got, want)
        past += seq


def test_outputs_outlive_the_next_call() -> None:
    gpu, _ = sessions("mlp")
    first = gpu.run(inputs(gpu.plan, {"batch": 2}, 1))
    kept = {k: v.copy() for k, v in first.items()}
    gpu.run(inputs(gpu.plan, {"batch": 2}, 2))
    for name, array in kept.items():
        np.testing.assert_array_equal(first[name], array)


def test_calls_repeat_bit_for_bit() -> None:
    gpu, _ = sessions("mlp")
    given = inputs(gpu.plan, {"batch": 5}, 1)
    runs = [gpu.run(given) for _ in range(4)]
    for run in runs[1:]:
        for name, array in run.items():
            np.testing.assert_array_equal(array, runs[0][name])


def test_fork_has_states_of_its_own() -> None:
    gpu, _ = sessions("gemma3")
    given = inputs(gpu.plan, {"seq": 4}, 1)
    gpu.run(given, {"past": 0})
    other = gpu.fork()
    a, b = inputs(gpu.plan, {"seq": 1}, 2), inputs(gpu.plan, {"seq": 1}, 3)
    gpu.run(a, {"past": 4})
    want = gpu.run(a, {"past": 5})
    other.run(b, {"past": 4})
    other.run(a, {"past": 4})
    assert_same(other.run(a, {"past": 5}), want)
