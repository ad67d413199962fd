"""A driver without a GPU: memory is the host's, graphs are counted, and kernels do nothing.

What sessions ask of the driver can be seen anywhere; what kernels compute is tested elsewhere.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lumi.backends.cuda import context, device, launch
from lumi.backends.cuda.gpu import Gpu
from lumi.plan.plan import ALIGNMENT

THREAD = 77
"""The handle of the context."""


class Block:
    """An allocation."""

    def __init__(self, size: int) -> None:
        self._raw = np.zeros(size + ALIGNMENT, np.uint8)
        self.address = -(-self._raw.ctypes.data // ALIGNMENT) * ALIGNMENT

    def __int__(self) -> int:
        return self.address


class Driver:
    """The part of PyCUDA that is used."""

    Error, MemoryError = OSError, MemoryError
    Stream = staticmethod(lambda: SimpleNamespace(handle=7))
    mem_alloc = staticmethod(Block)

    @staticmethod
    def Device(number: int) -> Any:  # noqa: N802
        primary = SimpleNamespace(push=lambda: None, pop=lambda: None)
        return SimpleNamespace(
            name=lambda: "simulated",
            compute_capability=lambda: (9, 0),
            max_shared_memory_per_block_optin=232448,
            multiprocessor_count=132,
            retain_primary_context=lambda: primary,
        )


class Bindings:
    """The part of cuda-bindings that is used; `calls` counts by name."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self._pinned: list[Block] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("CU"):
            return getattr(pytest.importorskip("cuda.bindings.driver"), name)
        answer = (0, 1) if name in ANSWERS else (0,)

        def call(*arguments: Any) -> tuple[int, ...]:
            self.calls[name] += 1
            if name.startswith("cuMemcpy"):
                ctypes.memmove(*arguments[:3])
            return answer

        setattr(self, name, call)
        return call

    def cuCtxGetCurrent(self) -> tuple[int, int]:  # noqa: N802
        return 0, THREAD

    def cuMemsetD8Async(self, address: int, value: int, size: int, queue: Any) -> tuple[int]:  # noqa: N802
        ctypes.memset(address, value, size)
        return (0,)

    def cuMemHostAlloc(self, size: int, flags: int) -> tuple[int, int]:  # noqa: N802
        self._pinned.append(Block(size))
        return 0, self._pinned[-1].address


ANSWERS = (
    "cuEventCreate",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuStreamEndCapture",
    "cuGraphInstantiate",
)
"""Functions that return something."""


def simulate(monkeypatch: pytest.MonkeyPatch) -> Bindings:
    """Have devices opened from now on be simulated, kernels uncompiled, and no library found."""
    bindings = Bindings()
    monkeypatch.setattr(context, "open_driver", lambda: Driver)
    monkeypatch.setattr(context, "open_bindings", lambda: bindings)
    monkeypatch.setattr(Gpu, "tensor_map", lambda *_: 0)
    monkeypatch.setattr(device, "open_gpu", Gpu)
    monkeypatch.setattr(launch, "open_library", lambda gpu: None)
    compiled = SimpleNamespace(content=b"")
    monkeypatch.setattr(launch, "compile_cubins", lambda texts, arch: [compiled for _ in texts])
    return bindings
