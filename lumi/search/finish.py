"""A plan under comparison to the kernel graph that runs: temporaries get their names and types."""

from __future__ import annotations

from collections.abc import Sequence

from lumi.llir.kernel import KernelGraph, Step, Temporary, accesses
from lumi.llir.rename import rename


def finish(steps: Sequence[Step], outputs: frozenset[str]) -> KernelGraph:
    """The graph of steps in the order given.

    Every buffer written that is none of the region's (`outputs`) is a temporary: `T0`, `T1` … in the
    order in which they are written.
    """
    names: dict[str, str] = {}
    temporaries: dict[str, Temporary] = {}
    for kernel in (k for step in steps for k in step.kernels):
        for access, writes in accesses(kernel):
            if writes and access.buffer not in outputs and access.buffer not in names:
                name = names[access.buffer] = f"T{len(names)}"
                temporaries[name] = Temporary(access.shape, access.dtype)
    return KernelGraph(tuple(_renamed(s, names) for s in steps), temporaries)


def _renamed(step: Step, names: dict[str, str]) -> Step:
    return Step(
        rename(step.kernel, names),
        step.schedule,
        tuple(rename(k, names) for k in step.beside),
        tuple(_renamed(s, names) for s in step.then),
    )
