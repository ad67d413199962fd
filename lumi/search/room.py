"""What values between kernels may take of memory at the largest dims, which no plan of a region exceeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from lumi import dim
from lumi.search.dag import Dag
from lumi.search.draft import Draft, InfeasibleError
from lumi.search.launch import Launch
from lumi.search.settings import Settings
from lumi.search.space import Space

LOAN = 10.0
"""How many times slower a plan counts that is a little too large, while such plans may be looked at."""


class Room:
    """The room of a region: `each` temporary may take so much, `whole` is for all that is alive at once.

    While it `lends`, plans that are too large are only worse, so that a search can come from them to others.
    """

    def __init__(self, space: Space, dag: Dag, settings: Settings) -> None:
        self._space, self._dag, largest = space, dag, settings.largest
        self._most = {a.name: dim.value(a.extent, largest) for a in space.region.axes}
        sizes = _buffers(space, largest)
        self.whole = settings.memory - sum(sizes[b] for b in _handed(space))
        self.each = min(settings.memory, settings.growth * max(sizes.values()))
        self.lends = False
        self._memory = settings.memory

    def waive(self) -> None:
        """Let a temporary be as large as memory is, and not only some times as large as a buffer."""
        self.each = self._memory

    def fits(self, number: int, value: int) -> bool:
        """Whether a class may be stored as a temporary."""
        return self._bytes(number, value) <= self.each

    def charge(self, draft: Draft, stored: Collection[int], launches: Sequence[Launch]) -> float:
        """What the seconds of a plan are multiplied by: 1 where what is alive at once fits.

        That is what kernels leave for each other and for other regions, beside what these left for them.
        Where it does not fit, raises `InfeasibleError`; while the room `lends`, the plan is worse the larger
        it is.
        """
        sizes = {n: self._bytes(n, draft.bodies[n]) for n in stored}
        if sum(sizes.values()) <= self.whole:
            return 1.0
        first, last = dict[int, int](), dict.fromkeys(self._space.outputs, len(launches))
        for time, launch in enumerate(launches):
            for number, value in (pair for outs in launch.outs for pair in outs):
                first.setdefault(number, time)
                for touched in (number, *self._dag.reads[value]):
                    last[touched] = max(time, last.get(touched, time))
        spans = {n: range(first[n], last[n] + 1) for n in sizes}
        alive = (sum(z for n, z in sizes.items() if time in spans[n]) for time in range(len(launches)))
        most = max(alive, default=0)
        if most <= self.whole:
            return 1.0
        if self.lends and self.whole > 0:
            return LOAN * (most / self.whole) ** 3
        raise InfeasibleError("what is alive at once does not fit memory")

    def _bytes(self, number: int, value: int) -> int:
        """Those of a class that is stored."""
        elements = math.prod(self._most[a] for a in self._space.names(self._dag.free[value]))
        return elements * self._space.storage(number).size


def _buffers(space: Space, largest: Mapping[str, int]) -> dict[str, int]:
    """Bytes of each buffer that a region reads or must write."""
    touched = [*space.region.accesses.values(), *(s.access for s in space.region.stores)]
    return {a.buffer: dim.value(dim.product(a.shape), largest) * a.dtype.size for a in touched}


def _handed(space: Space) -> list[str]:
    """The buffers that other regions left for this one; what callers and weights fill has its own name."""
    region = space.region
    made = {s.access.buffer for s in region.stores}
    names = {f"B{n}": name for n, name in enumerate(region.buffers)}
    read = dict.fromkeys(a.buffer for a in region.accesses.values())
    return [b for b in read if b not in made and names.get(b, "").startswith("%")]
