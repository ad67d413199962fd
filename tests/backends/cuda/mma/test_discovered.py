"""Attention as the stdlib spells it, out of primitives, becomes one kernel on tensor cores that is right."""

from __future__ import annotations

from functools import cache

import pytest

from lumi.backends.cuda import schedule
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


def test_gated_pair_of_a_prompt_is_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The widest tiles leave most of the GPU without work on few rows; others beat the library's products."""
    monkeypatch.setattr(schedule, "find_library", lambda: "libcublasLt.so.13")
    text = """
(defdim seq :min 2 :max 2048 :hint 128)
(defmodel block [(x bf16 [seq 4096]) :dtype bf16]
  "A gated MLP."
  (gated-mlp x 14336 :name "mlp"))
"""
    work = compile_model(Source("mlp.lumi", text), Options(target="cuda"), Stage.KERNELS)
    (found,) = work.found.values()
    pair, down = found.graph.steps
    form = look(pair.kernel).form
    assert form is not None and len(form.products) == 2 and len(pair.kernel.grid) == 2
    assert [s.schedule.template for s in (pair, down)] == ["wgmma", "cublaslt"]


def test_products_of_the_same_rows_share_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any two of them the library's calls are as fast; three together fill the GPU."""
    monkeypatch.setattr(schedule, "find_library", lambda: "libcublasLt.so.13")
    text = """
(defdim seq :min 2 :max 2048 :hint 128)
(defmodel heads [(x bf16 [seq 4096]) :dtype bf16]
  "Queries, keys and values."
  [(linear x 4096 :name "q") (linear x 1024 :name "k") (linear x 1024 :name "v")])
"""
    work = compile_model(Source("heads.lumi", text), Options(target="cuda"), Stage.KERNELS)
    (found,) = work.found.values()
    (step,) = found.graph.steps
    assert step.schedule.template == "wgmma" and len(step.kernels) == 3


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
@pytest.mark.parametrize("name", MODELS)
def test_its_code_is_right(name: str) -> None:
    (step,) = graph_of(name).steps
    for seq in (2, 77):
        check(step.kernel, 3, {"seq": seq}, 2.0**-6)
