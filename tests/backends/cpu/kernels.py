"""Kernels made by hand, and running them: compiled, or in numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lumi import dim
from lumi.backends.cpu import interpret
from lumi.backends.cpu.compile import compile_library
from lumi.backends.cpu.emit import driver_source, emit, source
from lumi.backends.cpu.launch import Launches, load_driver, open_library
from lumi.dim import Extent
from lumi.dtype import BF16, BOOL, F16, F32, DType
from lumi.errors import Source
from lumi.field.access import Access
from lumi.field.index import of_axis
from lumi.llir.arithmetic import from_memory, to_memory
from lumi.llir.kernel import (
    Carry,
    Dot,
    Kernel,
    Load,
    Loop,
    Map,
    Reduce,
    Schedule,
    Step,
    Store,
    accesses,
    buffers,
    dims,
    written,
)
from lumi.llir.parse import parse

Array = np.ndarray
C = Schedule("c")
SCHEDULES = (
    C,
    Schedule("stream", (("rows", 4),)),
    Schedule("stream", (("ahead", 8192), ("unroll", 2))),
    Schedule("stream", (("rows", 2), ("unroll", 2))),
    Schedule("matmul", (("columns", 3), ("rows", 4))),
    Schedule("matmul", (("columns", 2), ("rows", 6))),
)


class Compiled:
    """Steps compiled into one library; `run(number, buffers, dims)` runs one of them in place."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = list(steps)
        texts = [emit(step, f"k{number}") for number, step in enumerate(self.steps)]
        self.library = open_library(compile_library(source(texts)))
        self.driver = load_driver(compile_library(driver_source()))

    def run(self, number: int, arrays: Mapping[str, Array], values: Mapping[str, int] = {}) -> None:
        kernel = self.steps[number].kernel
        addresses = [arrays[b].ctypes.data for b in buffers(kernel)]
        entry = (self.library[f"k{number}"], dims(kernel), addresses)
        Launches(self.driver, [entry]).run(values)


def run_compiled(
    kernel: Kernel, arrays: Mapping[str, Array], values: Mapping[str, int] = {}, schedule: Schedule = C
) -> None:
    Compiled([Step(kernel, schedule)]).run(0, arrays, values)


def read(name: str) -> Kernel:
    """The kernel in `texts/NAME.lumi`."""
    path = Path(__file__).parent / "texts" / f"{name}.lumi"
    return parse(Source(path.name, path.read_text()))


def access(buffer: str, axes: str, extents: Mapping[str, Extent], dtype: DType = F32) -> Access:
    """An access at one single-letter axis a dimension."""
    return Access(buffer, tuple(map(of_axis, axes)), tuple(extents[a] for a in axes), dtype)


def random_buffers(kernel: Kernel, values: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """Random raw memory for every buffer: normal floats, small whole numbers."""
    generator = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for one, _ in accesses(kernel):
        shape = tuple(dim.value(e, values) for e in one.shape)
        if one.buffer not in found:
            found[one.buffer] = random_array(one.dtype, shape, generator)
    return found


def random_array(dtype: DType, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    if dtype.is_float:
        return to_memory(generator.standard_normal(shape).astype(np.float32), dtype)
    if dtype == BOOL:
        return generator.integers(0, 2, shape).astype(bool)
    low, high = (-9, 9) if dtype.kind == "int" else (0, 255)
    return generator.integers(low, high, shape, endpoint=True).astype(dtype.storage)


def assert_equal_runs(kernel: Kernel, values: Mapping[str, int], compiled: Compiled, number: int) -> None:
    """A compiled step and the numpy executor agree on random data.

    They add in another order, and round halves at other places of a reduction.
    """
    want = random_buffers(kernel, values)
    got = {name: array.copy() for name, array in want.items()}
    interpret.run(kernel, want, values)
    compiled.run(number, got, values)
    types = {a.buffer: a.dtype for a, _ in accesses(kernel)}
    for name in written(kernel):
        tolerance = {F16: 2.0**-9, BF16: 2.0**-6}.get(types[name], 3e-6)
        assert_close(got[name], want[name], types[name], tolerance, f"{name} at {dict(values)}")


def assert_close(got: Array, want: Array, dtype: DType, tolerance: float, what: Any = "") -> None:
    if not dtype.is_float:
        np.testing.assert_array_equal(got, want, err_msg=str(what))
        return
    x, y = (from_memory(a, dtype).astype(np.float64) for a in (got, want))
    finite = np.isfinite(y)
    least = 2.0**-14 if dtype == F16 else 1e-30
    scale = np.abs(y[finite]).max(initial=least)
    np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * scale, err_msg=str(what))


# -- kernels


def elementwise(op: str, operand: DType, result: DType, arguments: int, tile: int = 16) -> Kernel:
    """R[i] = op(A[i], B[i] …) with a symbolic extent; for `sel` the first argument is a bool."""
    extents: dict[str, Extent] = {"i": dim.var("n")}
    loads = []
    for number in range(arguments):
        dtype = BOOL if op == "sel" and number == 0 else operand
        loads.append(Load(f"v{number}", access("ABC"[number], "i", extents, dtype), (), ("i",), dtype))
    made = Map("r", op, tuple(load.var for load in loads), ("i",), result)
    store = Store(access("R", "i", extents, result), "r", ("i",))
    return Kernel(extents, ("i",), (), {"i": tile}, (*loads, made, store))


def reduction(op: str, dtype: DType, tile: int, over: str = "j") -> Kernel:
    """R[i] = the combination of A[i, j] over j, or R[j] over i, in a loop over tiles."""
    extents: dict[str, Extent] = {"i": dim.var("m"), "j": dim.var("n")}
    kept = "i" if over == "j" else "j"
    combine = {"sum": "add", "max": "max", "mul": "mul"}[op]
    body = (
        Load("a", access("A", "ij", extents, dtype), (), ("i", "j"), dtype),
        Reduce("p", op, (over,), "a", (kept,), dtype),
        Map("next", combine, ("previous", "p"), (kept,), dtype),
    )
    carry = Carry(op, "previous", "next", "final", (kept,), dtype)
    loop = Loop((over,), None, (), (carry,), body)
    store = Store(access("R", kept, extents, dtype), "final", (kept,))
    return Kernel(extents, (kept,), (), {kept: 4, over: tile}, (loop, store))


def matmul(
    extents: Mapping[str, Extent], a: str, b: str, tiles: Mapping[str, int], dtype: DType = F32
) -> Kernel:
    """R[m, n] = Σ_k A·B, whose dimensions are `a` and `b`, each over letters of m, n, k."""
    body = (
        Load("a", access("A", a, extents, dtype), (), tuple(x for x in extents if x in a), dtype),
        Load("b", access("B", b, extents, dtype), (), tuple(x for x in extents if x in b), dtype),
        Dot("p", ("k",), "a", "b", ("m", "n"), dtype),
        Map("next", "add", ("previous", "p"), ("m", "n"), dtype),
    )
    loop = Loop(("k",), None, (), (Carry("sum", "previous", "next", "final", ("m", "n"), dtype),), body)
    store = Store(access("R", "mn", extents, dtype), "final", ("m", "n"))
    return Kernel(dict(extents), ("m", "n"), (), dict(tiles), (loop, store))
