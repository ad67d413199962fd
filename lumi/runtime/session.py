"""Calls a plan: inputs in, outputs out, states kept between calls."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lumi.errors import LumiError
from lumi.plan.plan import Plan, Role, Variant
from lumi.runtime.array import accept, take
from lumi.runtime.device import Array, Device, Memory, Place, Program, open_device
from lumi.runtime.dims import Shaped, bind_dims
from lumi.runtime.model import Model, load_model
from lumi.runtime.params import Arrays, Random, Source
from lumi.runtime.states import States

Weights: TypeAlias = "Source | Mapping[str, Array] | str | Path | None"
"""A checkpoint, arrays by key, the path of a checkpoint, or nothing."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A variant whose launches have their addresses, and where its inputs and outputs lie."""

    program: Program
    inputs: Mapping[str, Place]
    outputs: Mapping[str, Place]


class Session:
    """A running model: its own states and arena, over weights and kernels that its forks share.

    `session(tokens=ids, past=3)` runs once: keywords are inputs and dims, the result maps each output's
    name to an array of its own.  Everything is prepared at a variant's first call; later calls allocate
    only what they return.  Calls from several threads run one after another.
    """

    def __init__(
        self,
        plan: Plan,
        weights: Weights = None,
        device: Device | None = None,
        *,
        init: str | None = None,
        seed: int = 0,
    ) -> None:
        """Compile the kernels and load the weights.

        `init="random"` makes seeded weights up when none are given.  Raises `LumiError` for a faulty plan
        and for weights that are missing or do not fit.
        """
        model = load_model(plan, _source(weights, init, seed), device or open_device(plan.target))
        self._start(model, States(plan, model.device, model.initial))

    def _start(self, model: Model, states: States) -> None:
        self._model = model
        self._states = states
        self._lock = threading.RLock()
        self._ready: dict[int, _Ready] = {}
        self._arena: Memory | None = None

    @property
    def plan(self) -> Plan:
        """What it runs."""
        return self._model.plan

    @property
    def device(self) -> Device:
        """What it runs on."""
        return self._model.device

    def __call__(self, **arguments: Any) -> dict[str, np.ndarray[Any, Any]]:
        """Run once; see `run`.  A keyword that names a dim is its value, any other an input."""
        dims = {k: v for k, v in arguments.items() if k in self.plan.dims}
        return self.run({k: v for k, v in arguments.items() if k not in dims}, dims)

    def run(
        self, inputs: Mapping[str, Any], dims: Mapping[str, int] | None = None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Run once and return the outputs by name, as arrays that later calls do not touch.

        Inputs are numpy arrays, DLPack tensors on the CPU, or lists and numbers.  Dims that no input's
        shape shows must be given.  Raises `LumiError` ("input error", "shape error", "dim error").
        """
        arrays = self._accept(inputs)
        shaped = [Shaped(s, arrays[s.name].shape) for s in self.plan.inputs]
        bound = bind_dims(self.plan.dims, self._integers(dims or {}), shaped)
        number = self._model.choose(bound)
        with self._lock:
            self._states.hold(bound)
            ready = self._prepare(number)
            for name, place in ready.inputs.items():
                place.memory.write(arrays[name], place.offset)
            ready.program.run(bound)
            return {s.name: take(s, ready.outputs[s.name], bound) for s in self.plan.outputs}

    def reset(self) -> None:
        """Make every state what it was before the first call: zero, or the weights it begins with."""
        with self._lock:
            self._states.reset()

    def save_states(self) -> dict[str, np.ndarray[Any, Any]]:
        """A copy of every state, by key.  Raises `LumiError` while a state's shape is not known."""
        with self._lock:
            return self._states.save()

    def load_states(self, states: Mapping[str, Any]) -> None:
        """Set every state to what `save_states` of this or an equal session returned."""
        with self._lock:
            self._states.load(states)

    def fork(self) -> Session:
        """A session with a copy of the states, over the same weights and kernels."""
        other = Session.__new__(Session)
        with self._lock:
            other._start(self._model, self._states.copy())
        return other

    def _accept(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        signatures = {s.name: s for s in self.plan.inputs}
        unknown, missing = set(inputs) - set(signatures), set(signatures) - set(inputs)
        if unknown or missing:
            what = f"no input is called {min(unknown)}" if unknown else f"input {min(missing)} is not given"
            listed = "; ".join(map(str, self.plan.inputs)) or "none"
            raise LumiError("input error", what, hint=f"inputs: {listed}")
        return {name: accept(s, inputs[name], "input") for name, s in signatures.items()}

    def _integers(self, dims: Mapping[str, Any]) -> dict[str, int]:
        for name, value in dims.items():
            if name not in self.plan.dims:
                listed = ", ".join(self.plan.dims) or "none"
                raise LumiError("dim error", f"no dim is called {name}", hint=f"dims: {listed}")
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise LumiError("dim error", f"{name} is {value!r}", hint="a dim is an integer")
        return {name: int(value) for name, value in dims.items()}

    def _prepare(self, number: int) -> _Ready:
        if number not in self._ready:
            if self._arena is None:
                self._arena = self.device.allocate(max(v.arena for v in self.plan.variants))
            self._ready[number] = self._place(number, self.plan.variants[number], self._arena)
        return self._ready[number]

    def _place(self, number: int, variant: Variant, arena: Memory) -> _Ready:
        owned = {Role.PARAM: self._model.params, Role.STATE: self._states.memories}
        places = [
            Place(arena, b.offset) if b.role.in_arena else Place(owned[b.role][b.name], 0)
            for b in variant.buffers
        ]
        named = zip(variant.buffers, places, strict=True)
        inputs = {b.name: place for b, place in named if b.role is Role.INPUT}
        outputs = {name: places[n] for name, n in variant.outputs.items()}
        return _Ready(self._model.executable.prepare(number, places), inputs, outputs)


def _source(weights: Weights, init: str | None, seed: int) -> Source | None:
    if init not in (None, "random"):
        raise LumiError("weights error", f"init is {init!r}", hint='it can be "random"')
    if weights is None:
        return Random(seed) if init else None
    if isinstance(weights, str | Path):
        from lumi.runtime.weights import open_weights

        return open_weights(weights)
    return Arrays(weights) if isinstance(weights, Mapping) else weights
