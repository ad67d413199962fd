"""From the kernels of a variant to its buffers and launches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lumi.bufferize.alias import Aliasing, Resolved
from lumi.bufferize.arena import pack
from lumi.bufferize.call import Call, Instance, Interface, Value, interface, link, values
from lumi.bufferize.span import Span
from lumi.dim import DimRange
from lumi.hlir.graph import Graph
from lumi.hlir.room import unproved
from lumi.llir.kernel import Kernel, Schedule, Step
from lumi.plan.check import lifetimes, size_in_bytes
from lumi.plan.plan import Buffer, Launch, Need, PlanKernel, Role, Variant


class KernelTable:
    """The kernels of a plan: equal steps are one kernel.  `emit` makes the code of a step."""

    def __init__(self, emit: Callable[[Step, str], str]) -> None:
        self._emit = emit
        self._numbers: dict[str, int] = {}
        self._known: dict[int, tuple[Step, int]] = {}
        self._kernels: list[PlanKernel] = []

    @property
    def kernels(self) -> tuple[PlanKernel, ...]:
        """All kernels so far, in the order of their numbers."""
        return tuple(self._kernels)

    def number(self, step: Step, scope: str) -> int:
        """The number of a step's kernel; `scope` names it when it is new."""
        if id(step) not in self._known:
            self._known[id(step)] = step, self._number(step, scope)
        return self._known[id(step)][1]

    def _number(self, step: Step, scope: str) -> int:
        key = repr(step)
        if key not in self._numbers:
            self._numbers[key] = len(self._kernels)
            name = re.sub(r"\W+", "_", f"k{len(self._kernels)}_{scope.rpartition('/')[2]}").rstrip("_")
            source = self._emit(step, name)
            made = PlanKernel(name, scope, step.kernel, step.schedule, source, step.beside, step.then)
            self._kernels.append(made)
        return self._numbers[key]

    def name(self, step: Step) -> str | None:
        """The name of a step's kernel; None when the plan runs another, laid over its input."""
        number = self._numbers.get(repr(step))
        return None if number is None else self._kernels[number].name


def bufferize(
    graph: Graph,
    instances: Sequence[Instance],
    dims: Mapping[str, DimRange],
    kernels: KernelTable,
    schedules: Callable[[Kernel], Sequence[Schedule]],
) -> Variant:
    """The variant that runs `instances` in order, valid for every call whose dims lie in `dims`.

    New kernels go into `kernels`; copies run under the first of their `schedules`.
    """
    variant = assemble(interface(graph), link(instances), dims, kernels, schedules)
    needs = tuple(Need(gap, str(reach)) for gap, reach in unproved(graph, dims).items())
    return replace(variant, needs=needs)


def assemble(
    face: Interface,
    calls: Sequence[Call],
    dims: Mapping[str, DimRange],
    kernels: KernelTable,
    schedules: Callable[[Kernel], Sequence[Schedule]],
) -> Variant:
    """The same from calls on named values."""
    resolved = Aliasing(calls, face, schedules).resolve()
    table = _needed(resolved, face)
    numbers = {name: k for k, name in enumerate(table)}
    launches = tuple(_launch(call, numbers, kernels) for call in resolved.calls)
    outputs = {output: numbers[name] for output, name in resolved.outputs.items()}
    unplaced = tuple(Buffer(v.name, v.role, v.dtype, v.shape) for v in table.values())
    return place(Variant(dims, unplaced, launches, outputs, 0, 0))


def place(variant: Variant) -> Variant:
    """The variant with every buffer of the arena at its offset."""
    spans = {
        str(n): Span(size_in_bytes(variant.buffers[n], variant.dims), *times)
        for n, times in lifetimes(variant).items()
    }
    arena = pack(spans)
    placed = tuple(replace(b, offset=arena.offsets.get(str(n), 0)) for n, b in enumerate(variant.buffers))
    return replace(variant, buffers=placed, arena=arena.size, peak=arena.peak)


def _needed(resolved: Resolved, face: Interface) -> dict[str, Value]:
    """Every value that a call or an output touches, and every leaf."""
    table = values(resolved.calls, face.leaves)
    for name in resolved.outputs.values():
        if table[name].role is Role.TEMPORARY:
            table[name] = replace(table[name], role=Role.OUTPUT)
    return table


def _launch(call: Call, numbers: Mapping[str, int], kernels: KernelTable) -> Launch:
    number = kernels.number(call.step, call.scope)
    return Launch(number, tuple(numbers[call.names[b]] for b in call.mark.buffers))
