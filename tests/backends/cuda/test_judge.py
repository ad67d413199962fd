"""What the child does with memory: numbers made up, results compared, bytes summarised, where they lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lumi.backends.cuda.compile import Cubin, compile_cubins
from lumi.backends.cuda.gpu import open_gpu
from lumi.backends.cuda.judge import comparing, digesting
from lumi.backends.cuda.worker import Workbench, answered
from lumi.dtype import BF16, DTYPES, F32, F64, I32, DType, to_memory
from lumi.llir.json import decode, encode
from lumi.noise import Noise
from lumi.search.accuracy import Difference, difference
from lumi.search.child import SharedMemory
from lumi.search.samples import BLOCK, Sample

SPECIAL = (0.0, -0.0, 1.0, -1.0, 1.5, 3e38, 1e-40, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_kernels_that_judge_compile_without_spills(arch: str) -> None:
    for cubin in compile_cubins([*map(comparing, DTYPES.values()), digesting()], arch):
        assert isinstance(cubin, Cubin), cubin
        assert cubin.spilled == 0


class Bench:
    """A workbench and memory for its answers."""

    def __init__(self) -> None:
        self.shared = SharedMemory()
        self.shared.hold(1 << 24)
        self.bench = Workbench(open_gpu(), Path(self.shared.path))

    def put(self, name: str, array: np.ndarray) -> None:
        self.bench.hold(name, max(array.nbytes, 1))
        raw = array.reshape(-1).view(np.uint8)
        open_gpu().write(self.bench._address((name, 0)), raw)

    def get(self, name: str, kind: np.dtype, count: int) -> np.ndarray:
        self.bench.fetch((name, 0), count * kind.itemsize)
        return self.shared.bytes[: count * kind.itemsize].view(kind).copy()


@pytest.fixture(scope="module")
def made() -> Bench:
    return Bench()


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_difference_is_that_of_numpy(dtype: DType, made: Bench) -> None:
    rng = np.random.default_rng(0)
    for count in (0, 1, 31, 1000, 300_001):
        if dtype.is_float:
            values = rng.standard_normal(count)
            values[: len(SPECIAL)] = SPECIAL[:count]
            with np.errstate(all="ignore"):
                raw = to_memory(values if dtype == F64 else values.astype(np.float32), dtype)
                want = np.resize(np.roll(values, 1), count) if count % 2 else values + 1e-3
        else:
            raw = rng.integers(0, 2, count).astype(dtype.storage)
            want = rng.integers(0, 2, count).astype(dtype.storage)
        made.put("got", raw)
        made.put("want", want)
        told = made.bench.compare(("got", 0), ("want", 0), str(dtype), count)
        found, expected = decode(Difference, told), difference(raw, want, dtype)
        assert (found.count, found.astray) == (expected.count, expected.astray)
        assert found.error == pytest.approx(expected.error, rel=1e-14)
        assert found.largest == expected.largest


@pytest.mark.cuda
@pytest.mark.parametrize("count", [0, 1, 1000, BLOCK, BLOCK + 1, 2 * BLOCK + 77, 3 * BLOCK])
def test_made_up_numbers_are_those_of_the_host(count: int, made: Bench) -> None:
    for dtype, low, span in ((F32, 0, 1), (BF16, 0, 1), (I32, -9, 19)):
        sample = Sample(Noise(5, dtype, low=low, span=span), (count,))
        made.bench.hold("made", max(sample.size, 1))
        made.bench.fill(("made", 0), encode(sample))
        np.testing.assert_array_equal(made.get("made", dtype.storage, count), sample.array())


@pytest.mark.cuda
def test_any_changed_byte_changes_the_digest(made: Bench) -> None:
    array = np.random.default_rng(1).integers(0, 256, 1 << 20).astype(np.uint8)
    made.put("kept", array)
    place = [(("kept", 0), array.nbytes)]
    (before,) = made.bench.digest(place)
    assert made.bench.digest(place) == [before]
    for at in (0, 7, 12345, len(array) - 1):
        changed = array.copy()
        changed[at] ^= 1
        made.put("kept", changed)
        assert made.bench.digest(place) != [before]
    swapped = array.copy()
    swapped[:8], swapped[8:16] = array[8:16], array[:8]
    made.put("kept", swapped)
    assert made.bench.digest(place) != [before]


@pytest.mark.cuda
def test_too_large_a_block_is_an_answer(made: Bench) -> None:
    told = answered(made.bench, [["room"], ["hold", "huge", 1 << 50]])
    assert told["at"] == "hold" and "memory" in told["failed"]
    assert answered(made.bench, [["hold", "small", 64], ["spoil", "small", 64]]) == {"answers": [None, None]}
    assert (made.get("small", np.dtype(np.uint8), 64) == 0xFF).all()
