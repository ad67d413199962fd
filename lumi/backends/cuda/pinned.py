"""Host memory that a GPU copies to at full speed, lent out as arrays and taken back when these die."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lumi.runtime.device import Array

LIMIT = 256 << 20
"""Bytes that may be held at once; what does not fit goes through ordinary memory."""

GRAIN = 4096
"""Sizes are rounded up to it, so that blocks of outputs that differ little are used again."""


class Lease:
    """A block on loan: `array` is its bytes.  It returns once the lease and all views are gone."""

    __slots__ = ("__array_interface__", "_home", "_whole")

    def __init__(self, home: list[int], address: int, size: int) -> None:
        self._home, self._whole = home, address
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "typestr": "|u1",
            "version": 3,
        }

    @property
    def address(self) -> int:
        """Where the first byte lies."""
        return self._whole

    @property
    def array(self) -> Array:
        """The bytes; the array keeps the lease."""
        found: np.ndarray[Any, Any] = np.asarray(self)
        return found

    def __del__(self) -> None:
        self._home.append(self._whole)


class Pool:
    """Blocks of such memory.  `allocate` makes one of some bytes and returns its address."""

    def __init__(self, allocate: Callable[[int], int]) -> None:
        self._allocate = allocate
        self._free: dict[int, list[int]] = {}
        self._held = 0

    def take(self, size: int) -> Lease | None:
        """A block of at least `size` bytes, or None beyond the limit."""
        room = max(1, -(-size // GRAIN)) * GRAIN
        free = self._free.setdefault(room, [])
        if not free:
            if self._held + room > LIMIT:
                return None
            free.append(self._allocate(room))
            self._held += room
        return Lease(free, free.pop(), size)
