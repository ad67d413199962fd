"""Parts of f32 numbers: the kernel that makes them compiles, and they add up on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cuda.compile import compile_cubin
from lumi.backends.cuda.gpu import open_gpu
from lumi.backends.cuda.split import PARTS, SOURCE, Split, open_splitter
from lumi.dtype import widen_bf16


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_kernel_compiles_without_spills(arch: str) -> None:
    assert compile_cubin(SOURCE, arch).spilled == 0


def test_rows_of_parts_are_aligned() -> None:
    split = Split(256, 2, 3, 13, (39, 13, 1))
    assert (split.row, split.part) == (16, 96)


def parts_of(values: np.ndarray, split: Split) -> np.ndarray:
    """The parts of a stack that lies in device memory as `values`, lowest first."""
    gpu = open_gpu()
    splitter, block = open_splitter(gpu), gpu.allocate(values.nbytes)
    gpu.write(int(block), values.reshape(-1).view(np.uint8))
    size = 2 * PARTS * split.part
    place = splitter.room(size)
    splitter.put(Split(int(block), split.batch, split.rows, split.columns, split.steps), place)
    raw = np.empty(size, np.uint8)
    gpu.read(place, raw)
    whole = raw.view(np.uint16).reshape(PARTS, split.batch, split.rows, split.row)
    return widen_bf16(whole[..., : split.columns])


@pytest.mark.cuda
@pytest.mark.parametrize("steps", [(15, 5, 1), (15, 1, 3), (0, 5, 1), (1, 10, 2)])
def test_parts_add_up_in_every_layout(steps: tuple[int, int, int]) -> None:
    values = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    batch = 2 if steps[0] else 1
    parts = parts_of(values, Split(0, batch, 3, 5, steps))
    want = np.lib.stride_tricks.as_strided(values, (batch, 3, 5), [4 * s for s in steps])
    np.testing.assert_array_equal(parts.astype(np.float64).sum(0), want)


@pytest.mark.cuda
def test_parts_of_odd_numbers_add_up() -> None:
    largest, least = np.finfo(np.float32).max, np.finfo(np.float32).tiny
    odd = [0.0, -0.0, largest, -largest, 2.0**-100, 1 + 2.0**-23, -1 + 2.0**-24, least * 2**20 * 1.1]
    drawn = np.random.default_rng(1).integers(0, 2**32, 4096, dtype=np.uint32).view(np.float32)
    large = drawn[np.isfinite(drawn) & (np.abs(drawn) > 2.0**-110)]
    values = np.concatenate([np.array(odd, np.float32), large])
    parts = parts_of(values, Split(0, 1, 1, len(values), (0, 0, 1)))
    np.testing.assert_array_equal(parts.astype(np.float64).sum(0).reshape(-1), values)


@pytest.mark.cuda
def test_parts_of_what_is_no_number_are_itself_and_zeros() -> None:
    bits = np.array([0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000], np.uint32)
    parts = parts_of(bits.view(np.float32), Split(0, 1, 1, 4, (0, 0, 1))).reshape(PARTS, 4)
    np.testing.assert_array_equal(parts[2], [np.inf, -np.inf, np.nan, np.nan])
    assert not parts[:2].any()


@pytest.mark.cuda
def test_memory_for_parts_stays_where_graphs_know_it() -> None:
    splitter = open_splitter(open_gpu())
    first = splitter.room(1 << 20)
    assert splitter.room(1 << 10) == splitter.room(1 << 20)
    assert splitter.room(1 << 28) != first
