"""Attention as the stdlib spells it, out of primitives, becomes one kernel on tensor cores that is right."""

from __future__ import annotations

from functools import cache

import pytest

from lumi.backends.cuda.mma.known import look
from lumi.compiler import Options, Stage, compile_model
from lumi.errors import Source
from lumi.llir.kernel import KernelGraph
from tests.backends.cuda.emulator.run import is_possible
from tests.backends.cuda.mma.test_emulated import check

MODELS = {
    "causal": "(sdpa q k v :causal true)",
    "window": "(sdpa q k v :causal true :window 40)",
    "bias": "(sdpa q k v :bias bias)",
}


@cache
def graph_of(name: str) -> KernelGraph:
    """The kernels of a model that is found for long sequences."""
    bias = "(bias bf16 [4 seq seq])" if name == "bias" else ""
    text = f"""
(defdim seq :min 2 :max 4096 :hint 2048)
(defmodel attend [(q bf16 [1 4 seq 64]) (k bf16 [1 2 seq 64]) (v bf16 [1 2 seq 64]) {bias}]
  "Four heads over two."
  {MODELS[name]})
"""
    work = compile_model(Source(f"{name}.lumi", text), Options(target="cuda"), Stage.KERNELS)
    (found,) = work.found.values()
    return found.graph


@pytest.mark.parametrize("name", MODELS)
def test_attention_is_one_kernel_on_tensor_cores(name: str) -> None:
    graph = graph_of(name)
    assert not graph.temporaries
    (step,) = graph.steps
    assert step.schedule.template in ("mma", "wgmma")
    form = look(step.kernel).form
    assert form is not None
    assert form.cascade is not None
    assert bool(form.cascade.loop.guards) == (name != "bias")


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
@pytest.mark.parametrize("name", MODELS)
def test_its_code_is_right(name: str) -> None:
    (step,) = graph_of(name).steps
    for seq in (2, 77):
        check(step.kernel, 3, {"seq": seq}, 2.0**-6)
