"""Products of f32 in TF32 on tensor cores: where they are offered, their code, and how exact they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda import gemm, schedule
from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.launch import fitting
from lumi.backends.cuda.mma.form import RefusalError
from lumi.backends.cuda.mma.known import look
from lumi.backends.cuda.mma.plan import TEMPLATE, plan
from lumi.backends.cuda.mma.recognise import recognise
from lumi.backends.cuda.tf32 import is_tf32
from lumi.compiler import Options, Stage, compile_model
from lumi.dtype import F32
from lumi.errors import Source
from lumi.llir.kernel import Dot, Kernel, Loop, Map, Schedule, Statement, Step, walk, written
from lumi.search.child import SharedMemory
from lumi.search.data import Bench
from lumi.search.samples import cut_to_tf32
from tests.backends.cpu.kernels import assert_close, random_buffers
from tests.backends.cuda.emulator.run import Emulated, is_possible
from tests.backends.cuda.kernels import OnGpu
from tests.backends.cuda.mma.forms import batched, cascade, gated_pair, product

if TYPE_CHECKING:
    from lumi.backends.cuda.gpu import Gpu

SIZES = {"seq": 70, "keys": 150, "length": 100}

KERNELS: dict[str, tuple[Kernel, int]] = {
    "wide tile": (product(70, 72, 200, t="f32", out="f32"), 0),
    "tall tile": (product(70, 140, 136, "m k", "k n", t="f32", out="f32"), 1),
    "odd": (product(65, 131, 77, t="f32", out="f32", epilogue="gated"), 2),
    "both across": (product(40, 72, 100, "k m", "k n", t="f32", out="f32"), 3),
    "odd across": (product(41, 73, 101, "k m", "n k", t="f32", out="f32"), -1),
    "narrow": (product("seq", 99, 64, t="f32", out="f32", epilogue="rows"), -2),
    "pair": (gated_pair(40, 72, 96, t="f32"), -3),
    "batched": (batched(2, 2, "seq", 40, 64, t="f32"), -4),
    "rows of a loop": (cascade("causal", t="f32", out="f32"), 0),
    "other width": (cascade("window", 64, 48, t="f32", out="f32"), 2),
    "held rows": (cascade("length", 40, t="f32", out="f32"), 3),
    "turned": (cascade("mask", 32, group=1, t="f32", out="f32", turned=True), -1),
}
"""Kernels, and which of their schedules in TF32."""

WEIGHED = ("rows of a loop", "other width", "held rows", "turned")
"""Kernels that round what they compute themselves."""

EXACT = 2e-5
"""Bounds the error of sums of products of f32 whose factors are TF32, of the largest result."""

COARSE = 4e-3
"""The same of factors that are rounded."""

FEW = 4e-4
"""The same where some of the factors are rounded to another neighbour."""


def schedules(kernel: Kernel) -> tuple[Schedule, ...]:
    return look(kernel, tf32=True).schedules


def given(kernel: Kernel, change: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    """Random buffers, changed where they are f32, and poisoned where they are written."""
    arrays = random_buffers(kernel, SIZES, 3)
    for name, array in arrays.items():
        if name in written(kernel):
            array.view("u1")[...] = 0xFF
        elif array.dtype == np.float32:
            array[...] = change(array)
    return arrays


def check(name: str, run: Callable[[dict[str, np.ndarray]], None]) -> None:
    """Run a kernel, and compare with the numpy executor.

    On factors that are TF32 it is as exact as f32, unless it rounds what it computes itself: nothing is
    rounded then, and each number stands in its place.
    """
    kernel, _ = KERNELS[name]
    for change, limit in ((np.asarray, COARSE), (cut_to_tf32, COARSE if name in WEIGHED else EXACT)):
        want = given(kernel, change)
        got = {n: a.copy() for n, a in want.items()}
        interpret.run(kernel, want, SIZES)
        run(got)
        for buffer in written(kernel):
            assert_close(got[buffer], want[buffer], F32, limit, buffer)


def asking(kernel: Kernel, but: str = "") -> Kernel:
    """A kernel of f32 that itself rounds the factors of its products, but for one if `but` names it."""
    factors = {f for s in walk(kernel.body) if isinstance(s, Dot) for f in (s.a, s.b)} - {but}

    def rounding(statement: Statement) -> Statement:
        if isinstance(statement, Loop):
            return replace(statement, body=tuple(map(rounding, statement.body)))
        if isinstance(statement, Map) and statement.var in factors:
            return replace(statement, op="tf32", args=statement.args[:1])
        return statement

    return replace(kernel, body=tuple(map(rounding, kernel.body)))


# -- where they are offered


@pytest.mark.parametrize("kernel", [KERNELS["wide tile"][0], KERNELS["rows of a loop"][0]])
def test_tf32_is_offered_only_where_it_is_allowed(kernel: Kernel) -> None:
    plain, allowing = (CudaBackend(tf32=t).schedules(kernel) for t in (False, True))
    assert not any(is_tf32(s) or s.template in (TEMPLATE, "wgmma") for s in plain)
    mine = [s for s in allowing if s.template == TEMPLATE]
    assert mine and all(map(is_tf32, mine))


@pytest.mark.parametrize("kernel", [KERNELS["wide tile"][0], KERNELS["rows of a loop"][0]])
def test_kernel_asks_for_tf32_where_it_rounds_every_factor(kernel: Kernel) -> None:
    """One factor that stays f32 is multiplied as f32."""
    mine, allowed = asking(kernel), look(kernel, tf32=True).schedules
    for exact in (False, True):
        found = [s for s in CudaBackend(exact).schedules(mine) if s.template == TEMPLATE]
        assert tuple(found) == allowed
    factor = next(s.b for s in walk(kernel.body) if isinstance(s, Dot))
    assert not any(map(is_tf32, CudaBackend().schedules(asking(kernel, but=str(factor)))))
    assert any(map(is_tf32, CudaBackend(tf32=True).schedules(asking(kernel, but=str(factor)))))


def test_what_tensor_cores_round_is_not_rounded_before() -> None:
    kernel, number = KERNELS["odd"]
    steps = [Step(k, schedules(kernel)[number]) for k in (kernel, asking(kernel))]
    assert emit(steps[0], "kernel").text == emit(steps[1], "kernel").text


def test_library_is_asked_too_unless_its_roundings_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "find_library", lambda: "libcublasLt.so.13")
    text = '(defmodel m [(a f32 [512 512]) (b f32 [512 512])] "Product." (matmul a b :precision tf32))'
    work = compile_model(Source("m", text), Options(target="cuda"), Stage.KERNELS)
    (found,) = work.found.values()
    (step,) = found.graph.steps
    for exact, precisions in ((False, {True, False}), (True, set())):
        calls = [s for s in CudaBackend(exact).schedules(step.kernel) if s.template == gemm.TEMPLATE]
        assert set(map(is_tf32, calls)) == precisions


@pytest.mark.parametrize(
    "kernel", [product(64, 64, 64), cascade("causal"), batched(2, 2, 8, 40, 64, t="f16")]
)
def test_tf32_changes_nothing_for_halves(kernel: Kernel) -> None:
    assert CudaBackend(tf32=True).schedules(kernel) == CudaBackend().schedules(kernel)


@pytest.mark.parametrize(("kernel", "tf32"), [(product(64, 64, 64), True), (KERNELS["odd"][0], False)])
def test_factors_of_the_other_kind_are_refused(kernel: Kernel, tf32: bool) -> None:
    with pytest.raises(RefusalError, match="no factor is of"):
        recognise(kernel, tf32)


def test_code_in_tf32_needs_a_schedule_that_says_so() -> None:
    kernel, number = KERNELS["wide tile"]
    options = tuple(o for o in schedules(kernel)[number].options if o[0] != "tf32")
    with pytest.raises(ValueError, match="no factor is of halves"):
        emit(Step(kernel, Schedule(TEMPLATE, options)), "kernel")


def test_copies_of_f32_are_as_wide_as_lines_are_aligned() -> None:
    for sizes, widths in (((64, 64, 64), [4, 4]), ((64, 64, 66), [2, 2]), ((64, 64, 77), [1, 1])):
        form = recognise(product(*sizes, t="f32", out="f32"), True)
        made = plan(form, {"depth": 32, "tf32": 1})
        assert [tile.width for tile in made.tiles.values()] == widths
        assert made.stage == 4 * 32 * (made.rows + made.columns)


class Small:
    """A GPU whose blocks have less shared memory than the largest tiles need."""

    starts_early, room, arch = False, 96 << 10, "sm_86"


def test_smaller_gpu_takes_another_schedule_of_the_same_kind() -> None:
    kernel = product(512, 512, 512, t="f32", out="f32")
    step = Step(kernel, schedules(kernel)[0])
    assert emit(step, "kernel").shared > Small.room
    found = fitting(step, cast("Gpu", Small()))
    assert found.schedule.template == TEMPLATE and is_tf32(found.schedule)
    assert emit(found, "kernel").shared <= Small.room


def test_large_products_should_be_faster_in_tf32() -> None:
    kernel = product(4096, 4096, 4096, t="f32", out="f32")
    costs = {
        t: min(b.cost(kernel, s, {}).seconds for s in b.schedules(kernel) if s.template != "cublaslt")
        for t, b in ((t, CudaBackend(tf32=t)) for t in (False, True))
    }
    assert 4 * costs[True] < costs[False]
    floor = 2 * 4096**3 / 495e12
    assert all(CudaBackend().cost(kernel, s, {}).seconds > floor for s in schedules(kernel))


# -- their code


def test_product_becomes_this(golden: Callable[..., None]) -> None:
    kernel = product(100, 72, 512, "m k", "k n", t="f32", out="f32", epilogue="gated")
    golden(emit(Step(kernel, schedules(kernel)[-1]), "product").text, ".cu", name="product")


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("early", [True, False])
def test_products_are_right(name: str, early: bool) -> None:
    kernel, number = KERNELS[name]
    emulated = Emulated(Step(kernel, schedules(kernel)[number]))
    check(name, lambda arrays: emulated.run(arrays, SIZES, early=early, backwards=early))


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
@pytest.mark.parametrize("name", KERNELS)
def test_what_the_kernel_rounds_is_rounded_alike(name: str) -> None:
    """As the numpy executor rounds it: as exact as f32, but for weights that may be rounded the other way."""
    kernel, number = asking(KERNELS[name][0]), KERNELS[name][1]
    want = given(kernel, np.asarray)
    got = {n: a.copy() for n, a in want.items()}
    interpret.run(kernel, want, SIZES)
    Emulated(Step(kernel, schedules(kernel)[number])).run(got, SIZES, early=False, backwards=True)
    for buffer in written(kernel):
        assert_close(got[buffer], want[buffer], F32, FEW if name in WEIGHED else EXACT, buffer)


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
def test_error_is_that_of_two_roundings() -> None:
    kernel = product(40, 72, 300, t="f32", out="f32")
    arrays = given(kernel, np.asarray)
    a, b = (arrays[n].astype(np.float64) for n in "AB")
    Emulated(Step(kernel, schedules(kernel)[-1])).run(arrays, {}, early=True, backwards=False)
    error, size = np.abs(arrays["R"] - a @ b.T), np.abs(a) @ np.abs(b.T)
    assert (error <= 2.0**-10 * 1.01 * size).all()
    assert error.max() > 2.0**-16 * size.max()


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
def test_factors_that_are_not_rounded_are_found() -> None:
    kernel = product(40, 72, 100, t="f32", out="f32")
    emulated = Emulated(
        Step(kernel, schedules(kernel)[-1]), lambda text: text.replace("load_rows_tf32", "load_rows")
    )
    with pytest.raises(AssertionError, match="that a GPU refuses"):
        emulated.run(given(kernel, np.asarray), {}, early=True, backwards=False)


ATTENTION = """
(defdim rows :min 1 :max 2048 :hint 1024)
(defdim keys :min 1 :max 2048 :hint 1024)

(defmodel attend [(q f32 [8 rows 64]) (k f32 [8 keys 64]) (v f32 [8 keys 64])]
  "Attention in f32."
  (let [s (* 0.125 (einsum q [h i d] k [h j d] -> [h i j]))]
    (outputs :y (einsum (softmax s) [h i j] v [h j e] -> [h i e]))))
"""


@pytest.mark.skipif(not is_possible(), reason="there is no g++")
def test_attention_is_held_to_the_error_of_tf32() -> None:
    """Found in a model, it is right where TF32 is allowed, and nowhere else; a hundredth less is not."""
    options = Options(target="cuda", relaxed=("tf32",))
    work = compile_model(Source("attend", ATTENTION), options, Stage.KERNELS)
    ((_, region),) = work.distinct().values()
    (found,) = work.found.values()
    (step,) = found.graph.steps
    assert step.schedule.template == TEMPLATE and is_tf32(step.schedule)
    sizes = {"rows": 40, "keys": 70}
    bench, memory = Bench(region, sizes), SharedMemory()
    layout = bench.layout(found.graph)
    memory.hold(layout.size)
    bench.fill(memory, layout)
    arrays = {n: memory.view(layout.copies[0][n], a) for n, a in bench.given.items()}
    Emulated(step).run(arrays, sizes, early=False, backwards=False)
    assert bench.compare(memory, layout, tf32=True) == ""
    assert "is allowed" in bench.compare(memory, layout, tf32=False)
    (result,) = (arrays[n] for n in bench.wanted)
    result *= np.float32(0.99)
    assert "is allowed" in bench.compare(memory, layout, tf32=True)
    memory.close()


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_they_compile_without_spills(arch: str) -> None:
    square = (4096, 4096, 4096)
    kernels = [product(*square, "m k", b, t="f32", out="f32") for b in ("n k", "k n")]
    attention = cascade("causal", 128, t="f32", out="f32")
    steps = [Step(k, s) for k in kernels for s in schedules(k)[:2]]
    steps += [Step(attention, s) for s in schedules(attention) if ("held", 1) in s.options]
    texts = [source([emit(s, "kernel").text]) for s in steps]
    for step, cubin in zip(steps, compile_cubins(texts, arch), strict=True):
        assert isinstance(cubin, Cubin), cubin
        assert cubin.spilled == 0, step.schedule


# -- on a GPU


@pytest.mark.cuda
@pytest.mark.parametrize("name", KERNELS)
def test_products_equal_the_numpy_executor(name: str) -> None:
    kernel, _ = KERNELS[name]
    on_gpu = OnGpu([Step(kernel, s) for s in schedules(kernel)])
    for number in range(len(schedules(kernel))):
        check(name, partial(on_gpu.run, number, values=SIZES))
