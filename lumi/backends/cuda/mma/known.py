"""Forms and schedules of kernels, each found once: a search asks for the same tile programs many times."""

from __future__ import annotations

from dataclasses import dataclass

from lumi.backends.cuda.mma.choices import schedules
from lumi.backends.cuda.mma.form import Form, RefusalError
from lumi.backends.cuda.mma.recognise import recognise
from lumi.backends.cuda.wgmma import plan
from lumi.llir.kernel import Kernel, Schedule, Statement

MOST = 512
"""Kernels that are remembered."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the kernels with one tile program; no form where they are refused.

    `schedules` are those of warps alone, `groups` those of groups of warps."""

    body: tuple[Statement, ...]
    grid: tuple[str, ...]
    form: Form | None
    schedules: tuple[Schedule, ...]
    groups: tuple[Schedule, ...] = ()


_KNOWN: dict[int, Known] = {}


def look(kernel: Kernel) -> Known:
    """What is known of a kernel.  Its tiles do not matter."""
    found = _KNOWN.get(id(kernel.body))
    if found is None or found.body is not kernel.body or found.grid != kernel.grid:
        if len(_KNOWN) >= MOST:
            _KNOWN.clear()
        found = _KNOWN[id(kernel.body)] = _examined(kernel)
    return found


def _examined(kernel: Kernel) -> Known:
    try:
        form = recognise(kernel)
    except RefusalError:
        return Known(kernel.body, kernel.grid, None, ())
    return Known(kernel.body, kernel.grid, form, schedules(form), plan.schedules(form))
