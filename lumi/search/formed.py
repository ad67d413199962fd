"""Kernels as they are formed, each once: equal ones are one object, so what is known of one is known of all.

Variants of a model form the same kernels for other sizes of its dims.
"""

from __future__ import annotations

from collections.abc import Iterator

from lumi.llir.coalesce import Coalesced, coalesce
from lumi.llir.kernel import Kernel, Loop, walk
from lumi.llir.order import as_stored
from lumi.llir.program import operands

MOST = 1 << 12
"""Kernels that are remembered at once."""

_KNOWN: dict[object, Coalesced] = {}


def _unlike(kernel: Kernel) -> Iterator[str]:
    """What tells zeros apart that are equal."""
    for statement in walk(kernel.body):
        if isinstance(statement, Loop):
            yield from map(repr, statement.guards)
        yield from (str(o) for o in operands(statement) if o == 0.0)


def formed(kernel: Kernel) -> Coalesced:
    """A kernel without tiles, its axes in the order of what it stores and as few as they can be."""
    key = tuple(kernel.axes.items()), kernel.grid, kernel.resident, kernel.body, tuple(_unlike(kernel))
    found = _KNOWN.get(key)
    if found is None:
        if len(_KNOWN) >= MOST:
            _KNOWN.clear()
        found = _KNOWN[key] = coalesce(as_stored(kernel))
    return found
