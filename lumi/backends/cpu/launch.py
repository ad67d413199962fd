"""Tables of launches: compiled kernels with the addresses of their buffers, run by one native call."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lumi.backends.cpu import library


class Launch(ctypes.Structure):
    """One entry of the table that `lumi_run` walks: a kernel, its buffers, its dims."""

    _fields_ = (("run", ctypes.c_void_p), ("buffers", ctypes.c_void_p), ("dims", ctypes.c_void_p))


def open_library(path: Path) -> ctypes.CDLL:
    """Load a library of kernels and give it the matrix product it may call."""
    loaded = ctypes.CDLL(str(path))
    library.attach(loaded)
    return loaded


def load_driver(path: Path | str) -> ctypes.CDLL:
    """Load the library of `lumi_run`."""
    return ctypes.CDLL(str(path))


class Launches:
    """Launches in order.

    Each entry is a compiled function, the names of the dims it takes, and the addresses of its buffers.
    """

    def __init__(
        self, driver: ctypes.CDLL, entries: Sequence[tuple[Any, tuple[str, ...], Sequence[int]]]
    ) -> None:
        self._driver = driver
        self._count = len(entries)
        self._functions = [function for function, _, _ in entries]
        self._values: dict[tuple[str, ...], ctypes.Array[ctypes.c_int64]] = {}
        self._buffers = [(ctypes.c_void_p * len(a))(*a) for _, _, a in entries]
        self._table = (Launch * max(len(entries), 1))()
        for slot, (function, names, _), held in zip(self._table, entries, self._buffers, strict=False):
            slot.run = ctypes.cast(function, ctypes.c_void_p).value
            slot.buffers = ctypes.addressof(held)
            slot.dims = ctypes.addressof(self._dims(names))

    def _dims(self, names: tuple[str, ...]) -> ctypes.Array[ctypes.c_int64]:
        """The array of these dims' values; kernels that take the same dims share it."""
        if names not in self._values:
            self._values[names] = (ctypes.c_int64 * max(len(names), 1))()
        return self._values[names]

    def run(self, values: Mapping[str, int], timed: bool = False) -> list[int]:
        """Run all launches and wait; with `timed`, the nanoseconds that each took."""
        for names, array in self._values.items():
            for place, name in enumerate(names):
                array[place] = values[name]
        moments = (ctypes.c_int64 * (self._count + 1))() if timed else None
        self._driver.lumi_run(self._table, ctypes.c_int64(self._count), moments)
        if moments is None:
            return []
        return [b - a for a, b in itertools.pairwise(moments)]
