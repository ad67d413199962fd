"""The machine's own matrix product, where there is one: the OpenBLAS inside numpy, or a system's cblas.

Kernels whose schedule is `blas` call `lumi_sgemm` through a pointer in their library, which `attach`
sets.  The product runs on the calling thread alone; the kernel gives each thread its share of rows.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

POINTER = "lumi_sgemm"
"""The variable in a library of kernels that holds the product's spell."""


@dataclass(frozen=True, slots=True)
class Blas:
    """A loaded BLAS: where its `cblas_sgemm` is, whether it takes 64-bit sizes, its thread count."""

    name: str
    sgemm: int
    wide: bool
    get_threads: Callable[[], int] | None
    set_threads: Callable[[int], Any] | None
    handle: ctypes.CDLL


_SPELLINGS = (("scipy_", "64_", True), ("", "64_", True), ("scipy_", "", False), ("", "", False))
"""Prefix and suffix of the symbols, and whether their integers have 64 bits."""


@functools.cache
def find_blas() -> Blas | None:
    """The BLAS of this process, or None."""
    for path in _candidates():
        try:
            handle = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix, suffix, wide in _SPELLINGS:
            if hasattr(handle, f"{prefix}cblas_sgemm{suffix}"):
                return _blas(path, handle, prefix, suffix, wide)
    return None


def _candidates() -> Iterator[str]:
    """Libraries that may have a BLAS, the one numpy has loaded already first."""
    root = Path(np.__file__).resolve().parent
    for folder in (root.parent / "numpy.libs", root / ".libs", root / ".dylibs"):
        yield from sorted(str(p) for p in folder.glob("*openblas*")) if folder.is_dir() else ()
    for name in ("openblas", "cblas", "blas"):
        found = ctypes.util.find_library(name)
        if found:
            yield found


def _blas(path: str, handle: ctypes.CDLL, prefix: str, suffix: str, wide: bool) -> Blas:
    def function(name: str) -> Any:
        return getattr(handle, f"{prefix}openblas_{name}{suffix}", None)

    sgemm = ctypes.cast(handle[f"{prefix}cblas_sgemm{suffix}"], ctypes.c_void_p).value or 0
    return Blas(
        Path(path).name, sgemm, wide, function("get_num_threads"), function("set_num_threads"), handle
    )


def attach(library: ctypes.CDLL) -> None:
    """Give a library of kernels the product, if it asks for one and there is one."""
    blas = find_blas() if hasattr(library, POINTER) else None
    if blas is not None:
        ctypes.c_void_p.in_dll(library, POINTER).value = blas.sgemm
        ctypes.c_int.in_dll(library, f"{POINTER}_wide").value = blas.wide


@contextmanager
def single_threaded() -> Iterator[None]:
    """Keep the product on the calling thread: the kernels share its work among theirs."""
    blas = find_blas()
    if blas is None or blas.get_threads is None or blas.set_threads is None:
        yield
        return
    before = blas.get_threads()
    blas.set_threads(1)
    try:
        yield
    finally:
        blas.set_threads(before)
