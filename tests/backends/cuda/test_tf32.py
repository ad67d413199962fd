"""Products of f32 in TF32 on a GPU: as exact as TF32 is, and taken only where they are allowed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lumi.backends.cuda import gemm
from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.library import find_library
from lumi.backends.cuda.tf32 import TF32, is_tf32
from lumi.compiler import Options, Stage, compile_model, compile_plan
from lumi.dtype import F32
from lumi.errors import Source
from lumi.llir.kernel import KernelGraph, Schedule, Step
from lumi.runtime.session import Session
from lumi.search.protocol import Failure, Reason
from lumi.search.settings import Mode, Settings
from tests.backends.cuda.kernels import OnGpu
from tests.backends.cuda.test_gemm_device import drawn
from tests.llir.products import Spec

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(find_library() is None, reason="there is no cuBLASLt"),
]

MODEL = """
(defdim seq :min 1 :max 512 :hint [1 256])

(defmodel layers [(x f32 [seq 512])]
  "Two products of f32 with a gate between them."
  (let [v (param "v" [1024 512])
        w (param "w" [512 1024])
        h (relu (einsum x [s k] v [n k] -> [s n]))]
    (outputs :y (einsum h [s k] w [n k] -> [s n]))))
"""
RELAXED = Options(target="cuda", relaxed=("tf32",))
COARSE = 2.0**-9
"""Bounds the error of products of factors that are cut to TF32, of the sizes of their terms."""


def test_library_computes_in_tf32_where_it_is_told_to() -> None:
    kernel = Spec({"m": 256, "n": 512, "k": 4096}).kernel
    arrays, want, size = drawn(kernel, F32)
    product = gemm.find(kernel)
    assert product is not None
    for schedule in gemm.schedules(product, tf32=True):
        OnGpu([Step(kernel, schedule)]).run(0, arrays)
        error = np.abs(arrays["R"] - want).max()
        assert error <= (COARSE * size).max()
        if not is_tf32(schedule):
            assert error <= 2.0**-22 * size.max(), schedule
        elif schedule.options == (TF32,):
            assert error > 2.0**-18 * size.max(), "its favourite has tensor cores"


def test_products_in_tf32_are_measured_and_found_right() -> None:
    work = compile_model(Source("layers", MODEL), RELAXED, Stage.KERNELS)
    backend, found = CudaBackend(tf32=True), set[str]()
    for key, (variant, region) in work.distinct().items():
        graph, hint = work.found[key].graph, variant.box.hints()[0]
        for number, step in enumerate(graph.steps):
            for schedule in list(filter(is_tf32, backend.schedules(step.kernel)))[::4]:
                steps = list(graph.steps)
                steps[number] = Step(step.kernel, schedule)
                told = backend.measure(region, KernelGraph(tuple(steps), graph.temporaries), hint)
                if isinstance(told, Failure):
                    assert told.reason in (Reason.ILLEGAL, Reason.MEMORY), told
                    continue
                assert is_tf32(told.schedules[number])
                found.add(schedule.template)
    assert found == {gemm.TEMPLATE, "mma"}


@pytest.mark.parametrize("mode", [Mode.MODEL, Mode.MEASURE])
def test_model_in_tf32_is_near_the_cpu(mode: Mode) -> None:
    settings = Settings(mode=mode, trials=40, seconds=20.0)
    source = Source("layers", MODEL)
    plans = [
        compile_plan(source, replace(RELAXED, settings=settings)),
        compile_plan(source, Options(target="cuda")),
        compile_plan(source, Options()),
    ]
    used: list[Schedule] = [k.schedule for k in plans[0].kernels]
    assert mode is Mode.MEASURE or any(is_tf32(s) for s in used)
    sessions = [Session(p, init="random", seed=3) for p in plans]
    for seq in (256, 1, 77):
        x = np.random.default_rng(seq).standard_normal((seq, 512)).astype(np.float32)
        relaxed, plain, cpu = (np.asarray(s.run({"x": x}, {})["y"], np.float64) for s in sessions)
        scale = np.abs(cpu).max()
        np.testing.assert_allclose(plain, cpu, rtol=0, atol=1e-5 * scale)
        np.testing.assert_allclose(relaxed, cpu, rtol=0, atol=4e-3 * scale)


ASKING = MODEL.replace("-> [s n]", "-> [s n] :precision tf32")


def test_model_that_asks_for_tf32_has_it() -> None:
    """Schedules of its products are measured and found right; the CPU, which rounds too, agrees."""
    work = compile_model(Source("layers", ASKING), Options(target="cuda"), Stage.KERNELS)
    backend, found = CudaBackend(), set[str]()
    for key, (variant, region) in work.distinct().items():
        graph, hint = work.found[key].graph, variant.box.hints()[0]
        for number, step in enumerate(graph.steps):
            known = backend.schedules(step.kernel)
            for schedule in [s for s in known if is_tf32(s) or s.template == gemm.TEMPLATE][::3]:
                steps = list(graph.steps)
                steps[number] = Step(step.kernel, schedule)
                told = backend.measure(region, KernelGraph(tuple(steps), graph.temporaries), hint)
                assert not isinstance(told, Failure) or told.reason in (Reason.ILLEGAL, Reason.MEMORY), told
                if not isinstance(told, Failure) and is_tf32(schedule):
                    found.add(schedule.template)
    assert found == {gemm.TEMPLATE, "mma"}
    source, exact = Source("layers", ASKING), ("exact",)
    plans = [compile_plan(source, Options(target=t, families=exact)) for t in ("cuda", "cpu")]
    assert any(is_tf32(k.schedule) for k in plans[0].kernels)
    sessions = [Session(p, init="random", seed=3) for p in plans]
    for seq in (256, 1, 77):
        x = np.random.default_rng(seq).standard_normal((seq, 512)).astype(np.float32)
        gpu, cpu = (np.asarray(s.run({"x": x}, {})["y"], np.float64) for s in sessions)
        np.testing.assert_allclose(gpu, cpu, rtol=0, atol=2e-4 * np.abs(cpu).max())
