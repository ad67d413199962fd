"""Checks of NVIDIA GPUs: the driver, the devices, and what the CUDA backend needs of Python."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path

from lumi.cli.check import Check

_NONE = "plans run on the CPU"
_USE = "lumi compile --target cuda"
_INSTALL = "pip install -e '.[cuda]' in Lumi's checkout"
_SLOWER = f"{_INSTALL}; without it Lumi's own kernels compute large matrix products, more slowly"
_PACKAGES = {"PyCUDA": "pycuda", "cuda-bindings": "cuda-bindings"}
_NVRTC = ("nvrtc", "libnvrtc.so", ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"))


def checks() -> Iterator[Check]:
    """The driver with its devices; what Python needs only where there is a driver."""
    driver = _driver()
    if driver is None:
        yield Check("GPU", False, "no NVIDIA driver", _NONE)
        return
    number, names = driver
    yield Check("GPU", bool(names), ", ".join(names) or "no device", _USE if names else _NONE)
    yield Check("CUDA driver", True, f"CUDA {number // 1000}.{number % 1000 // 10}")
    for name, distribution in _PACKAGES.items():
        found = _installed(distribution)
        yield Check(name, found is not None, found or "missing", "" if found else _INSTALL)
    library = _library(*_NVRTC)
    yield Check("NVRTC", library is not None, library or "missing", "" if library else _INSTALL)
    yield _products()


def target() -> Check:
    """What is compiled for where no command says it."""
    from lumi.backends.cuda.driver import missing
    from lumi.backends.targets import default_target

    lacking, chosen = missing(), default_target()
    why = "" if chosen == "cuda" or not lacking else f": {lacking}"
    return Check("default target", True, f"{chosen}{why}")


def _products() -> Check:
    """The library whose matrix products a plan may call."""
    from lumi.backends.cuda.library import find_library

    found = find_library()
    return Check("cuBLASLt", found is not None, found or "missing", "" if found else _SLOWER)


def _driver() -> tuple[int, list[str]] | None:
    """The version of the driver and the names of its devices, or None."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    number, count = ctypes.c_int(), ctypes.c_int()
    calls = (
        (cuda.cuInit, 0),
        (cuda.cuDriverGetVersion, ctypes.byref(number)),
        (cuda.cuDeviceGetCount, ctypes.byref(count)),
    )
    if any(call(argument) for call, argument in calls):
        return None
    names = []
    for ordinal in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
        if not cuda.cuDeviceGet(ctypes.byref(device), ordinal) and not cuda.cuDeviceGetName(
            name, 256, device
        ):
            names.append(name.value.decode())
    return number.value, names


def _installed(distribution: str) -> str | None:
    """The version of a Python package, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


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
