"""Where a step of a model on a GPU goes: each kernel alone, back to back, over all its layers' weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lumi.backends.cuda.gpu import Gpu
from lumi.backends.cuda.launch import Launches
from lumi.runtime.session import Session

LEAST = 64
"""Launches of a kernel that are timed together at least."""


def launches_of(session: Session, variant: int) -> Launches:
    """The captured launches of a variant, those of its last call."""
    program: Any = next(r.program for (n, _), r in reversed(session._ready.items()) if n == variant)
    found: Launches = program.launches
    return found


def kernel_times(gpu: Gpu, session: Session, variant: int, dims: Mapping[str, int]) -> list[dict[str, Any]]:
    """Seconds of each kernel, slowest in sum first."""
    launches = session.plan.variants[variant].launches
    entries = launches_of(session, variant).entries
    rows = []
    for number in sorted({launch.kernel for launch in launches}):
        mine = [e for e, launch in zip(entries, launches, strict=True) if launch.kernel == number]
        alone = Launches(gpu, mine * max(1, LEAST // len(mine)))
        alone.run(dims)
        seconds = min(gpu.seconds(lambda alone=alone: alone.start(dims)) for _ in range(3)) / len(
            alone.entries
        )
        kernel = session.plan.kernels[number]
        rows.append(
            {
                "kernel": kernel.name,
                "schedule": str(kernel.schedule.template),
                "options": dict(kernel.schedule.options),
                "launches": len(mine),
                "seconds": seconds,
            }
        )
    return sorted(rows, key=lambda row: -row["seconds"] * row["launches"])


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    for row in rows:
        total = row["seconds"] * row["launches"]
        print(
            f"{total * 1e6:8.1f} us = {row['launches']:3d} x {row['seconds'] * 1e6:7.2f} us"
            f"  {row['kernel']} {row['schedule']} {row['options']}"
        )
