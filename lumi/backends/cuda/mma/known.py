"""Forms and schedules of kernels, each found once: a search asks for the same tile programs many times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lumi.backends.cuda.mma.choices import schedules
from lumi.backends.cuda.mma.form import Form, RefusalError
from lumi.backends.cuda.mma.plan import Plan
from lumi.backends.cuda.mma.plan import plan as numbers
from lumi.backends.cuda.mma.recognise import recognise
from lumi.backends.cuda.wgmma import plan
from lumi.dim import Extent
from lumi.llir.kernel import Kernel, Schedule, Statement

MOST = 1 << 12
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
    _warps: dict[Schedule, Plan] = field(default_factory=dict)
    _grouped: dict[Schedule, plan.GroupPlan] = field(default_factory=dict)

    def warps(self, schedule: Schedule) -> Plan:
        """The numbers of a schedule of warps alone.  Raises `RefusalError` where they do not fit."""
        assert self.form is not None, "only what tensor cores compute has this schedule"
        if schedule not in self._warps:
            self._warps[schedule] = numbers(self.form, dict(schedule.options))
        return self._warps[schedule]

    def grouped(self, schedule: Schedule) -> plan.GroupPlan:
        """The numbers of a schedule of groups of warps.  Raises `RefusalError` where they do not fit."""
        assert self.form is not None, "only what tensor cores compute has this schedule"
        if schedule not in self._grouped:
            self._grouped[schedule] = plan.plan(self.form, dict(schedule.options))
        return self._grouped[schedule]

    def fits(self, kernel: Kernel) -> bool:
        """Whether it is known of this kernel."""
        return self.body is kernel.body and (self.axes, self.grid) == (kernel.axes, kernel.grid)


_KNOWN: dict[tuple[int, bool], Known] = {}


def look(kernel: Kernel, tf32: bool = False) -> Known:
    """What is known of a kernel whose factors are halves, or with `tf32` f32.  Its tiles do not matter."""
    key = id(kernel.body), tf32
    found = _KNOWN.get(key)
    if found is None or not found.fits(kernel):
        if len(_KNOWN) >= MOST:
            _KNOWN.clear()
        found = _KNOWN[key] = _examined(kernel, tf32)
    return found


def _examined(kernel: Kernel, tf32: bool) -> Known:
    try:
        form = recognise(kernel, tf32)
    except RefusalError:
        return Known(kernel.body, kernel.axes, kernel.grid, None, ())
    groups = () if tf32 else plan.schedules(form)
    return Known(kernel.body, kernel.axes, kernel.grid, form, schedules(form), groups)
