"""The runtime's promises on the GPU: tensors of other libraries, outputs that last, several sessions."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest

from lumi.backends.cuda.device import CudaDevice
from lumi.backends.cuda.fill import fill
from lumi.backends.cuda.gpu import open_gpu
from lumi.backends.cuda.launch import load_kernels
from lumi.backends.cuda.pinned import LIMIT
from lumi.compiler import Options, compile_plan
from lumi.dtype import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, DType
from lumi.errors import LumiError, Source
from lumi.noise import Noise
from lumi.plan.plan import Plan
from lumi.runtime.device import Place
from lumi.runtime.session import IN_PLACE, Session
from lumi.search.settings import Mode, Settings

pytestmark = pytest.mark.cuda

TEXT = """
(defdim n :min 1 :max 4096 :hint 512)

(defmodel twice [(x f32 [n 512])]
  "2x, and the sum of all x so far."
  (let [total (state "total" [512])]
    (set! total (+ total (reduce-sum x :axis 0)))
    (outputs :y (* x 2) :total total)))
"""
LARGE = IN_PLACE // 2048


@cache
def plan() -> Plan:
    return compile_plan(Source("twice.lumi", TEXT), Options(target="cuda", settings=Settings(Mode.NONE)))


@pytest.fixture
def session() -> Session:
    return Session(plan())


def rows(count: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-8, 8, (count, 512)).astype(np.float32)


def library(name: str) -> tuple[Any, Any]:
    """How a library makes a tensor on the GPU of an array, and an array of a tensor."""
    module = pytest.importorskip(name)
    if name == "torch":
        return (lambda a: module.from_numpy(a).cuda()), (lambda t: t.cpu().numpy())
    return module.asarray, module.asnumpy


@pytest.mark.parametrize("name", ["torch", "cupy"])
@pytest.mark.parametrize("count", [3, LARGE])
def test_tensors_on_the_gpu_are_inputs(session: Session, name: str, count: int) -> None:
    to_gpu, _ = library(name)
    total = np.zeros(512, np.float32)
    for seed in range(3):
        x = rows(count, seed)
        found = session(x=to_gpu(x))
        total += x.sum(0)
        np.testing.assert_array_equal(found["y"], 2 * x)
        np.testing.assert_array_equal(found["total"], total)


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_large_tensor_is_read_where_it_lies(session: Session, name: str) -> None:
    to_gpu, to_host = library(name)
    tensors = [to_gpu(rows(LARGE, seed)) for seed in range(7)]
    for tensor in (*tensors, tensors[0], tensors[6]):
        np.testing.assert_array_equal(session(x=tensor)["y"], 2 * to_host(tensor))
    tensors[6] += 1
    np.testing.assert_array_equal(session(x=tensors[6])["y"], 2 * to_host(tensors[6]))
    kept = [key for key in session._ready if key[1]]
    assert 0 < len(kept) < len(tensors)


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_outputs_are_lent_to_other_libraries(session: Session, name: str) -> None:
    module = pytest.importorskip(name)
    _, to_host = library(name)
    x = rows(100)
    found = session.run_on_device({"x": x})
    session.run_on_device({"x": rows(100, 1)})
    lent = {key: module.from_dlpack(array) for key, array in found.items()}
    assert int(lent["y"].data_ptr() if name == "torch" else lent["y"].data.ptr) == found["y"].memory.address
    del found
    gc.collect()
    session.run_on_device({"x": rows(100, 2)})
    np.testing.assert_array_equal(to_host(lent["y"]), 2 * x)
    np.testing.assert_array_equal(to_host(lent["total"]), x.sum(0))


def test_output_is_the_next_input_without_the_host(session: Session) -> None:
    x = rows(LARGE)
    first = session.run_on_device({"x": x})
    second = session.run_on_device({"x": first["y"]})
    np.testing.assert_array_equal(second["y"].numpy(), 4 * x)


def test_unfit_tensors_are_refused(session: Session) -> None:
    torch = pytest.importorskip("torch")
    for tensor, why in (
        (torch.zeros(512, 4, device="cuda").T, "make it contiguous"),
        (torch.zeros(4, 512, device="cuda", dtype=torch.float16), "x is f16"),
        (torch.zeros(512, device="cuda"), r"x is f32 \[512\]"),
    ):
        with pytest.raises(LumiError, match=why):
            session(x=tensor)


@pytest.mark.parametrize("count", [1, 100])
def test_outputs_last(session: Session, count: int) -> None:
    found = [session(x=rows(count, seed))["y"] for seed in range(20)]
    gc.collect()
    for seed, array in enumerate(found):
        np.testing.assert_array_equal(array, 2 * rows(count, seed))
        array += 1


def test_outputs_beyond_the_pinned_memory_are_right(session: Session) -> None:
    x = rows(4096)
    kept = [session(x=x)["y"] for _ in range(LIMIT // x.nbytes + 2)]
    for array in (kept[0], kept[-1]):
        np.testing.assert_array_equal(array, 2 * x)


def test_sessions_run_side_by_side() -> None:
    def run(seed: int) -> bool:
        session, total = Session(plan()), np.zeros(512, np.float32)
        for k in range(20):
            x = rows(1 + (seed + k) % 50, seed + k)
            found = session(x=x)
            total += x.sum(0)
            if not (np.array_equal(found["y"], 2 * x) and np.array_equal(found["total"], total)):
                return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(run, range(8)))


def test_models_with_the_same_kernel_have_it_once() -> None:
    (kernel,) = (k.step for k in plan().kernels)
    first, again = (load_kernels(open_gpu(), [kernel])[0].function for _ in range(2))
    assert first is again


def test_fork_copies_the_states_on_the_device(session: Session) -> None:
    x = rows(5)
    session(x=x)
    other = session.fork()
    np.testing.assert_array_equal(other(x=x)["total"], 2 * x.sum(0))
    np.testing.assert_array_equal(session(x=x)["total"], 2 * x.sum(0))


def test_random_states_are_those_of_the_host(session: Session) -> None:
    session.randomize_states(3)
    cpu = Session(compile_plan(Source("twice.lumi", TEXT), Options(settings=Settings(Mode.NONE))))
    cpu.randomize_states(3)
    np.testing.assert_array_equal(session.save_states()["total"], cpu.save_states()["total"])


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64, I8, U8, I32, I64, BOOL], ids=str)
def test_noise_is_that_of_the_host(dtype: DType) -> None:
    low, span = (0, 2) if dtype == BOOL else dtype.bounds if dtype.size == 1 else (-7, 100)
    span = span - low + 1 if dtype.size == 1 and dtype != BOOL else span
    noise, count = Noise(2**63 + 5, dtype, 0.37, low, span), 100_003
    memory = CudaDevice().random(noise, count)
    found = memory.fetch(count * dtype.size).view(dtype.storage)
    np.testing.assert_array_equal(found, noise.array(count))


def test_noise_of_nothing() -> None:
    fill(open_gpu(), 0, Noise(0, F32), 0)


def test_parts_are_copies() -> None:
    device = CudaDevice()
    whole = device.adopt(np.arange(100, dtype=np.int32))
    part = device.part(Place(whole, 40), 80)
    whole.clear()
    np.testing.assert_array_equal(part.fetch(80).view(np.int32), np.arange(10, 30))


def test_arrays_larger_than_the_staging_memory_arrive() -> None:
    array = np.random.default_rng(0).integers(0, 255, 9 << 20).astype(np.uint8)
    memory = CudaDevice().adopt(array)
    np.testing.assert_array_equal(memory.fetch(array.size), array)
