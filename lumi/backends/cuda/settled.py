"""What the launches of a graph leave as it is: whole buffers, and the first rows of caches.

A kernel may read such memory before the kernels ahead of it have ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from lumi.backends.cuda import cache
from lumi.field.access import Access
from lumi.field.index import Index, Sym
from lumi.llir.kernel import Step, accesses
from lumi.plan.plan import Launch, Role, Variant


class Settled:
    """The launches of a variant; `steps` are what the kernels of its plan run."""

    def __init__(self, steps: Sequence[Step], variant: Variant) -> None:
        self._steps, self._variant = steps, variant
        self._writers: dict[int, list[Access]] = {}
        for launch in variant.launches:
            step = steps[launch.kernel]
            numbers = dict(zip(step.buffers, launch.buffers, strict=True))
            for access, writes in (pair for kernel in step.kernels for pair in accesses(kernel)):
                if writes:
                    self._writers.setdefault(numbers[access.buffer], []).append(access)

    def is_constant(self, buffer: int) -> bool:
        """Whether a buffer has memory of its own that no launch writes."""
        keeps = self._variant.buffers[buffer].role in (Role.PARAM, Role.STATE)
        return keeps and buffer not in self._writers

    def since(self, launch: Launch) -> int:
        """The dim, by its number in the kernel, before whose value rows that it walks along are not written.

        -1 where none is known, or where the kernel is no walk.
        """
        step, names = self._steps[launch.kernel], set[str]()
        found = cache.find(step.kernel)
        if found is None or len(step.kernels) > 1:
            return -1
        numbers = dict(zip(step.buffers, launch.buffers, strict=True))
        for rows in found.rows:
            access, number = rows.load.access, numbers[rows.load.access.buffer]
            if self.is_constant(number):
                continue
            along = [k for k, index in enumerate(access.index) if index == Index(((found.axis, 1),))]
            across = [k for k, index in enumerate(access.index) if found.axis in index.axes()]
            if self._variant.buffers[number].role is not Role.STATE or len(along) != 1 or along != across:
                return -1
            alike = all(a.shape == access.shape for a in self._writers[number])
            names |= {_first_written(a, along[0]) if alike else "" for a in self._writers[number]}
        name, known = "".join(names) if len(names) == 1 else "", step.dims
        return known.index(name) if name in known else -1


def _first_written(access: Access, place: int) -> str:
    """The dim that an index of a store is never less than; empty where none is known."""
    index = access.index[place]
    starts = [part.extent for part, c in index.terms if isinstance(part, Sym) and c == 1]
    counted = [c for part, c in index.terms if isinstance(part, str)]
    if len(starts) != 1 or len(counted) + 1 != len(index.terms) or access.clamp:
        return ""
    return str(starts[0]) if index.offset >= 0 and min(counted, default=0) >= 0 else ""
