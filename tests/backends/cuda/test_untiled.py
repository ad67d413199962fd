"""Loops run in one tile compute what the tiled ones do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda.untiled import untiled
from lumi.llir.kernel import Loop, accesses, buffers, walk, written
from tests.backends.cpu.kernels import assert_close, matmul, random_buffers
from tests.backends.cuda.kernels import read

VALUES = {"n": 3}


@pytest.mark.parametrize("name", ["softmax", "standardize", "rms_norm", "loss", "gate_up"])
def test_kernel_without_loops_gives_the_same_results(name: str) -> None:
    kernel = read(name)
    flat = untiled(kernel)
    assert flat is not None
    assert not any(isinstance(s, Loop) for s in walk(flat.body))
    assert buffers(flat) == buffers(kernel)
    want = random_buffers(kernel, VALUES)
    got = {buffer: array.copy() for buffer, array in want.items()}
    interpret.run(kernel, want, VALUES)
    interpret.run(replace(flat, resident=tuple(a for a in flat.axes if a not in flat.grid)), got, VALUES)
    types = {a.buffer: a.dtype for a, _ in accesses(kernel)}
    for buffer in written(kernel):
        assert_close(got[buffer], want[buffer], types[buffer], 1e-5, buffer)


def test_loop_over_chunks_stays() -> None:
    kernel = matmul({"m": 4, "n": 8, "k": 64, "c": 2}, "mk", "kn", {"m": 1, "k": 16})
    (loop, store) = kernel.body
    assert isinstance(loop, Loop)
    assert untiled(replace(kernel, body=(replace(loop, chunk="c"), store))) is None
