"""What a model holds in memory whatever its kernels are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lumi.bufferize import surface
from lumi.dim import DimRange
from lumi.errors import LumiError
from lumi.hlir.graph import Graph
from lumi.plan.check import size_in_bytes
from lumi.plan.plan import Buffer, Role, Signature


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes at the largest dims: of weights, of states, and of what a call is given and returns."""

    weights: int
    states: int
    exchanged: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.weights + self.states + self.exchanged

    def room(self, memory: int, name: str) -> int:
        """What is left of `memory` bytes for temporaries.  Raises `LumiError` where nothing is."""
        if memory > self.total:
            return memory - self.total
        parts = {"weights": self.weights, "states": self.states, "inputs and outputs": self.exchanged}
        listed = ", ".join(f"{what} {size}" for what, size in parts.items() if size)
        raise LumiError(
            "memory error",
            f"{name} holds {self.total} bytes at its largest dims ({listed}), and may have {memory}",
            hint="give more by --memory, make states smaller, or lower a dim's :max",
        )


def held(graph: Graph, dims: Mapping[str, DimRange]) -> Held:
    """What the model of a graph holds.  Raises `LumiError` where a size has no bound."""
    states = surface.states(graph)
    params = surface.bindings([graph], {})
    changed = {s.name for s in states}
    return Held(
        sum(math.prod(b.shape) * b.dtype.size for b in params if b.param not in changed),
        _sum(states, dims),
        _sum(surface.inputs(graph), dims) + _sum(surface.outputs(graph), dims),
    )


def _sum(signatures: Sequence[Signature], dims: Mapping[str, DimRange]) -> int:
    return sum(size_in_bytes(Buffer(s.name, Role.STATE, s.dtype, s.shape), dims) for s in signatures)
