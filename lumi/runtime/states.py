"""The states of one session: memory that lives between calls, shared with forks until it is written."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lumi.errors import LumiError
from lumi.plan.check import size_in_bytes
from lumi.plan.plan import Buffer, Plan, Role, Signature
from lumi.runtime.array import accept, take
from lumi.runtime.device import Array, Device, Memory, Place, room_for
from lumi.runtime.dims import Shaped, bind_dims
from lumi.runtime.params import Random
from lumi.runtime.state_file import read_states, write_states


@dataclass(slots=True)
class _Block:
    """Memory of a state and who shares it: the first of the holders may keep it when one of them writes."""

    memory: Memory
    holders: list[weakref.ref[States]]

    def others(self, one: States) -> list[States]:
        """The other holders that still exist."""
        found = (held() for held in self.holders)
        return [h for h in found if h is not None and h is not one]

    def is_first(self, one: States) -> bool:
        """Whether none of the holders that still exist came before."""
        return next((h for held in self.holders if (h := held()) is not None), one) is one


class States:
    """Memory of every state, zero or `initial` at first, and the dims that their shapes were made with.

    A shape may depend on dims (a batch, say); those keep their values until `reset`.  After a `fork` both
    read the same memory; whatever changes a state asks for memory of its `own` before.  `is_shared` tells
    whether any is, `moved` that some state lies elsewhere since.
    """

    def __init__(self, plan: Plan, device: Device, initial: Mapping[str, Array]) -> None:
        self._prepare(plan, device, initial)
        self._blocks = {s.name: self._block(self._allocate(s)) for s in plan.states}
        for name, array in initial.items():
            self._blocks[name].memory.write(array)

    def _prepare(self, plan: Plan, device: Device, initial: Mapping[str, Array]) -> None:
        self._plan = plan
        self._device = device
        self._initial = initial
        self._signatures = {s.name: s for s in plan.states}
        self._shaping = {name: s.name for s in reversed(plan.states) for name in s.dims()}
        self._held: dict[str, int] = {}
        self.is_shared = False
        self.moved = False

    @property
    def memories(self) -> dict[str, Memory]:
        """Where each state lies now."""
        return {name: block.memory for name, block in self._blocks.items()}

    def _block(self, memory: Memory) -> _Block:
        return _Block(memory, [weakref.ref(self)])

    def _allocate(self, signature: Signature) -> Memory:
        """Memory for a state at the largest dims.  Raises `LumiError` where there is none left."""
        buffer = Buffer(signature.name, Role.STATE, signature.dtype, signature.shape)
        size = size_in_bytes(buffer, self._plan.dims)
        with room_for(f"state {signature} needs", size, "make it smaller where the model declares it"):
            return self._device.allocate(size)

    # -- sharing

    def fork(self) -> States:
        """Equal states in the same memory, of which either copies what it is about to write."""
        other = States.__new__(States)
        other._prepare(self._plan, self._device, self._initial)
        other._held = dict(self._held)
        other._blocks = dict(self._blocks)
        for block in self._blocks.values():
            block.holders = [held for held in block.holders if held() is not None] + [weakref.ref(other)]
        self.is_shared = other.is_shared = bool(self._blocks)
        return other

    def own(self, names: Iterable[str], keep: bool = True) -> None:
        """Let no other read the memory of these states any more; with `keep` they hold what they held.

        Where others share it, the first of them keeps the memory, so that what it has prepared stays valid.
        """
        if not self.is_shared:
            return
        for name in names:
            block = self._blocks[name]
            others = block.others(self)
            if others:
                self._part(name, block, others, keep)
        self.is_shared = any(block.others(self) for block in self._blocks.values())

    def _part(self, name: str, block: _Block, others: list[States], keep: bool) -> None:
        """Give this or the others that share a block a copy of it."""
        fresh = self._allocate(self._signatures[name])
        stays = block.is_first(self)
        if keep or stays:
            fresh.copy(block.memory)
        mine, theirs = [weakref.ref(self)], [weakref.ref(other) for other in others]
        block.holders = mine if stays else theirs
        made = _Block(fresh, theirs if stays else mine)
        for holder in others if stays else [self]:
            holder._blocks[name] = made
            holder.moved = True

    # -- dims

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

    def _dims(self, signature: Signature) -> Mapping[str, int]:
        for name in signature.dims():
            if name not in self._held:
                raise LumiError(
                    "dim error",
                    f"the shape of state {signature.name} depends on {name}, which no call has given",
                    hint="call the session first",
                )
        return self._held

    # -- content

    def reset(self) -> None:
        """Make everything what it was at first and forget the dims."""
        self.own(self._blocks, keep=False)
        for name, memory in self.memories.items():
            if name in self._initial:
                memory.write(self._initial[name])
            else:
                memory.clear()
        self._held = {}

    def save(self) -> dict[str, np.ndarray[Any, Any]]:
        """A copy of every state, by key."""
        memories = self.memories
        return {s.name: take(s, Place(memories[s.name], 0), self._dims(s)) for s in self._plan.states}

    def write(self, path: Path) -> None:
        """Write every state into a file.  Raises `LumiError` as `save` does, and where there is no room."""
        for signature in self._plan.states:
            self._dims(signature)
        write_states(path, self._plan, self.memories, self._held)

    def load(self, states: object) -> None:
        """Set every state to what `save` returned or `write` has written; a fault leaves all as they were."""
        if isinstance(states, Path):
            states = read_states(states, self._plan)
        if not isinstance(states, Mapping):
            what = f"states are given as {type(states).__name__}"
            raise LumiError(
                "input error", what, hint="a path is expected, or arrays by the name of the state"
            )
        if set(states) != set(self._signatures):
            raise LumiError(
                "input error",
                f"the states given are {', '.join(sorted(map(str, states))) or 'none'}",
                hint=f"the model has {', '.join(self._signatures) or 'none'}",
            )
        arrays = {name: accept(s, states[name], "state") for name, s in self._signatures.items()}
        shaped = [Shaped(s, arrays[name].shape) for name, s in self._signatures.items()]
        wanted = {n: self._plan.dims[n] for s in self._signatures.values() for n in s.dims()}
        self._held = bind_dims(wanted, {}, shaped)
        self.own(self._blocks, keep=False)
        for name, array in arrays.items():
            self._blocks[name].memory.write(array)

    def randomize(self, seed: int, dims: Mapping[str, int]) -> None:
        """Fill every state with seeded numbers, as if calls with these dims had."""
        self._held = {name: dims[name] for name in self._shaping}
        self.own(self._blocks, keep=False)
        source = Random(seed)
        for signature in self._plan.states:
            memory = self._blocks[signature.name].memory
            noise = source.noise(signature.name, signature.dtype, (1,))
            count = memory.size // signature.dtype.size
            made = self._device.random(noise, count)
            if made is None:
                memory.write(noise.array(count))
            else:
                memory.copy(made)
