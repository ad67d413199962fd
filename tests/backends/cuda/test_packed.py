"""Products of packed matrices: which kernels have some, what becomes of them, and that it is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lumi.backends.cuda import packed, packed_plan
from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.emit import emit, source
from lumi.backends.cuda.launch import Entry, Launches, load_kernels
from lumi.backends.cuda.schedule import schedules
from lumi.backends.cuda.staged import ROOM
from lumi.blocks import BLOCKS
from lumi.errors import Source
from lumi.llir.kernel import Kernel, Schedule, Step, Store, buffers
from lumi.llir.parse import parse
from lumi.runtime.dequantize import dequantize, split_plane
from tests.backends.cpu.test_templates import PLANES
from tests.backends.cuda.kernels import OnGpu, read
from tests.runtime.files import random_blocks

TEXTS = Path(__file__).parent.parent / "cpu" / "texts"

SIZES = ((24, 3), (40, 7), (8, 1), (136, 20), (1064, 16), (4096, 33), (272, 56))
"""Rows, and blocks of a row: the planes of most have rows that begin anywhere."""

DECODE = ((1024, 4096), (4096, 4096), (14336, 4096), (4096, 14336), (128256, 4096))
"""Shapes of the matrices of Llama-3-8B."""

Array = np.ndarray


def product(name: str, rows: int, blocks: int) -> Kernel:
    """A matrix of so many rows and blocks times a vector."""
    text, size = (TEXTS / f"{name}.lumi").read_text(), BLOCKS[name].elements
    for old, new in (
        (f"[{3 * size}]", f"[{blocks * size}]"),
        ("[24 3", f"[{rows} {blocks}"),
        ("[24]", f"[{rows}]"),
        ("(a 24)", f"(a {rows})"),
        ("(b 3)", f"(b {blocks})"),
    ):
        assert old in text
        text = text.replace(old, new)
    return parse(Source(name, text))


def operands(name: str, rows: int, blocks: int) -> tuple[dict[str, Array], Array]:
    """The buffers of a product but for its result, and the weights they hold, exactly dequantised."""
    block = BLOCKS[name]
    shape, raw = (rows, blocks * block.elements), random_blocks(block, rows, blocks)
    held = {"B0": np.random.default_rng(1).standard_normal(shape[1]).astype(np.float32)}
    for plane in block.planes:
        held[PLANES[name][plane.name]] = np.ascontiguousarray(split_plane(raw, block, plane, shape))
    return held, dequantize(raw, block, shape)


def rings(kernel: Kernel) -> list[Schedule]:
    return [s for s in schedules(kernel) if s.template == "packed"]


def is_tiled(schedule: Schedule) -> bool:
    return bool(dict(schedule.options).get("tiles"))


def untiled(kernel: Kernel) -> list[Schedule]:
    return [s for s in rings(kernel) if not is_tiled(s)]


# -- which kernels


@pytest.mark.parametrize("name", PLANES)
def test_rows_of_all_planes_are_found(name: str) -> None:
    found = packed.find(product(name, 40, 7))
    assert found is not None
    assert (found.count, found.length) == (40, 7 * BLOCKS[name].elements)
    (matrix,) = found.matrices
    assert {p.buffer for p in matrix.planes} == set(PLANES[name].values())
    assert found.row == 7 * BLOCKS[name].bytes


def test_minima_of_blocks_are_parts_without_quants() -> None:
    found = packed.find(product("q4_k", 40, 7))
    assert found is not None
    scaled, least = found.matrices[0].parts
    assert (len(scaled.quants), scaled.negative) == (1, False)
    assert (len(least.quants), least.negative) == (0, True)
    assert len(scaled.coefficients) == len(least.coefficients) == 2


def test_plane_that_ends_within_a_piece_is_left_to_others() -> None:
    """A copy of whole pieces would read beyond it."""
    assert packed.find(product("q8_0", 37, 3)) is None


@pytest.mark.parametrize("name", ["gate_up", "attended"])
def test_plain_matrices_are_left_to_others(name: str) -> None:
    assert packed.find(read(name)) is None


def test_schedule_of_another_kernel_is_refused() -> None:
    with pytest.raises(ValueError, match="is scheduled as one"):
        emit(Step(read("gate_up"), Schedule("packed")), "kernel")


# -- their code


@pytest.mark.parametrize("name", ["q4_0", "q5_0"])
def test_quants_are_unpacked_in_words(name: str, golden: Callable[..., None]) -> None:
    kernel = product(name, 64, 32)
    golden(emit(Step(kernel, untiled(kernel)[0]), name).text, ".cu", name=name)


def test_tensor_cores_multiply_words_of_quants(golden: Callable[..., None]) -> None:
    kernel = product("q4_0", 4096, 128)
    golden(emit(Step(kernel, rings(kernel)[0]), "tiles").text, ".cu", name="tiles")


@pytest.mark.parametrize("name", PLANES)
def test_no_quant_is_converted_by_itself(name: str) -> None:
    kernel = product(name, 64, 32)
    for schedule in rings(kernel):
        text = emit(Step(kernel, schedule), name).text
        assert ("multiply_bytes(" if is_tiled(schedule) else "tiny_byte<3>(") in text
        assert "(i8)(" not in text


def test_tensor_cores_multiply_where_weights_share_bytes() -> None:
    """What has a byte of its own is read as fast as it is unpacked."""
    for name in PLANES:
        assert is_tiled(rings(product(name, 4096, 4096 // BLOCKS[name].elements))[0]) == (name != "q8_0")


def test_rows_too_long_for_registers_are_left_to_threads() -> None:
    """Each thread holds the digits that it multiplies with."""
    assert any(map(is_tiled, rings(product("q4_k", 64, 30))))
    assert not any(map(is_tiled, rings(product("q4_k", 64, 56))))


def test_vectors_of_their_own_are_not_multiplied_as_one_tile() -> None:
    found = packed.find(product("q4_k", 64, 16))
    assert found is not None
    (matrix,) = found.matrices
    other = replace(matrix, vector=(*matrix.vector, *matrix.vector))
    assert packed_plan.plan(replace(found, matrices=(matrix, matrix)), {"tiles": 1}) is not None
    assert packed_plan.plan(replace(found, matrices=(matrix, other)), {"tiles": 1}) is None


@pytest.mark.parametrize("rows", [24, 4096])
def test_spread_rows_begin_in_other_banks(rows: int) -> None:
    """Two rows, 16 bytes of each of which four threads read together, must not meet in a bank."""
    found = packed.find(product("q4_k", rows, 16))
    assert found is not None
    made = packed_plan.plan(found, {"tiles": 1, "spread": 1, "width": 32})
    assert isinstance(made, packed_plan.Tiles)
    apart = {p.row: made.apart(0, p) for p in found.matrices[0].planes}
    assert apart == {32: 32, 192: 192, 2048: 2048 + 64}


def test_hot_kernels_compile_without_spills() -> None:
    kernels = {
        f"{name} {rows} {length}": product(name, rows, length // BLOCKS[name].elements)
        for name in ("q8_0", "q4_k", "q6_k")
        for rows, length in DECODE
    }
    codes = {
        f"{name} {s}": emit(Step(k, s), "kernel")
        for name, k in kernels.items()
        for s in (rings(k)[0], untiled(k)[0])
    }
    cubins = compile_cubins([source([code.text]) for code in codes.values()], "sm_90a")
    for (name, code), cubin in zip(codes.items(), cubins, strict=True):
        assert isinstance(cubin, Cubin), f"{name}: {cubin}"
        assert cubin.spilled == 0, name
        assert code.shared <= ROOM, name


def test_teams_take_turns_at_stages() -> None:
    """A slot must always belong to one team, or a lap could be taken for another."""
    for name in PLANES:
        kernel = product(name, 4096, 4096 // BLOCKS[name].elements)
        found = packed.find(kernel)
        assert found is not None
        for schedule in rings(kernel):
            made = packed_plan.plan(found, dict(schedule.options))
            assert made is not None
            assert made.stages % made.teams == 0
            assert 2 <= made.flight <= made.stages


# -- their results


@pytest.mark.cuda
@pytest.mark.parametrize("name", PLANES)
def test_product_equals_exact_dequantisation(name: str) -> None:
    kernels = {size: product(name, *size) for size in SIZES}
    steps = {size: [Step(k, s) for s in rings(k)] for size, k in kernels.items()}
    on_gpu, number = OnGpu([s for each in steps.values() for s in each]), 0
    for (rows, blocks), each in steps.items():
        assert each
        held, weights = operands(name, rows, blocks)
        x, wide = held["B0"].astype(np.float64), weights.astype(np.float64)
        (out,) = (s.access.buffer for s in kernels[rows, blocks].body if isinstance(s, Store))
        for _ in each:
            held[out] = np.full(rows, np.nan, np.float32)
            on_gpu.run(number, held)
            assert np.all(np.abs(held[out] - wide @ x) <= 1e-6 * (np.abs(wide) @ np.abs(x))), (rows, blocks)
            number += 1


@pytest.mark.cuda
@pytest.mark.parametrize("cells", [1, 5, 39])
@pytest.mark.parametrize("constant", [True, False])
def test_results_do_not_depend_on_blocks_nor_on_what_is_constant(cells: int, constant: bool) -> None:
    kernel = product("q4_k", 1064, 16)
    step = Step(kernel, rings(kernel)[0])
    held, _ = operands("q4_k", 1064, 16)
    (out,) = (s.access.buffer for s in kernel.body if isinstance(s, Store))
    held[out], on_gpu = np.zeros(1064, np.float32), OnGpu([step])
    on_gpu.run(0, held)
    want, gpu, names = held[out].copy(), on_gpu.gpu, buffers(kernel)
    (loaded,) = load_kernels(gpu, [step])
    blocks = {n: gpu.allocate(held[n].nbytes) for n in names}
    for n, block in blocks.items():
        gpu.write(int(block), held[n].reshape(-1).view(np.uint8))
    entry = Entry(
        loaded, tuple(int(blocks[n]) for n in names), cells, tuple(constant and n != out for n in names)
    )
    Launches(gpu, [entry, entry, entry]).run({})
    got = np.empty_like(want)
    gpu.read(int(blocks[out]), got.view(np.uint8))
    np.testing.assert_array_equal(got, want)
