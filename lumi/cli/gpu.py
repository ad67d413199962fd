"""Checks of NVIDIA GPUs: the driver, the devices, and the libraries that a CUDA backend would use."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from lumi.cli.check import Check

_NONE = "there is no GPU backend yet: plans run on the CPU"
_LIBRARIES = {
    "NVRTC": ("nvrtc", "libnvrtc.so", ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc")),
    "cuBLASLt": ("cublasLt", "libcublasLt.so", ("nvidia-cublas-cu12", "nvidia-cublas")),
}


def checks() -> Iterator[Check]:
    """The driver with its devices; the libraries only where there is a device."""
    driver = _driver()
    if driver is None:
        yield Check("GPU", False, "no NVIDIA driver", _NONE)
        return
    version, names = driver
    yield Check("GPU", bool(names), ", ".join(names) or "no device", _NONE)
    yield Check("CUDA driver", True, f"CUDA {version // 1000}.{version % 1000 // 10}")
    for name, (short, file, distributions) in _LIBRARIES.items():
        found = _library(short, file, distributions)
        advice = "" if found else f"pip install {distributions[0]}"
        yield Check(name, found is not None, found or "missing", advice)


def _driver() -> tuple[int, list[str]] | None:
    """The version of the driver and the names of its devices, or None."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    version, count = ctypes.c_int(), ctypes.c_int()
    calls = (
        (cuda.cuInit, 0),
        (cuda.cuDriverGetVersion, ctypes.byref(version)),
        (cuda.cuDeviceGetCount, ctypes.byref(count)),
    )
    if any(call(argument) for call, argument in calls):
        return None
    names = []
    for number in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        if not cuda.cuDeviceGet(ctypes.byref(device), number) and not cuda.cuDeviceGetName(name, 256, device):
            names.append(name.value.decode())
    return version.value, names


def _library(short: str, file: str, distributions: tuple[str, ...]) -> str | None:
    """Where a library lies: in a Python package, or where the system's loader finds it."""
    for distribution in distributions:
        try:
            listed = files(distribution) or []
        except PackageNotFoundError:
            continue
        for path in listed:
            if path.name.startswith(file):
                return str(Path(str(path.locate())))
    return ctypes.util.find_library(short)
