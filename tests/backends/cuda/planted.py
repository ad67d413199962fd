"""Schedules whose code is bad in ways that a code generator's mistakes would be, for tests of the search.

Run as a module, it is the child in which candidates are measured, which knows these schedules too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lumi.backends.cuda import emit as emitting
from lumi.backends.cuda import launch, worker
from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.emit import Code
from lumi.backends.cuda.schedule import DEFAULT
from lumi.llir.kernel import Kernel, Schedule, Step
from lumi.search.protocol import Cost

STATEMENTS = {
    "outside": "*(volatile int *)(1ull << 46) = 1;",
    "endless": "for (volatile int spin = 0;;) spin = 1;",
    "wrong": "return;",
}
"""What each planted schedule does before anything else."""


def emit(step: Step, name: str) -> Code:
    """The code of a step; under a planted schedule the default's, with the bad statement first."""
    bad = STATEMENTS.get(step.schedule.template)
    if bad is None:
        return emitting.emit(step, name)
    code = emitting.emit(Step(step.kernel, DEFAULT), name)
    head, entry, body = code.text.partition("__global__")
    opening, brace, rest = body.partition("{")
    return replace(code, text=f"{head}{entry}{opening}{brace} {bad}{rest}")


class PlantedBackend(CudaBackend):
    """The GPU with some planted schedules, which look a thousand times faster than all others."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._names = names

    def schedules(self, kernel: Kernel) -> Sequence[Schedule]:
        return (DEFAULT, *(Schedule(name) for name in self._names))

    def together(self, kernels: Sequence[Kernel]) -> Sequence[Schedule]:
        return ()

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        found = super().cost(kernel, DEFAULT, dims)
        return replace(found, seconds=found.seconds / 1000) if schedule.template in self._names else found


if __name__ == "__main__":
    launch.emit = emit  # type: ignore[attr-defined]
    worker.main()
