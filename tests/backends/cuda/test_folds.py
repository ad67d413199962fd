"""How the threads of a block share reductions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.schedule import DEFAULT
from lumi.dtype import F32
from lumi.llir.kernel import Kernel, Step
from tests.backends.cpu.kernels import assert_equal_runs, reduction
from tests.backends.cuda.kernels import OnGpu, read

COLUMNS = reduction("sum", F32, 8, "i")


@pytest.mark.parametrize("kernel", [read("joined"), COLUMNS], ids=["joined", "columns"])
def test_neighbouring_threads_read_neighbouring_columns(kernel: Kernel) -> None:
    text = emit(Step(kernel, DEFAULT), "kernel").text
    assert "apart_sum_f32<" in text
    for arch in ("sm_80", "sm_90a"):
        (cubin,) = compile_cubins([source([text])], arch)
        assert isinstance(cubin, Cubin), cubin
        assert cubin.spilled == 0


def test_rows_are_shared_by_threads_side_by_side() -> None:
    text = emit(Step(reduction("sum", F32, 8), DEFAULT), "kernel").text
    assert "across_sum_f32<32>" in text
    assert "apart_" not in text


def test_positions_that_a_team_takes_at_once_are_no_loop() -> None:
    kernel = reduction("sum", F32, 8)
    short = replace(kernel, axes={**kernel.axes, "j": 20})
    code = emit(Step(short, DEFAULT), "kernel")
    assert "for (int x_" in emit(Step(kernel, DEFAULT), "kernel").text
    assert "for (int x_" not in code.text
    assert "across_sum_f32<32>" in code.text


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["joined", "window"])
def test_kernel_equals_the_numpy_executor(name: str) -> None:
    kernel = read(name)
    assert_equal_runs(kernel, {}, OnGpu([Step(kernel, DEFAULT)]), 0)


@pytest.mark.cuda
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 9), (33, 64), (100, 7), (257, 1000)])
def test_columns_are_summed(m: int, n: int) -> None:
    assert_equal_runs(COLUMNS, {"m": m, "n": n}, OnGpu([Step(COLUMNS, DEFAULT)]), 0)
