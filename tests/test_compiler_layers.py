"""Layers one behind another, compiled whole and compared with the meaning of their graph.

With a single row the statistics of a norm have no axis left, so that nothing but their order keeps them
between what they are made of and what needs them.
"""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.compiler import Compilation, Options, Stage, compile_model
from lumi.errors import Source
from lumi.search.settings import Mode, Settings
from tests.backends.cpu.kernels import random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.compilations import Pair, random_inputs

LAYERS = {
    "layer-norm": '(layer-norm :name "n{}")',
    "rms-norm": '(rms-norm :name "n{}")',
    "group-norm": '(group-norm 4 :name "n{}")',
    "softmax": "(softmax)",
    "standardize": "(standardize)",
    "gelu": "(gelu-tanh)",
}


def model(*layers: str, rows: int = 1) -> Source:
    """Layers between two products."""
    inside = " ".join(LAYERS[name].format(n) for n, name in enumerate(layers))
    text = f"""
(defmodel layers [(x f32 [{rows} 20])]
  "Layers between two products."
  (-> x (linear 32 :name "a") {inside} (linear 5 :name "b")))
"""
    return Source("layers.lumi", text)


def work(source: Source, mode: Mode, target: str = "cpu", until: Stage = Stage.PLAN) -> Compilation:
    return compile_model(source, Options(target=target, settings=Settings(mode=mode, evaluations=60)), until)


@pytest.mark.parametrize("second", ["layer-norm", "softmax", "gelu"])
@pytest.mark.parametrize("first", LAYERS)
@pytest.mark.parametrize("mode", [Mode.NONE, Mode.MODEL])
def test_layers_of_one_row_equal_their_graph(first: str, second: str, mode: Mode) -> None:
    pair = Pair(work(model(first, second), mode))
    pair.call(random_inputs(pair.plan, {}), {})


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
@pytest.mark.parametrize("first", ["layer-norm", "group-norm", "softmax"])
def test_layers_of_one_row_equal_their_kernels_as_cuda(first: str) -> None:
    made = work(model(first), Mode.MODEL, "cuda", Stage.KERNELS)
    for found in made.found.values():
        for step in found.graph.steps:
            want = {n: a for k in step.kernels for n, a in random_buffers(k, {}, 3).items()}
            got = {n: a.copy() for n, a in want.items()}
            for kernel in step.kernels:
                interpret.run(kernel, want, {})
            Emulated(step).run(got, {}, early=False, backwards=True)
            for buffer in step.written:
                np.testing.assert_allclose(got[buffer], want[buffer], rtol=0, atol=1e-4, err_msg=buffer)


EMPTY = """
(defdim n :min 0 :max 6 :hint 3)
(defmodel both [(ids i32 [1]) (x f32 [2 n])]
  "A result that needs no dim, beside one that may have no points."
  (outputs :a (cumsum ids :axis 0) :b (softmax x :axis 0)))
"""


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.MODEL])
def test_a_result_is_there_where_another_has_no_points(mode: Mode) -> None:
    pair = Pair(work(Source("both.lumi", EMPTY), mode))
    for n, first in ((3, 40), (0, 42)):
        pair.call({"ids": np.array([first], np.int32), "x": np.ones((2, n), np.float32)}, {"n": n})
