"""Elementwise kernels: what a thread loads before it stores, and that every size is right."""

from __future__ import annotations

import re

import pytest

from lumi import dim
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.schedule import DEFAULT, schedules
from lumi.dim import Extent
from lumi.dtype import BF16, F32, I64, DType
from lumi.llir.kernel import Kernel, Step
from tests.backends.cpu.kernels import assert_equal_runs, elementwise
from tests.backends.cuda.kernels import OnGpu

SIZES = (1, 1030, 3000, 4096, 5000, 1 << 16)
LARGE = 1 << 24
"""Elements that are more than the caches hold."""


def sized(count: Extent, dtype: DType = F32, inputs: int = 2) -> Kernel:
    kernel = elementwise("add" if inputs == 2 else "abs", dtype, dtype, inputs)
    (axis,) = kernel.grid
    return type(kernel)({axis: count}, kernel.grid, (), kernel.tiles, kernel.body)


def steps(kernel: Kernel) -> list[Step]:
    return [Step(kernel, s) for s in schedules(kernel)]


@pytest.mark.parametrize("count", [1 << 20, LARGE])
def test_nothing_is_stored_before_all_is_loaded(count: int) -> None:
    for step in steps(sized(count)):
        text = emit(step, "kernel").text
        assert re.findall(r"wide_(load|pass|store)\(", text) == ["load", "load", "store"], step.schedule


def test_reads_leave_the_cache_first_only_where_little_is_written() -> None:
    kernel = sized(1 << 20)
    assert "wide_pass" not in emit(steps(kernel)[0], "kernel").text


def test_a_block_has_no_idle_warps() -> None:
    for count, threads in ((1, 32), (40, 32), (1 << 20, 256)):
        code = emit(Step(sized(count), DEFAULT), "kernel")
        assert code.threads == threads
        assert f"__launch_bounds__({threads})" in code.text


def test_neither_points_that_a_block_takes_at_once_nor_its_only_cell_are_a_loop() -> None:
    assert "for (" not in emit(Step(sized(40), DEFAULT), "kernel").text
    assert "for (int cell" not in emit(Step(sized(LARGE), DEFAULT), "kernel").text


def test_blocks_go_on_from_cell_to_cell_where_dims_say_how_many_there_are() -> None:
    text = emit(Step(sized(dim.var("n")), DEFAULT), "kernel").text
    assert text.count("for (int cell") == 1


@pytest.mark.parametrize("dtype", [F32, BF16, I64])
def test_kernels_of_any_size_compile_without_spills(dtype: DType) -> None:
    every = [s for count in (*SIZES, LARGE) for s in steps(sized(count, dtype))]
    cubins = compile_cubins([source([emit(s, "kernel").text]) for s in every], "sm_90a")
    for step, cubin in zip(every, cubins, strict=True):
        assert isinstance(cubin, Cubin), f"{step.schedule}: {cubin}"
        assert cubin.spilled == 0


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [F32, BF16, I64])
@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("count", SIZES)
def test_kernels_of_any_size_equal_the_numpy_executor(count: int, inputs: int, dtype: DType) -> None:
    kernel = sized(count, dtype, inputs)
    on_gpu = OnGpu(steps(kernel))
    for number in range(len(on_gpu.steps)):
        assert_equal_runs(kernel, {"n": count}, on_gpu, number)
