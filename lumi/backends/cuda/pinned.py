"""Host memory that a GPU copies to at full speed, lent out as arrays and taken back when these die."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from lumi.runtime.device import Array

LIMIT = 256 << 20
"""Bytes that may be held at once; what does not fit goes through ordinary memory."""

GRAIN = 4096
"""Sizes are rounded up to it, so that blocks of outputs that differ little are used again."""


class Pool:
    """Blocks of such memory.  `allocate` makes one of some bytes and returns its address."""

    def __init__(self, allocate: Callable[[int], int]) -> None:
        self._allocate = allocate
        self._kinds: dict[int, type[_Block]] = {}
        self._held = 0

    def take(self, size: int) -> tuple[int, Array] | None:
        """The address of a block and its first `size` bytes, or None beyond the limit.

        The block is free again once the array and all views of it are gone.
        """
        room = max(1, -(-size // GRAIN)) * GRAIN
        kind = self._kinds.get(room)
        if kind is None:
            kind = self._kinds[room] = _kind(room)
        if not kind.free:
            if self._held + room > LIMIT:
                return None
            kind.free.append(self._allocate(room))
            self._held += room
        address = kind.free.pop()
        block = kind.from_address(address)
        block.address = address
        return address, np.ndarray((size,), np.uint8, cast("memoryview[int]", block))


class _Block(ctypes.Array[Any]):
    """A block on loan, which an array keeps; `free` are the addresses of its kind that are not lent."""

    _type_, _length_ = ctypes.c_uint8, 0
    free: list[int]
    address: int

    def __del__(self) -> None:
        self.free.append(self.address)


def _kind(size: int) -> type[_Block]:
    """Blocks of one size."""
    return type("_Block", (_Block,), {"_type_": ctypes.c_uint8, "_length_": size, "free": []})
