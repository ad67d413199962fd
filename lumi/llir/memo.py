"""Remembers what has been found out about kernels whatever their tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from lumi.llir.kernel import Kernel
from lumi.memo import MOST

V = TypeVar("V")


class KernelMemo(Generic[V]):
    """A function of a kernel whatever its tiles, called once for all kernels that differ in these alone."""

    def __init__(self, function: Callable[[Kernel], V], most: int = MOST) -> None:
        self._function, self._most = function, most
        self._known: dict[tuple[int, int, int], tuple[Kernel, V]] = {}
        self.__doc__ = function.__doc__

    def __call__(self, kernel: Kernel) -> V:
        """What the function says of it."""
        key = id(kernel.body), id(kernel.axes), id(kernel.grid)
        known = self._known.get(key)
        if known is not None:
            return known[1]
        found = self._function(kernel)
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[key] = kernel, found
        return found
