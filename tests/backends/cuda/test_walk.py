"""Walks along the rows of a cache: which loops they are, their code, and that they are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda import cache
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.schedule import schedules
from lumi.dtype import BF16, F32
from lumi.llir.kernel import Kernel, Schedule, Step, written
from tests.backends.cpu.kernels import assert_close, matmul, random_buffers
from tests.backends.cuda.kernels import OnGpu, plan_of, read

WALKS = ("attention", "attention_chunks", "attention_wide", "attention_given")

TOLERANCE = 1e-4
"""The exponential of a sum of 128 products: rounding in the sum moves it by as much as the sum is large."""


def walks(kernel: Kernel) -> list[Schedule]:
    return [s for s in schedules(kernel) if s.template == "walk"]


def test_heads_share_the_rows_of_their_cache() -> None:
    found = cache.find(read("attention_chunks"))
    assert found is not None
    assert (found.cells, found.heads, found.axis) == (("c", "ch"), ("h",), "f")
    assert (found.together, found.positions) == (4, 8)
    assert [(r.load.access.buffer, r.lanes) for r in found.products] == [("B1", 16)]
    assert [(u.rows.load.access.buffer, u.carry.previous) for u in found.updates] == [("B2", "v3")]


@pytest.mark.parametrize(
    "kernel",
    [
        matmul({"m": 1, "n": 64, "k": 512}, "mk", "nk", {"n": 8, "k": 64}, BF16),
        plan_of("softmax").steps[0].kernel,
        replace(read("attention"), axes={**read("attention").axes, "e": 72, "g": 72}),
        replace(read("attention_chunks"), axes={**read("attention_chunks").axes, "h": 3}),
    ],
    ids=["product", "softmax", "rows that fill no lanes", "three heads"],
)
def test_other_loops_are_no_walks(kernel: Kernel) -> None:
    assert cache.find(kernel) is None
    with pytest.raises(ValueError, match="does not walk"):
        emit(Step(kernel, Schedule("walk")), "kernel")


def test_walk_becomes_this(golden: Callable[..., None]) -> None:
    kernel = read("attention_chunks")
    golden(emit(Step(kernel, walks(kernel)[0]), "attend").text, ".cu", name="attend")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_walks_compile_without_spills(arch: str) -> None:
    steps = [Step(k, s) for k in map(read, WALKS) for s in walks(k)]
    assert len(steps) >= len(WALKS)
    for cubin in compile_cubins([source([emit(s, "kernel").text]) for s in steps], arch):
        assert isinstance(cubin, Cubin), cubin
        assert cubin.spilled == 0


def test_blocks_hold_all_cells() -> None:
    kernel = read("attention_chunks")
    for schedule in walks(kernel):
        code = emit(Step(kernel, schedule), "kernel")
        assert code.cells({"past": 0}) * code.threads // 32 >= 2 * 3


@pytest.mark.cuda
@pytest.mark.parametrize("name", WALKS)
def test_walk_equals_the_numpy_executor(name: str) -> None:
    kernel = read(name)
    on_gpu = OnGpu([Step(kernel, s) for s in walks(kernel)])
    for past in (0, 1, 2, 6, 7, 8, 15, 16, 31, 100, 257, 639):
        want = random_buffers(kernel, {"past": past}, past)
        given = {n: a.copy() for n, a in want.items()}
        interpret.run(kernel, want, {"past": past})
        for number in range(len(on_gpu.steps)):
            got = {n: a.copy() for n, a in given.items()}
            on_gpu.run(number, got, {"past": past})
            for buffer in written(kernel):
                assert_close(got[buffer], want[buffer], F32, TOLERANCE, f"{buffer} at {past}")
