"""Kernels that run together in one launch: their code, what is refused, and that they are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from lumi.backends.cpu import interpret
from lumi.backends.cuda import matrix, rings
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.costs import Costs
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.launch import Entry, Launches, load_kernels
from lumi.backends.cuda.schedule import DEFAULT, schedules, together
from lumi.backends.cuda.staged import HEAD, ROOM
from lumi.dtype import BF16, F16, F32, DType
from lumi.llir.kernel import Kernel, Schedule, Step, accesses
from lumi.llir.rename import rename
from tests.backends.cpu.kernels import (
    Array,
    assert_close,
    elementwise,
    matmul,
    random_buffers,
    reduction,
)
from tests.backends.cuda.kernels import OnGpu, read

RING = Schedule("ring", (("flight", 2), ("stage", 32), ("stages", 6)))
STREAM = Schedule("stream", (("unroll", 4),))


def product(number: int, rows: int, length: int, dtype: DType = BF16) -> Kernel:
    """Product `number` of a launch: rows of W… times the vector of its length, to O…."""
    found = matmul({"m": 1, "n": rows, "k": length}, "mk", "nk", {"n": 8, "k": 512}, dtype)
    vector, weights, out = (a.buffer for a, _ in accesses(found))
    return rename(found, {vector: f"X{length}{dtype}", weights: f"W{number}", out: f"O{number}"})


def apart(kernel: Kernel, number: int) -> Kernel:
    """A kernel on buffers of its own."""
    return rename(kernel, {a.buffer: f"{a.buffer}_{number}" for a, _ in accesses(kernel)})


def step(kernels: Sequence[Kernel], schedule: Schedule) -> Step:
    first, *others = kernels
    return Step(first, schedule, tuple(others))


MIXED = {
    "three": [product(0, 300, 512), product(1, 33, 512), product(2, 5, 512)],
    "few": [product(0, 2, 1024), product(1, 3, 1024)],
    "lengths": [product(0, 131, 4096), product(1, 700, 520), product(2, 64, 2080)],
    "types": [product(0, 133, 1024, BF16), product(1, 17, 1024, F32), product(2, 90, 512, F16)],
    "epilogues": [read("gate_up"), apart(read("gate_up"), 1), apart(read("attended"), 2)],
    "heads": [product(0, 4096, 4096), product(1, 1024, 4096), product(2, 1024, 4096)],
}
"""Kernels that share a ring, by name."""

CELLS = {
    "elementwise": [apart(elementwise("add", F32, F32, 2), k) for k in range(3)],
    "reductions": [apart(read("softmax"), 0), apart(reduction("sum", F32, 8), 1), apart(read("rms_norm"), 2)],
    "products": [product(0, 37, 130, F32), product(1, 5, 130, F32), elementwise("mul", F32, F32, 2)],
}
"""Kernels whose blocks share cells, by name."""

VALUES = {"m": 7, "n": 1000}


# -- their code


def test_rows_of_several_matrices_pass_through_one_ring(golden: Callable[..., None]) -> None:
    kernels = [product(0, 300, 512), product(1, 33, 512)]
    golden(emit(step(kernels, RING), "both").text, ".cu", name="both")


def test_blocks_take_cells_of_one_kernel_after_those_of_another(golden: Callable[..., None]) -> None:
    kernels = [apart(elementwise("add", F32, F32, 2), k) for k in range(2)]
    golden(emit(step(kernels, DEFAULT), "sums").text, ".cu", name="sums")


def test_rings_compile_without_spills() -> None:
    codes = {name: emit(step(kernels, RING), "kernel") for name, kernels in MIXED.items()}
    cubins = compile_cubins([source([code.text]) for code in codes.values()], "sm_90a")
    for (name, code), cubin in zip(codes.items(), cubins, strict=True):
        assert isinstance(cubin, Cubin), f"{name}: {cubin}"
        assert cubin.spilled == 0, name
        assert code.shared <= ROOM, name


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_shared_cells_compile(arch: str) -> None:
    steps = [step(kernels, s) for kernels in CELLS.values() for s in (DEFAULT, STREAM)]
    for cubin in compile_cubins([source([emit(s, "kernel").text]) for s in steps], arch):
        assert isinstance(cubin, Cubin), str(cubin)


def test_pieces_of_all_kernels_are_those_of_one() -> None:
    found = [m for k in MIXED["heads"] if (m := matrix.find(k)) is not None]
    made = rings.plans(found, dict(RING.options))
    assert made is not None
    assert {(p.cells, p.total, p.most, p.stages, p.stage) for p in made} == {(132, 6144, 47, 6, 32 << 10)}
    assert HEAD + 6 * (32 << 10) + max(p.results for p in made) <= ROOM


def test_launch_has_the_cells_of_all_grids() -> None:
    kernels = CELLS["elementwise"]
    alone = [emit(Step(k, DEFAULT), "kernel").cells(VALUES) for k in kernels]
    assert emit(step(kernels, DEFAULT), "kernel").cells(VALUES) == sum(alone)


# -- which may run together


def test_schedules_are_those_that_all_have() -> None:
    assert [s.template for s in together(MIXED["heads"])].count("ring") == 3
    assert DEFAULT in together(MIXED["heads"])
    assert all(s.template != "ring" for s in together([*MIXED["few"], CELLS["elementwise"][0]]))
    assert {s.template for s in together(CELLS["elementwise"])} == {"simt", "stream"}


def test_kernels_of_many_buffers_share_no_ring() -> None:
    kernels = [product(k, 8, 512) for k in range(16)]
    assert all(s.template != "ring" for s in together(kernels))
    with pytest.raises(ValueError, match="33 buffers"):
        emit(step(kernels, RING), "kernel")


@pytest.mark.parametrize("schedule", [Schedule("walk"), Schedule("lines"), Schedule("cublaslt")])
def test_other_templates_run_one_kernel(schedule: Schedule) -> None:
    with pytest.raises(ValueError, match="run together as"):
        emit(step(CELLS["elementwise"], schedule), "kernel")


def test_kernel_without_rows_is_refused_beside_one_with() -> None:
    with pytest.raises(ValueError, match="is scheduled as one"):
        emit(step([MIXED["few"][0], CELLS["elementwise"][0]], RING), "kernel")


def test_model_expects_one_start_instead_of_many() -> None:
    costs, kernels = Costs(), MIXED["heads"]
    alone = sum(costs.cost(k, RING, {}).seconds for k in kernels)
    assert costs.together(kernels, RING, {}).seconds < alone
    cells = CELLS["elementwise"]
    assert costs.together(cells, DEFAULT, VALUES).seconds < sum(
        costs.cost(k, DEFAULT, VALUES).seconds for k in cells
    )


# -- their results


def arrays_of(kernels: Sequence[Kernel], values: Mapping[str, int] = VALUES) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for number, kernel in enumerate(kernels):
        found = random_buffers(kernel, values, number) | found
    return found


def assert_same_as_apart(kernels: Sequence[Kernel], chosen: Sequence[Schedule]) -> None:
    """One launch gives bit for bit what a launch for each kernel does, and that is what numpy computes."""
    given, joint = arrays_of(kernels), [step(kernels, s) for s in chosen]
    want = {n: a.copy() for n, a in given.items()}
    for kernel in kernels:
        interpret.run(kernel, want, VALUES)
    alone = OnGpu([Step(k, s) for s in chosen for k in kernels])
    once, types = OnGpu(joint), {a.buffer: a.dtype for k in kernels for a, _ in accesses(k)}
    for number, one in enumerate(joint):
        first, second = ({n: a.copy() for n, a in given.items()} for _ in range(2))
        once.run(number, first, VALUES)
        for place in range(len(kernels)):
            alone.run(number * len(kernels) + place, second, VALUES)
        for name in one.written:
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
            tolerance = {F16: 2.0**-9, BF16: 2.0**-6}.get(types[name], 3e-6)
            assert_close(first[name], want[name], types[name], tolerance, name)


@pytest.mark.cuda
@pytest.mark.parametrize("name", MIXED)
def test_shared_ring_equals_rings_apart(name: str) -> None:
    kernels = MIXED[name]
    assert_same_as_apart(kernels, [s for s in schedules(kernels[0]) if s.template == "ring"])


@pytest.mark.cuda
@pytest.mark.parametrize("name", CELLS)
def test_shared_cells_equal_cells_apart(name: str) -> None:
    assert_same_as_apart(CELLS[name], [DEFAULT, STREAM, replace(STREAM, options=(("threads", 128),))])


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["three", "epilogues"])
@pytest.mark.parametrize("cells", [1, 5, 39, 400])
@pytest.mark.parametrize("constant", [True, False])
def test_results_do_not_depend_on_blocks_nor_on_what_is_constant(
    name: str, cells: int, constant: bool
) -> None:
    kernels = MIXED[name]
    for schedule in (RING, DEFAULT):
        one = step(kernels, schedule)
        arrays, on_gpu = arrays_of(kernels), OnGpu([one])
        want = {n: a.copy() for n, a in arrays.items()}
        on_gpu.run(0, want, VALUES)
        gpu, (loaded,) = on_gpu.gpu, load_kernels(on_gpu.gpu, [one])
        blocks = {n: gpu.allocate(arrays[n].nbytes) for n in one.buffers}
        for n, block in blocks.items():
            gpu.write(int(block), arrays[n].reshape(-1).view(np.uint8))
        masks = tuple(constant and n not in one.written for n in one.buffers)
        entry = Entry(loaded, tuple(int(blocks[n]) for n in one.buffers), cells, masks)
        Launches(gpu, [entry, entry, entry]).run(VALUES)
        for n in one.written:
            got = np.empty_like(arrays[n])
            gpu.read(int(blocks[n]), got.reshape(-1).view(np.uint8))
            np.testing.assert_array_equal(got, want[n])
