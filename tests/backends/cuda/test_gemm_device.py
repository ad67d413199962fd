"""cuBLASLt on a GPU against the numpy executor: types, layouts, epilogues, precision, graphs, plans."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.backends.cuda import cublas, gemm
from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.cublas import Library, open_library
from lumi.backends.cuda.gpu import open_gpu
from lumi.backends.cuda.library import find_library
from lumi.backends.cuda.mma import known
from lumi.backends.cuda.mma.known import Known
from lumi.bufferize.inplace import merge
from lumi.compiler import Options, Stage, compile_model, compile_plan
from lumi.dtype import BF16, F16, F32, F64, I8, I32, DType
from lumi.errors import Source
from lumi.llir.arithmetic import from_memory, to_memory
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Step, buffers
from lumi.llir.product import find
from lumi.plan.file import load, save
from lumi.plan.plan import Plan
from lumi.runtime.session import Session
from lumi.search.protocol import Timing
from lumi.search.settings import Mode, Settings
from tests.backends.cuda.kernels import OnGpu
from tests.llir.products import EPILOGUES, Spec, compute, memory, mixed

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(find_library() is None, reason="there is no cuBLASLt"),
]

SIZES = {"g": 3, "m": dim.var("m"), "n": 48, "k": 64}
TYPES = (
    (F32, F32, F32),
    (BF16, F32, BF16),
    (BF16, F32, F32),
    (F16, F32, F16),
    (F16, F32, F32),
    (F64, F64, F64),
)
FIRST = gemm.SCHEDULES[0]


def specs() -> Iterator[Spec]:
    for (dtype, total, stored), batch, a, b in itertools.product(
        TYPES, ("", "g"), ("mk", "km"), ("nk", "kn")
    ):
        yield Spec(SIZES, batch + a, batch + b, batch + "mn", dtype, total, stored)
    for dtype, epilogue in itertools.product((F32, BF16, F16), EPILOGUES[1:-1]):
        for a, b, out in (("mk", "nk", "mn"), ("gmk", "gnk", "gmn"), ("mk", "gnk", "gmn")):
            yield Spec(SIZES, a, b, out, dtype, F32, dtype, epilogue)
    for out in ("nm", "gnm", "mgn"):
        yield Spec(SIZES, out.replace("n", "k"), "nk", out, BF16, F32, BF16)
    for gap in ((1, 0), (0, 1), (8, 8)):
        gaps = {"A": gap, "B": gap, "C": gap, "R": gap}
        yield Spec(SIZES, dtype=BF16, stored=BF16, epilogue="residual", gaps=gaps)
    yield Spec(SIZES, out="nm", epilogue="rows bias")


SPECS = tuple(specs())


@pytest.fixture(scope="module")
def on_gpu() -> OnGpu:
    return OnGpu([Step(spec.kernel, FIRST) for spec in SPECS])


def library() -> Library:
    found = open_library(open_gpu())
    assert found is not None
    return found


def is_called(kernel: Kernel, values: Mapping[str, int], schedule: Schedule = FIRST) -> bool:
    """Whether the library computes a kernel at these dims."""
    call = gemm.call(Step(kernel, schedule))
    assert call is not None
    return call.ready(library(), values, [256] * len(buffers(kernel))) is not None


def assert_equal(on_gpu: OnGpu, number: int, kernel: Kernel, values: dict[str, int]) -> None:
    want = memory(kernel, values, 1)
    got = {name: array.copy() for name, array in want.items()}
    interpret.run(kernel, want, values)
    on_gpu.run(number, got, values)
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=f"{name} at {values}")


@pytest.mark.parametrize("number", range(len(SPECS)), ids=lambda n: str(n))
def test_product_equals_the_kernel(number: int, on_gpu: OnGpu) -> None:
    kernel = SPECS[number].kernel
    for m in (1, 5, 64):
        assert is_called(kernel, {"m": m})
        assert_equal(on_gpu, number, kernel, {"m": m})


def test_product_of_bytes_equals_the_kernel() -> None:
    """Where the library lacks a layout or a size, the kernel's own code runs."""
    made = [
        Spec(SIZES, a, b, dtype=I8, total=I32, stored=I32).kernel for a in ("mk", "km") for b in ("nk", "kn")
    ]
    on_gpu = OnGpu([Step(kernel, FIRST) for kernel in made])
    for number, kernel in enumerate(made):
        for m in (1, 5, 64):
            assert_equal(on_gpu, number, kernel, {"m": m})
    assert is_called(made[0], {"m": 64})


@pytest.mark.parametrize(("m", "k"), [(0, 8), (4, 0), (4, 1), (1, 1)])
def test_extremes_are_computed(m: int, k: int) -> None:
    extents = {"m": dim.var("m"), "n": 8, "k": dim.var("k")}
    for epilogue in ("plain", "bias and relu"):
        kernel = Spec(extents, epilogue=epilogue).kernel
        assert_equal(OnGpu([Step(kernel, FIRST)]), 0, kernel, {"m": m, "k": k})


def test_result_may_lie_over_the_residual() -> None:
    kernel = merge(Spec(SIZES, dtype=BF16, stored=BF16, epilogue="residual").kernel, "C", "R")
    assert kernel is not None
    assert is_called(kernel, {"m": 64})
    on_gpu = OnGpu([Step(kernel, s) for s in gemm.SCHEDULES])
    for number in range(len(gemm.SCHEDULES)):
        assert_equal(on_gpu, number, kernel, {"m": 64})


@pytest.mark.parametrize("epilogue", ["relu", "greater of 0", "bias and relu"])
def test_relu_of_what_is_no_number_is_the_kernels(epilogue: str) -> None:
    """NaN stays NaN; infinities, zeros and their signs are as the kernel's own code has them."""
    for dtype in (F32, BF16, F16):
        spec = Spec({"m": 8, "n": 16, "k": 8}, dtype=dtype, stored=dtype, epilogue=epilogue)
        arrays = memory(spec.kernel, {}, 3)
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-30], np.float32)
        rows = np.zeros((8, 8), np.float32)
        rows[:, 0] = odd
        arrays["A"] = to_memory(rows, dtype).reshape(arrays["A"].shape)
        arrays["B"] = to_memory(np.ones((16, 8), np.float32), dtype)
        results = []
        for schedule in (FIRST, Schedule("simt")):
            held = {name: array.copy() for name, array in arrays.items()}
            OnGpu([Step(spec.kernel, schedule)]).run(0, held)
            results.append(from_memory(held["R"], dtype))
        np.testing.assert_array_equal(results[0], results[1])


# -- precision

LONG = {"m": 24, "n": 64, "k": 16384}


def drawn(
    kernel: Kernel, dtype: DType, seed: int = 0
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Memory of normal numbers, the product in f64, and the sum of the sizes of its terms."""
    arrays, generator = memory(kernel, {}, 0), np.random.default_rng(seed)
    wide = []
    for name in "AB":
        values = generator.standard_normal(arrays[name].shape).astype(np.float32)
        arrays[name] = to_memory(values, dtype) if dtype != F64 else values.astype(np.float64)
        wide.append(from_memory(arrays[name], dtype).astype(np.float64))
    return arrays, wide[0] @ wide[1].T, np.abs(wide[0]) @ np.abs(wide[1]).T


@pytest.mark.parametrize(("dtype", "limit"), [(F32, 2.0**-22), (F64, 2.0**-50)])
def test_full_precision_is_kept(dtype: DType, limit: float) -> None:
    """TF32 would be off by 2⁻¹¹ of the sizes of the terms."""
    kernel = Spec(LONG, dtype=dtype, total=dtype, stored=dtype).kernel
    arrays, want, size = drawn(kernel, dtype)
    for schedule in gemm.SCHEDULES:
        OnGpu([Step(kernel, schedule)]).run(0, arrays)
        assert np.abs(arrays["R"] - want).max() <= (limit * size).max()


@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_sum_of_halves_is_rounded_once(dtype: DType) -> None:
    """However the library splits a long sum."""
    kernel = Spec(LONG, dtype=dtype, stored=dtype).kernel
    arrays, want, size = drawn(kernel, dtype)
    half = {BF16: 2.0**-9, F16: 2.0**-12}[dtype]
    for schedule in gemm.SCHEDULES:
        OnGpu([Step(kernel, schedule)]).run(0, arrays)
        off = np.abs(from_memory(arrays["R"], dtype) - want)
        assert (off <= 2 * half * np.abs(want) + 2.0**-20 * size).all()


@pytest.mark.parametrize("wide", ["a", "b"])
@pytest.mark.parametrize(("a", "b", "out"), [("mk", "nk", "mn"), ("gkm", "gnk", "gmn"), ("gmk", "kn", "mgn")])
@pytest.mark.parametrize("epilogue", ["plain", "scaled residual", "bias and relu"])
def test_f32_times_bf16_is_as_exact_as_f32(a: str, b: str, out: str, epilogue: str, wide: str) -> None:
    if "bias" in epilogue and out != "mn":
        epilogue = "residual"
    kernel = mixed(Spec({"g": 3, "m": 20, "n": 40, "k": 1001}, a, b, out, epilogue=epilogue), wide)
    assert is_called(kernel, {})
    arrays, generator = memory(kernel, {}, 0), np.random.default_rng(0)
    for name in "ABC":
        if name in arrays and arrays[name].dtype == np.float32:
            arrays[name] = generator.standard_normal(arrays[name].shape).astype(np.float32)
    found = find(kernel)
    assert found is not None
    want = {name: array.copy() for name, array in arrays.items()}
    compute(found, want, {})
    on_gpu = OnGpu([Step(kernel, s) for s in gemm.SCHEDULES])
    for number in range(len(gemm.SCHEDULES)):
        got = {name: array.copy() for name, array in arrays.items()}
        on_gpu.run(number, got)
        off = np.abs(got["R"].astype(np.float64) - want["R"]).max()
        assert off <= 2.0**-20 * np.abs(want["R"]).max()


# -- algorithms


def test_library_proposes_the_same_every_time() -> None:
    call = gemm.call(Step(Spec(LONG, dtype=BF16, stored=BF16).kernel, FIRST))
    assert call is not None
    path = find_library()
    assert path is not None
    matmul = gemm.describe(call.product, {})
    assert matmul is not None
    pointers = cublas.Pointers(256, 256, 256, 256)
    names = [
        [a.name for a in one.algorithms(matmul, pointers)] for one in (library(), Library(open_gpu(), path))
    ]
    assert names[0] == names[1]
    assert len(set(names[0])) == len(names[0]) >= 2


def graph_of(rows: int = 128) -> tuple[CudaBackend, object, KernelGraph]:
    text = f"""
(defmodel product [(x bf16 [{rows} 512]) (w bf16 [768 512])]
  "A product."
  (einsum x [m k] w [n k] -> [m n]))
"""
    work = compile_model(Source("product", text), Options(target="cuda"), Stage.KERNELS)
    ((_, region),) = work.distinct().values()
    (found,) = work.found.values()
    return CudaBackend(), region, found.graph


def test_measured_algorithm_is_told_by_name() -> None:
    backend, region, graph = graph_of()
    for schedule in gemm.SCHEDULES[:2]:
        steps = tuple(Step(s.kernel, schedule) for s in graph.steps)
        timing = backend.measure(region, KernelGraph(steps, graph.temporaries), {})  # type: ignore[arg-type]
        assert isinstance(timing, Timing), timing
        ((name, value),) = timing.schedules[0].options
        assert name == "algorithm"
        again = KernelGraph((Step(graph.steps[0].kernel, timing.schedules[0]),), graph.temporaries)
        told = backend.measure(region, again, {})  # type: ignore[arg-type]
        assert isinstance(told, Timing)
        assert told.schedules[0].options == (("algorithm", value),)


# -- whole models

MODEL = """
(defdim seq :min 1 :max 512 :hint [1 128])
(defdim past :min 0 :max 100 :hint 0)

(defmodel layers [(x bf16 [seq 256]) (r bf16 [seq 512])]
  "Products with a bias, relu and a residual, and a state that grows."
  (let [b (param "b" [1024] :dtype bf16)
        v (param "v" [1024 256] :dtype bf16)
        w (param "w" [512 1024] :dtype bf16)
        h (relu (+ (einsum x [s k] v [n k] -> [s n]) b))]
    (outputs :y (+ r (einsum h [s k] w [n k] -> [s n]))
             :z (+ (cast (slice x :axis 1 :stop 1) f32) (cast past f32)))))
"""


@cache
def plan_of(target: str, mode: Mode = Mode.MODEL) -> Plan:
    settings = Settings(mode=mode, trials=40, seconds=20.0)
    return compile_plan(Source("layers", MODEL), Options(target=target, settings=settings))


def inputs(seq: int, seed: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {
        "x": generator.standard_normal((seq, 256)).astype(BF16.numpy),
        "r": generator.standard_normal((seq, 512)).astype(BF16.numpy),
    }


def assert_sessions_agree(gpu: Session, cpu: Session) -> None:
    for seed, (seq, past) in enumerate(((128, 0), (7, 1), (128, 2), (1, 3), (300, 4), (7, 5), (1, 9))):
        given = inputs(seq, seed)
        got, want = (s.run(given, {"past": past}) for s in (gpu, cpu))
        for name, array in want.items():
            y = np.asarray(array, np.float64)
            scale = np.abs(y).max()
            np.testing.assert_allclose(np.asarray(got[name], np.float64), y, rtol=0, atol=2.0**-7 * scale)


def test_model_has_its_products_by_tensor_cores_at_every_size() -> None:
    plan = plan_of("cuda")
    assert {gemm.TEMPLATE, "mma", "wgmma"} & {k.schedule.template for k in plan.kernels}
    gpu, cpu = (Session(plan_of(t), init="random", seed=3) for t in ("cuda", "cpu"))
    assert_sessions_agree(gpu, cpu)


def test_model_calls_the_library_at_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no kernel of Lumi's has tensor cores."""
    monkeypatch.setattr(known, "look", lambda kernel: Known(kernel.body, kernel.axes, kernel.grid, None, ()))
    plan = plan_of.__wrapped__("cuda")
    assert gemm.TEMPLATE in {k.schedule.template for k in plan.kernels}
    gpu, cpu = (Session(p, init="random", seed=3) for p in (plan, plan_of("cpu")))
    assert_sessions_agree(gpu, cpu)


def test_measured_plan_is_saved_with_its_algorithms(tmp_path: Path) -> None:
    plan = plan_of("cuda", Mode.MEASURE)
    used = [k.schedule for k in plan.kernels if k.schedule.template == gemm.TEMPLATE]
    assert all(name == "algorithm" for s in used for name, _ in s.options)
    save(plan, tmp_path / "layers.lumiplan")
    again = load(tmp_path / "layers.lumiplan")
    assert again == plan
    gpu, cpu = Session(again, init="random", seed=3), Session(plan_of("cpu"), init="random", seed=3)
    assert_sessions_agree(gpu, cpu)
