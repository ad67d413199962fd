"""The schedules that are tried for a kernel on tensor cores."""

from __future__ import annotations

from collections.abc import Mapping

from lumi.backends.cuda.mma.form import Form, RefusalError
from lumi.backends.cuda.mma.plan import EXACT, TEMPLATE, plan
from lumi.backends.cuda.tf32 import TF32
from lumi.llir.kernel import Schedule

SUMS = tuple(
    dict(zip(("rows", "columns", "depth", "high", "wide", "stages"), numbers, strict=True))
    for numbers in (
        (256, 128, 64, 4, 2, 4),
        (128, 256, 64, 2, 4, 4),
        (128, 128, 64, 2, 2, 3),
        (128, 128, 32, 2, 2, 4),
        (128, 128, 64, 4, 2, 4),
        (128, 64, 64, 4, 1, 4),
        (64, 128, 64, 2, 2, 4),
        (64, 64, 64, 2, 2, 4),
        (64, 32, 128, 4, 1, 4),
        (32, 64, 128, 1, 4, 4),
        (16, 64, 128, 1, 4, 4),
    )
)
"""Tiles, warps and stages that are tried for sums."""

CASCADES = tuple(
    dict(zip(("rows", "columns", "high", "stages", "held"), numbers, strict=True))
    for numbers in (
        (128, 64, 4, 1, 0),
        (128, 64, 4, 2, 0),
        (128, 32, 4, 3, 0),
        (64, 64, 4, 2, 1),
        (128, 64, 8, 2, 1),
        (128, 128, 8, 1, 0),
        (64, 32, 4, 2, 0),
        (32, 64, 2, 2, 0),
        (16, 64, 1, 3, 0),
    )
)
"""Tiles, warps and stages that are tried for cascades."""


def _tf32(numbers: Mapping[str, int]) -> dict[str, int]:
    """What is other in TF32: stages are as large in bytes."""
    return dict([TF32]) | ({"depth": numbers["depth"] // 2} if "depth" in numbers else {})


def schedules(form: Form) -> tuple[Schedule, ...]:
    """The schedules of a form that fit it."""
    found = []
    exact = all(c.exact for c in form.computed)
    for numbers in SUMS if form.cascade is None else CASCADES:
        for parts in (1,) if exact else (1, EXACT):
            options = numbers | ({} if exact else {"parts": parts}) | (_tf32(numbers) if form.is_tf32 else {})
            try:
                plan(form, options)
            except RefusalError:
                continue
            found.append(Schedule(TEMPLATE, tuple(sorted(options.items()))))
    return tuple(found)
