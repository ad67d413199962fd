"""The states of one session: device memory that lives between calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lumi.errors import LumiError
from lumi.plan.check import size_in_bytes
from lumi.plan.plan import Buffer, Plan, Role, Signature
from lumi.runtime.array import accept, take
from lumi.runtime.device import Array, Device, Memory, Place, room_for
from lumi.runtime.dims import Shaped, bind_dims
from lumi.runtime.params import Random


class States:
    """Memory of every state, zero or `initial` at first, and the dims that their shapes were made with.

    A shape may depend on dims (a batch, say); those keep their values until `reset`.
    """

    def __init__(self, plan: Plan, device: Device, initial: Mapping[str, Array]) -> None:
        self._plan = plan
        self._device = device
        self._initial = initial
        self._shaping = {name: s.name for s in reversed(plan.states) for name in s.dims()}
        self._held: dict[str, int] = {}
        self.memories: dict[str, Memory] = {s.name: self._allocate(s) for s in plan.states}
        for name, array in initial.items():
            self.memories[name].write(array)

    def _allocate(self, signature: Signature) -> Memory:
        """Memory for a state at the largest dims.  Raises `LumiError` where there is none left."""
        buffer = Buffer(signature.name, Role.STATE, signature.dtype, signature.shape)
        size = size_in_bytes(buffer, self._plan.dims)
        with room_for(f"state {signature} needs", size, "make it smaller where the model declares it"):
            return self._device.allocate(size)

    def hold(self, dims: Mapping[str, int]) -> None:
        """Use these dims; those of the shapes must be what they were in earlier calls."""
        if not self._shaping:
            return
        for name, state in self._shaping.items():
            if self._held.get(name, dims[name]) != dims[name]:
                raise LumiError(
                    "dim error",
                    f"{name} is {dims[name]}, but state {state} holds {name}={self._held[name]}",
                    hint="call reset() first",
                )
        self._held |= {name: dims[name] for name in self._shaping}

    def reset(self) -> None:
        """Make everything what it was at first and forget the dims."""
        for name, memory in self.memories.items():
            if name in self._initial:
                memory.write(self._initial[name])
            else:
                memory.clear()
        self._held = {}

    def save(self) -> dict[str, np.ndarray[Any, Any]]:
        """A copy of every state, by key."""
        return {s.name: take(s, Place(self.memories[s.name], 0), self._dims(s)) for s in self._plan.states}

    def load(self, states: Mapping[str, Any]) -> None:
        """Set every state to what `save` returned; a fault leaves all as they were."""
        signatures = {s.name: s for s in self._plan.states}
        if set(states) != set(signatures):
            raise LumiError(
                "input error",
                f"the states given are {', '.join(sorted(states)) or 'none'}",
                hint=f"the model has {', '.join(signatures) or 'none'}",
            )
        arrays = {name: accept(s, states[name], "state") for name, s in signatures.items()}
        shaped = [Shaped(s, arrays[name].shape) for name, s in signatures.items()]
        wanted = {n: self._plan.dims[n] for s in signatures.values() for n in s.dims()}
        self._held = bind_dims(wanted, {}, shaped)
        for name, array in arrays.items():
            self.memories[name].write(array)

    def randomize(self, seed: int, dims: Mapping[str, int]) -> None:
        """Fill every state with seeded numbers, as if calls with these dims had."""
        self._held = {name: dims[name] for name in self._shaping}
        source = Random(seed)
        for signature in self._plan.states:
            memory, noise = self.memories[signature.name], source.noise(signature.name, signature.dtype, (1,))
            count = memory.size // signature.dtype.size
            made = self._device.random(noise, count)
            if made is None:
                memory.write(noise.array(count))
            else:
                memory.copy(made)

    def copy(self) -> States:
        """Equal states in memory of their own."""
        other = States(self._plan, self._device, self._initial)
        other._held = dict(self._held)
        for name, memory in self.memories.items():
            other.memories[name].copy(memory)
        return other

    def _dims(self, signature: Signature) -> Mapping[str, int]:
        for name in signature.dims():
            if name not in self._held:
                raise LumiError(
                    "dim error",
                    f"the shape of state {signature.name} depends on {name}, which no call has given",
                    hint="call the session first",
                )
        return self._held
