"""Every kernel graph among the golden files, compiled under each schedule, against the numpy executor."""

from __future__ import annotations

from pathlib import Path

import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cpu.schedule import schedules
from lumi.errors import Source
from lumi.llir.kernel import KernelGraph, Step, accesses, dims, written
from lumi.llir.parse import parse_graph
from tests.backends.cpu.kernels import Array, Compiled, assert_close, random_buffers

GOLDEN = Path(__file__).parents[2] / "golden"
FILES = sorted(GOLDEN.glob("*/*.kernels"))


def graph_of(path: Path) -> KernelGraph:
    return parse_graph(Source(path.name, path.read_text()))


BATCH = ("b", "hk", "g")
"""Dims that only repeat the work."""


def steps_of(graph: KernelGraph) -> list[Step]:
    """Each kernel under one schedule of each template."""
    found = {
        (n, one.template): Step(s.kernel, one)
        for n, s in enumerate(graph.steps)
        for one in schedules(s.kernel)
    }
    return list(found.values())


def values_of(step: Step, size: int) -> dict[str, int]:
    return {name: 2 if name in BATCH else size + 2 * n for n, name in enumerate(dims(step.kernel))}


def run_both(compiled: Compiled, number: int, values: dict[str, int]) -> None:
    kernel = compiled.steps[number].kernel
    want = random_buffers(kernel, values)
    got: dict[str, Array] = {name: array.copy() for name, array in want.items()}
    interpret.run(kernel, want, values)
    compiled.run(number, got, values)
    types = {a.buffer: a.dtype for a, _ in accesses(kernel)}
    for name in written(kernel):
        where = f"{name}, {compiled.steps[number].schedule} at {values}"
        assert_close(got[name], want[name], types[name], 1e-5, where)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_compiled_kernels_equal_the_numpy_executor(path: Path) -> None:
    compiled = Compiled(steps_of(graph_of(path)))
    for number, step in enumerate(compiled.steps):
        for size in (3, 8, 21) if dims(step.kernel) else (0,):
            run_both(compiled, number, values_of(step, size))


def test_golden_graphs_have_loops_chunks_and_guards() -> None:
    """The files above exercise what they are here for."""
    assert len(FILES) > 20
    text = "".join(p.read_text() for p in FILES)
    assert all(word in text for word in (":chunk", ":when", ":carry", "dot", "subni"))
