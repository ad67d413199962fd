"""Forms and schedules of kernels, each found once: a search asks for the same tile programs many times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lumi.backends.cuda.mma.choices import schedules
from lumi.backends.cuda.mma.form import Form, RefusalError
from lumi.backends.cuda.mma.recognise import recognise
from lumi.backends.cuda.wgmma import plan
from lumi.dim import Extent
from lumi.llir.kernel import Kernel, Schedule, Statement

MOST = 512
"""Kernels that are remembered."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the kernels with one tile program; no form where they are refused.

    `schedules` are those of warps alone, `groups` those of groups of warps.
    """

    body: tuple[Statement, ...]
    axes: Mapping[str, Extent]
    grid: tuple[str, ...]
    form: Form | None
    schedules: tuple[Schedule, ...]
    groups: tuple[Schedule, ...] = ()

    def fits(self, kernel: Kernel) -> bool:
        """Whether it is known of this kernel."""
        return self.body is kernel.body and (self.axes, self.grid) == (kernel.axes, kernel.grid)


_KNOWN: dict[int, Known] = {}


def look(kernel: Kernel) -> Known:
    """What is known of a kernel.  Its tiles do not matter."""
    found = _KNOWN.get(id(kernel.body))
    if found is None or not found.fits(kernel):
        if len(_KNOWN) >= MOST:
            _KNOWN.clear()
        found = _KNOWN[id(kernel.body)] = _examined(kernel)
    return found


def _examined(kernel: Kernel) -> Known:
    try:
        form = recognise(kernel)
    except RefusalError:
        return Known(kernel.body, kernel.axes, kernel.grid, None, ())
    return Known(kernel.body, kernel.axes, kernel.grid, form, schedules(form), plan.schedules(form))
