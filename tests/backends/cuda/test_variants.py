"""Attention in its variants, and products with what surrounds them, run on tensor cores and are right.

They are those of `models/variants.lumi`, found at the lengths that people use, where nothing may grow with
the square of a length.  The emulator runs them at a short one; what they give is compared with what the model
means, in f64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from unittest import mock

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.backends.cuda import schedule
from lumi.backends.cuda.mma.form import Form
from lumi.backends.cuda.mma.known import look
from lumi.compiler import Compilation, Options, compile_model
from lumi.dtype import from_memory
from lumi.errors import Source
from lumi.hlir.reference import evaluate
from lumi.llir.kernel import KernelGraph, Step
from lumi.runtime.session import Session
from lumi.search.settings import Settings
from tests.backends.cpu.kernels import random_array
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.mma.forms import cascade
from tests.compilations import source

Array = np.ndarray

TENSOR_CORES = ("mma", "wgmma")
ERROR = 2.0**-7
"""By the norms, of results that are rounded to bf16."""

ATTENTION = {"batch": 1, "heads": 4, "kv-heads": 2, "width": 40}


@dataclass(frozen=True)
class Variant:
    """A model of the file in a configuration, whose `length` is a dim: as it is `used`, and as it is `run`.

    All `steps` of its plan but those that join chunks are on tensor cores, and at most so many.
    """

    entry: str
    config: Mapping[str, int]
    length: str
    used: int
    run: int
    steps: int = 1
    evaluations: int = 20


def attention(entry: str, **more: int) -> Variant:
    return Variant(entry, ATTENTION | more, "seq", 4096, 70)


VARIANTS = {
    "causal": attention("causal"),
    "window": attention("window", window=30),
    "capped": attention("capped"),
    "alibi": attention("alibi"),
    "biased": attention("biased"),
    "lengths": attention("lengths", **{"kv-heads": 1}),
    "documents": attention("documents"),
    "masked": attention("masked"),
    "cross": attention("whole", keys=90),
    "loss": Variant("loss", {"width": 520, "vocab": 264}, "tokens", 16384, 70, 4, 600),
    "gated": Variant("gated", {"width": 72, "hidden": 104}, "tokens", 16384, 70),
    "batched": Variant("batched", {"batch": 2, "inner": 72, "columns": 104}, "rows", 4096, 70),
    "blocked": Variant("blocked", {"rows": 40, "width": 72, "out": 104, "experts": 3}, "blocks", 4096, 3),
    "routed": Variant(
        "routed", {"tokens": 50, "rows": 40, "width": 72, "out": 104, "experts": 3}, "blocks", 4096, 3
    ),
    "sorted": Variant("sorted", {"experts": 3, "width": 72, "out": 104}, "rows", 4096, 70),
    "images": Variant("images", {"size": 7, "channels": 40, "out": 48}, "batch", 4096, 2),
    "convolved": Variant("convolved", {"size": 7, "channels": 40, "out": 48}, "batch", 4096, 2),
}


@cache
def compiled(name: str) -> Compilation:
    """A variant as far as its plan, on a machine without the library of matrix products."""
    one = VARIANTS[name]
    text = source("variants.lumi").text
    entry = re.search(rf"\(defmodel {one.entry} .*?(?=\n\n|\Z)", text, re.DOTALL)
    assert entry is not None
    model = re.sub(rf" :{one.length} \d+", "", entry[0])
    low = 1 if one.length in ("blocks", "batch") else 2
    declared = f"(defdim {one.length} :min {low} :max {2 * one.used} :hint {one.used})\n"
    options = Options(
        model=one.entry,
        config=one.config,
        target="cuda",
        settings=Settings(evaluations=one.evaluations),
    )
    with mock.patch.object(schedule, "find_library", lambda: None):
        return compile_model(Source("variants.lumi", declared + text.replace(entry[0], model)), options)


def graph_of(name: str) -> KernelGraph:
    (found,) = compiled(name).found.values()
    return found.graph


def forms(graph: KernelGraph) -> Iterator[Form]:
    """Those of the steps on tensor cores."""
    for step in graph.steps:
        if step.schedule.template in TENSOR_CORES:
            form = look(step.kernel).form
            assert form is not None
            yield form


@pytest.mark.parametrize("name", VARIANTS)
def test_products_are_on_tensor_cores(name: str) -> None:
    graph, one = graph_of(name), VARIANTS[name]
    found = list(forms(graph))
    assert len(found) == 1 and len(graph.steps) <= one.steps, [str(s.schedule) for s in graph.steps]
    is_attention = one.length == "seq"
    assert (found[0].cascade is not None) == is_attention
    assert (found[0].folded is not None) == (name == "loss")
    if is_attention:
        assert len(found[0].products) == 2


@pytest.mark.parametrize("name", VARIANTS)
def test_memory_grows_with_the_length_and_not_with_its_square(name: str) -> None:
    """What lies between kernels does, and is less than what the model is given."""
    one, graph = VARIANTS[name], graph_of(name)

    def size(length: int) -> int:
        return sum(dim.value(dim.product(t.shape), {one.length: length}) for t in graph.temporaries.values())

    assert size(2 * one.used) <= 2 * size(one.used)
    assert all(one.config.get("vocab", -1) not in t.shape for t in graph.temporaries.values())


@pytest.mark.parametrize("width", [64, 80, 96, 128, 192, 256])
@pytest.mark.parametrize("score", ["full", "causal"])
def test_heads_of_all_widths_have_schedules(width: int, score: str) -> None:
    known = look(cascade(score, width, sizes=(4096, 4096)))
    assert known.groups and known.schedules


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
@pytest.mark.parametrize("name", VARIANTS)
def test_kernels_are_right(name: str) -> None:
    one, work = VARIANTS[name], compiled(name)
    values = {one.length: one.run}
    given = inputs(name)
    ((_, region),) = work.distinct().values()
    arrays = {f"B{k}": given[b].copy() for k, b in enumerate(region.buffers) if b in given}
    (store,) = region.stores
    graph = graph_of(name)
    shapes = {n: (t.shape, t.dtype) for n, t in graph.temporaries.items()}
    shapes[store.access.buffer] = (store.access.shape, store.access.dtype)
    for buffer, (shape, dtype) in shapes.items():
        arrays[buffer] = np.full([dim.value(e, values) for e in shape], 0xFF, "u1").astype(dtype.storage)
    for step in graph.steps:
        if step.schedule.template in TENSOR_CORES:
            Emulated(Step(step.kernel, step.schedule)).run(arrays, values, early=False, backwards=True)
        else:
            interpret.run(step.kernel, arrays, values)
    close(name, from_memory(arrays[store.access.buffer], store.access.dtype))


@pytest.mark.cuda
@pytest.mark.parametrize("name", VARIANTS)
def test_plans_are_right(name: str) -> None:
    plan = compiled(name).plan
    assert plan is not None
    (result,) = Session(plan)(**inputs(name)).values()
    close(name, result)


def inputs(name: str) -> dict[str, Array]:
    """Random memory for the inputs; lengths, labels and choices are small whole numbers from 0 on."""
    plan, values = compiled(name).plan, {VARIANTS[name].length: VARIANTS[name].run}
    assert plan is not None
    rng, found = np.random.default_rng(len(name)), {}
    for one in plan.inputs:
        shape = tuple(dim.value(e, values) for e in one.shape)
        small = rng.integers(0, 3, shape).astype(np.int32)
        found[one.name] = small if one.dtype.kind == "int" else random_array(one.dtype, shape, rng)
    return found


def close(name: str, got: Array) -> None:
    """Compare a result with what the model means."""
    work = compiled(name)
    plan, graph = work.plan, work.variants[-1].graph
    assert plan is not None
    types = {i.name: i.dtype for i in plan.inputs}
    arrays = {n: from_memory(a, types[n]) for n, a in inputs(name).items()}
    (want,) = evaluate(graph, arrays, {VARIANTS[name].length: VARIANTS[name].run}, wide=True).values()
    wrong = np.linalg.norm(got.astype(np.float64).reshape(want.shape) - want)
    assert wrong <= ERROR * np.linalg.norm(want)
