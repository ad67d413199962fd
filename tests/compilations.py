"""Compilations that tests share, and a session beside the meaning of its graph."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from lumi import dim, paths
from lumi.compiler import Compilation, Options, compile_model
from lumi.errors import Source
from lumi.hlir.graph import Graph
from lumi.hlir.reference import evaluate
from lumi.plan.plan import Plan
from lumi.runtime.params import Random, content
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

Array = np.ndarray[Any, Any]
FIRST = Settings(mode=Mode.NONE)
GEMMA = {
    **{"layers": 3, "width": 32, "heads": 4, "kv-heads": 2, "head-dim": 8, "hidden": 48},
    **{"vocab": 97, "context": 64, "window": 5, "pattern": 3},
}


def source(name: str) -> Source:
    return Source(name, (paths.data("models") / name).read_text())


def compiled(name: str, model: str | None = None, **options: Any) -> Compilation:
    return compile_model(source(name), Options(model=model, settings=FIRST, **options))


@functools.cache
def mlp() -> Compilation:
    return compiled("mlp.lumi")


@functools.cache
def convnet() -> Compilation:
    return compiled("convnet.lumi")


@functools.cache
def gemma(layers: int = 3) -> Compilation:
    return compiled("gemma3.lumi", config=GEMMA | {"layers": layers})


def written(text: str, **options: Any) -> Compilation:
    return compile_model(Source("test.lumi", text), Options(settings=FIRST, **options))


def plan_of(work: Compilation) -> Plan:
    assert work.plan is not None
    return work.plan


def graph_of(work: Compilation) -> Graph:
    return work.variants[-1].graph


class Pair:
    """A session and the reference beside it, with equal params, states and inputs."""

    def __init__(self, work: Compilation) -> None:
        self.plan, self.graph = plan_of(work), graph_of(work)
        self.session = Session(self.plan, init="random", seed=1)
        self.params = content(self.plan, Random(1))
        self.states: Mapping[str, Array] = {}

    def call(self, inputs: Mapping[str, Array], dims: Mapping[str, int], tolerance: float = 2e-5) -> None:
        found = self.session.run(inputs, dims)
        if not self.states:
            self.states = {k: np.zeros_like(v) for k, v in self.session.save_states().items()}
        want = evaluate(self.graph, {**self.params, **self.states, **inputs}, dims)
        self.states = {key: want.get(key, held) for key, held in self.states.items()}
        pairs = {name: (found[name], want[name]) for name in found}
        pairs |= {key: (value, self.states[key]) for key, value in self.session.save_states().items()}
        for name, (have, expected) in pairs.items():
            assert have.shape == expected.shape
            scale = max(1.0, float(np.abs(expected).max(initial=0)))
            np.testing.assert_allclose(have, expected, rtol=0, atol=tolerance * scale, err_msg=name)


def random_inputs(plan: Plan, dims: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    generator, found = np.random.default_rng(seed), {}
    for s in plan.inputs:
        shape = tuple(dim.value(size, dims) for size in s.shape)
        values = generator.standard_normal(shape) if s.dtype.is_float else generator.integers(0, 50, shape)
        found[s.name] = values.astype(s.dtype.storage)
    return found
