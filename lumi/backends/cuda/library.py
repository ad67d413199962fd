"""Where cuBLASLt is: in NVIDIA's Python packages, where the system's loader looks, or in a CUDA toolkit."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
from importlib.metadata import PackageNotFoundError, files, version
from pathlib import Path

TOOLKIT = "/usr/local/cuda"
"""Where a toolkit is unless CUDA_HOME or CUDA_PATH says otherwise."""

_PACKAGES = {12: "nvidia-cublas-cu12", 13: "nvidia-cublas"}
_FILE = "libcublasLt.so"


@functools.cache
def find_library() -> str | None:
    """Where cuBLASLt is, None when there is none: a package of the CUDA in use, the system's, a toolkit's."""
    for package in sorted(_PACKAGES, key=lambda major: major != _major()):
        try:
            listed = files(_PACKAGES[package]) or []
        except PackageNotFoundError:
            continue
        for held in listed:
            if held.name.startswith(_FILE) and Path(str(held.locate())).exists():
                return str(held.locate())
    found = ctypes.util.find_library("cublasLt")
    if found:
        return found
    roots = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH")]
    for root in (*filter(None, roots), TOOLKIT):
        for path in sorted(Path(root).glob(f"lib*/{_FILE}*")):
            return str(path)
    return None


@functools.cache
def library_version() -> str:
    """The version of cuBLASLt, `13.1.0`; empty where there is none that can be loaded."""
    path = find_library()
    try:
        get_version = ctypes.CDLL(path).cublasLtGetVersion if path else None
    except OSError:
        get_version = None
    if get_version is None:
        return ""
    get_version.restype = ctypes.c_size_t
    number = int(get_version())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _major() -> int:
    """The CUDA version that the driver's bindings are for."""
    try:
        return int(version("cuda-bindings").partition(".")[0])
    except (PackageNotFoundError, ValueError):
        return 12
