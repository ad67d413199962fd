"""Plans on this machine's processor: compiled, and in numpy where there is no compiler."""

from __future__ import annotations

import numpy as np
import pytest

from lumi.backends.cpu import device
from lumi.backends.cpu.device import CpuDevice, NativeExecutable, NumpyExecutable, cores
from lumi.dtype import F32
from lumi.noise import Noise
from lumi.plan.plan import ALIGNMENT
from lumi.runtime.device import Place
from lumi.runtime.session import Session
from tests.plan.samples import add_plan, counter_plan

WEIGHT = {"w": np.array([0.5], np.float32)}


class NumpyOnly(CpuDevice):
    def load(self, plan):
        return NumpyExecutable(plan, self.counters)


@pytest.mark.parametrize("kind", [CpuDevice, NumpyOnly])
def test_plan_gives_the_same_however_often_it_runs(kind: type[CpuDevice]) -> None:
    session = Session(add_plan(), WEIGHT, kind())
    for seed in (0, 0, 0, 1):
        for length in (1, 7, 100):
            x = np.random.default_rng(seed).standard_normal(length).astype(np.float32)
            np.testing.assert_array_equal(session(x=x)["y"], (x + np.float32(0.5)) + x)


@pytest.mark.parametrize("kind", [CpuDevice, NumpyOnly])
def test_state_is_written_in_place_and_kept(kind: type[CpuDevice]) -> None:
    session = Session(counter_plan(), None, kind())
    want = np.zeros(16, np.float32)
    for past, length in ((0, 3), (3, 1), (4, 1), (8, 8), (2, 4)):
        x = np.arange(length, dtype=np.float32) + 10 * past
        want[past : past + length] = x
        np.testing.assert_array_equal(session(x=x, past=past)["y"], want)


def test_output_is_not_changed_by_a_later_call() -> None:
    session = Session(add_plan(), WEIGHT, CpuDevice())
    first = session(x=np.ones(5, np.float32))["y"]
    session(x=np.zeros(5, np.float32))
    np.testing.assert_array_equal(first, np.full(5, 2.5, np.float32))


def test_memory_is_zeroed_aligned_and_cleared() -> None:
    memory = CpuDevice().allocate(1000)
    assert memory.size == 1000
    assert memory.address % ALIGNMENT == 0
    memory.write(np.arange(4, dtype=np.int32), 8)
    assert memory.fetch(20, 4).view(np.int32).tolist() == [0, 0, 1, 2, 3]
    memory.clear()
    assert not memory.fetch(20, 4).any()


def test_adopted_array_is_shared_when_aligned_else_copied() -> None:
    raw = np.zeros(4096 + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    aligned, crooked = raw[start : start + 64], raw[start + 4 : start + 68]
    crooked[...] = np.arange(64)
    assert CpuDevice().adopt(aligned).address == aligned.ctypes.data
    copied = CpuDevice().adopt(crooked)
    assert copied.address % ALIGNMENT == 0
    np.testing.assert_array_equal(copied.data, crooked)


def test_without_a_compiler_kernels_run_in_numpy_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "find_compiler", lambda: None)
    with pytest.warns(UserWarning, match="no C compiler was found, so kernels run in numpy"):
        session = Session(add_plan(), WEIGHT, CpuDevice())
    np.testing.assert_array_equal(session(x=np.ones(3, np.float32))["y"], np.full(3, 2.5, np.float32))


def test_with_a_compiler_kernels_are_native() -> None:
    assert isinstance(CpuDevice().load(add_plan()), NativeExecutable)


def test_device_names_its_cores() -> None:
    assert CpuDevice().name.endswith(f"{cores()} cores")


def test_memory_is_viewed_copied_and_parted() -> None:
    device, values = CpuDevice(), np.arange(64, dtype=np.int32)
    whole = device.view(values.ctypes.data, values.nbytes)
    assert whole.address == values.ctypes.data
    part = device.part(Place(whole, 16), 32)
    target = device.allocate(256)
    target.copy(part, 8)
    values[:] = 0
    assert part.fetch(32).view(np.int32).tolist() == list(range(4, 12))
    assert target.fetch(48).view(np.int32).tolist() == [0, 0, *range(4, 12), 0, 0]
    assert not whole.fetch(whole.size).any()


def test_nothing_runs_by_itself_on_the_host() -> None:
    device = CpuDevice()
    assert (device.kind, device.queue) == ((1, 0), None)
    assert device.random(Noise(0, F32), 4) is None
