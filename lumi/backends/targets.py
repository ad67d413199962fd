"""The backend of each target that Lumi compiles for."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from lumi.backends.cpu import binary
from lumi.backends.cpu.backend import CpuBackend
from lumi.backends.cuda import beside as cuda
from lumi.backends.cuda.backend import CudaBackend
from lumi.backends.cuda.driver import missing
from lumi.errors import LumiError
from lumi.field.region import Region
from lumi.llir.kernel import Step
from lumi.plan.plan import Binary, Plan, PlanKernel
from lumi.search.model import Machine
from lumi.search.protocol import Backend


class Target(Backend, Protocol):
    """A backend that also makes code."""

    @property
    def machine(self) -> Machine:
        """What the model knows of the device that its times are those of."""

    @property
    def longest(self) -> int:
        """Positions of an axis at most."""

    @property
    def memory(self) -> int:
        """Bytes of the device at hand, else of one that the target's plans are made for."""

    def emit(self, step: Step, name: str) -> str:
        """The code of a kernel under its schedule, as a function called `name`."""

    def chunks(self, region: Region, hints: Sequence[Mapping[str, int]]) -> Mapping[str, int]:
        """Into how many chunks reductions over axes of a region may be split."""


_TARGETS = "cpu", "cuda"

_RELAXED = ("tf32",)


def open_backend(
    target: str, exact: bool = False, relaxed: Collection[str] = (), barred: Collection[str] = ()
) -> Target:
    """The backend of a target; with `exact` it rounds nothing that a kernel does not round.

    But it may round as `relaxed` says: with tf32 in it, products of f32 may take TF32, which the CPU does not
    have.  No kernel has a template of `barred`, but for the one that works for all.  Raises `LumiError` for
    an unknown target or way of rounding.
    """
    unknown = sorted(set(relaxed) - set(_RELAXED))
    if unknown:
        hint = f"ways: {', '.join(_RELAXED)}"
        raise LumiError("device error", f"Lumi has no way of rounding {unknown[0]!r}", hint=hint)
    if target not in _TARGETS:
        known = ", ".join(_TARGETS)
        raise LumiError("device error", f"Lumi does not compile for {target!r}", hint=f"targets: {known}")
    return CudaBackend(exact, "tf32" in relaxed, barred) if target == "cuda" else CpuBackend(barred)


def default_target() -> str:
    """What is compiled for unless something else is asked: `LUMI_TARGET`, else cuda if usable, else cpu."""
    return os.environ.get("LUMI_TARGET") or ("cpu" if missing() else "cuda")


def retarget(plan: Plan, target: str) -> Plan:
    """The same kernels for another target, each under the schedule that always works there.

    Slower than a plan compiled for the target.  Raises `LumiError` for a kernel that does not fit it.
    """
    if plan.target == target:
        return plan
    backend = open_backend(target)

    def plain(step: Step) -> Step:
        return replace(step, schedule=backend.schedules(step.kernel)[0], then=tuple(map(plain, step.then)))

    def moved(kernel: PlanKernel) -> PlanKernel:
        step = plain(kernel.step)
        try:
            source = backend.emit(step, kernel.name)
            return replace(kernel, schedule=step.schedule, source=source, then=step.then)
        except ValueError as error:
            hint = f"compile the model with --target {target}"
            raise LumiError(
                "device error", f"{kernel.name} does not fit {target}: {error}", hint=hint
            ) from None

    return replace(plan, target=target, kernels=tuple(map(moved, plan.kernels)), binaries=())


def beside(plan: Plan) -> Mapping[str, int]:
    """Bytes that a device holds for a plan beside weights, states and arena, by what they are for."""
    return cuda.beside(plan) if plan.target == "cuda" else {}


def compile_binary(plan: Plan) -> Binary:
    """The kernels of a plan, compiled for machines like this one.  Raises `LumiError` if that cannot be."""
    if plan.target != "cpu":
        raise LumiError("device error", f"plans for {plan.target} carry no binaries")
    return binary.build(plan)
