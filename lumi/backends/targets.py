"""The backend of each target that Lumi compiles for."""

from __future__ import annotations

from typing import Protocol

from lumi.backends.cpu import binary
from lumi.backends.cpu.backend import CpuBackend
from lumi.backends.cuda.backend import CudaBackend
from lumi.errors import LumiError
from lumi.llir.kernel import Step
from lumi.plan.plan import Binary, Plan
from lumi.search.protocol import Backend


class Target(Backend, Protocol):
    """A backend that also makes code."""

    def emit(self, step: Step, name: str) -> str:
        """The code of a kernel under its schedule, as a function called `name`."""


_TARGETS: dict[str, type[CpuBackend] | type[CudaBackend]] = {"cpu": CpuBackend, "cuda": CudaBackend}


def open_backend(target: str) -> Target:
    """The backend of a target.  Raises `LumiError` for an unknown one."""
    if target not in _TARGETS:
        known = ", ".join(_TARGETS)
        raise LumiError("device error", f"Lumi does not compile for {target!r}", hint=f"targets: {known}")
    return _TARGETS[target]()


def compile_binary(plan: Plan) -> Binary:
    """The kernels of a plan, compiled for machines like this one.  Raises `LumiError` if that cannot be."""
    if plan.target != "cpu":
        raise LumiError("device error", f"plans for {plan.target} carry no binaries")
    return binary.build(plan)
