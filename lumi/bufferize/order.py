"""Which calls must follow which, and how to bring some forward."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lumi.bufferize.call import Call


def depends(later: Call, earlier: Call) -> bool:
    """Whether a call must stay behind an earlier one: touches what that writes, or writes what it reads."""
    written = earlier.writes()
    return bool(written & (later.reads() | later.writes()) or earlier.reads() & later.writes())


def before(calls: Sequence[Call], place: int, wanted: Collection[int]) -> list[Call] | None:
    """The calls in an order in which those numbered in `wanted` run before the one at `place`.

    What they depend on comes with them.  None where one of them depends on the call at `place`, through
    whatever others.
    """
    forward: list[int] = []
    for n in range(max(wanted, default=place), place, -1):
        if n in wanted or any(depends(calls[m], calls[n]) for m in forward):
            forward.append(n)
    if any(depends(calls[n], calls[place]) for n in forward):
        return None
    moved = set(forward)
    rest = [call for n, call in enumerate(calls[place:], place) if n not in moved]
    return [*calls[:place], *(calls[n] for n in sorted(forward)), *rest]
