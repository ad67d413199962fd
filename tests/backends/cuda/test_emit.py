"""CUDA sources: three that people read, and that NVRTC takes all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lumi import dim
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.grid import SHARED
from lumi.backends.cuda.schedule import DEFAULT
from lumi.dtype import BF16, F32
from lumi.llir.kernel import Loop, Map, Schedule, Step
from tests.backends.cpu.kernels import elementwise, matmul
from tests.backends.cuda.kernels import SIMPLE, plan_of, variants
from tests.workloads import WORKLOADS


def test_elementwise_moves_sixteen_bytes_at_once(golden: Callable[..., None]) -> None:
    kernel = elementwise("add", F32, F32, 2)
    whole = type(kernel)({"i": 1 << 20}, kernel.grid, (), kernel.tiles, kernel.body)
    golden(emit(Step(whole, DEFAULT), "add").text, ".cu", name="add")


def test_product_with_a_vector_reads_rows_by_warps(golden: Callable[..., None]) -> None:
    kernel = matmul({"m": 1, "n": 14336, "k": 4096}, "mk", "nk", {"n": 8, "k": 512}, BF16)
    step = Step(kernel, Schedule("stream", (("rows", 4), ("unroll", 2))))
    golden(emit(step, "product").text, ".cu", name="product")


def test_softmax_reduces_rows_by_blocks(golden: Callable[..., None]) -> None:
    golden(emit(Step(plan_of("softmax").steps[0].kernel, DEFAULT), "softmax").text, ".cu", name="softmax")


@pytest.mark.parametrize(("arch", "names"), [("sm_80", SIMPLE), ("sm_90a", tuple(WORKLOADS))])
def test_workloads_compile(arch: str, names: tuple[str, ...]) -> None:
    steps = {
        f"{name} {number} {schedule}": Step(step.kernel, schedule)
        for name in names
        for number, step in enumerate(plan_of(name).steps)
        for schedule in variants(step.kernel)[: 2 if name in SIMPLE else 1]
    }
    texts = [source([emit(step, "kernel").text]) for step in steps.values()]
    for name, cubin in zip(steps, compile_cubins(texts, arch), strict=True):
        assert isinstance(cubin, Cubin), f"{name}: {cubin}"
        if name.partition(" ")[0] in SIMPLE and "simt" in name:
            assert cubin.spilled == 0, name


@pytest.mark.parametrize("name", ["attention_full", "attention_window", "linear_cross_entropy"])
def test_tiles_shrink_until_values_fit_shared_memory(name: str) -> None:
    for step in plan_of(name).steps:
        code = emit(Step(step.kernel, DEFAULT), "kernel")
        assert 0 < code.shared <= SHARED


def test_values_that_nothing_bounds_are_refused() -> None:
    found = matmul({"m": 4, "n": dim.var("n"), "k": 64}, "mk", "kn", {"m": 1, "k": 16})
    (loop, store) = found.body
    assert isinstance(loop, Loop)
    rescaled = Map("next", "mul", ("previous", "p"), ("m", "n"), F32)
    carried = replace(loop, body=(*loop.body[:-1], rescaled))
    kernel = replace(found, grid=("m",), resident=("n",), body=(carried, store))
    with pytest.raises(ValueError, match="nothing bounds the values over"):
        emit(Step(kernel, DEFAULT), "kernel")


def test_grid_of_a_launch_follows_the_dims() -> None:
    code = emit(Step(elementwise("add", F32, F32, 2), DEFAULT), "kernel")
    assert code.cells({"n": 0}) == 0
    assert code.cells({"n": 1}) == 1
    tile = code.grid[0][1]
    assert code.cells({"n": 5 * tile + 1}) == 6
