"""Tests marked `cuda` run where there is an NVIDIA GPU."""

from __future__ import annotations

import ctypes
from functools import cache

import pytest


@cache
def has_gpu() -> bool:
    """Whether a driver is installed that knows a device; what else is missing is an error."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") and not has_gpu():
        pytest.skip("there is no NVIDIA GPU")
