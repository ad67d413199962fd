"""Calls a plan: inputs in, outputs out, states kept between calls."""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lumi.dim import Dim
from lumi.errors import LumiError
from lumi.plan.check import size_in_bytes
from lumi.plan.plan import ALIGNMENT, Plan, Role, Signature, Variant
from lumi.runtime import dlpack
from lumi.runtime.array import accept, accept_lent, keep, take
from lumi.runtime.counters import Counters
from lumi.runtime.device import Array, Device, Memory, Place, Program, open_device, room_for
from lumi.runtime.device_array import DeviceArray
from lumi.runtime.dims import Shaped, bind_dims
from lumi.runtime.model import Model, load_model
from lumi.runtime.params import Arrays, Random, Source
from lumi.runtime.route import Route, route
from lumi.runtime.states import States
from lumi.runtime.values import check_values

Weights: TypeAlias = "Source | Mapping[str, Array] | str | Path | None"
"""A checkpoint, arrays by key, the path of a checkpoint, or nothing."""

Given: TypeAlias = "Array | dlpack.Borrowed"
"""An accepted input: an array of the host, or another library's tensor on the device."""

IN_PLACE = 1 << 20
"""Bytes from which an input that lies on the device is read there; a smaller one is copied within it."""

_BOUND = 4
"""Launches that are kept for addresses of inputs, the last ones used."""

_ROUTES = 1024
"""Kinds of calls whose routes are kept at once."""


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
        self._start(model, States(plan, model.device, model.initial), threading.RLock())

    def _start(self, model: Model, states: States, lock: threading.RLock) -> None:
        self._model = model
        self._states = states
        self._lock = lock
        self._began = copy.copy(model.device.counters)
        self._signatures = {s.name: (s, s.dtype.storage, len(s.shape)) for s in model.plan.inputs}
        self._limited = [s for s in model.plan.inputs if s.most is not None]
        self._routes: dict[tuple[object, ...], Route] = {}
        self._ready: dict[tuple[int, tuple[tuple[str, int], ...]], _Ready] = {}
        self._arena: Memory | None = None

    @property
    def plan(self) -> Plan:
        """What it runs."""
        return self._model.plan

    @property
    def device(self) -> Device:
        """What it runs on."""
        return self._model.device

    @property
    def counters(self) -> Counters:
        """What its device was asked for since the session began, by other sessions on the device, too.

        Once a variant has run, its calls capture nothing and allocate only what they return.
        """
        return self.device.counters - self._began

    def __call__(self, **arguments: Any) -> dict[str, np.ndarray[Any, Any]]:
        """Run once; see `run`.  A keyword that names a dim is its value, any other an input."""
        known = self._model.plan.dims
        dims = {k: arguments.pop(k) for k in known if k in arguments}
        return self.run(arguments, dims)

    def run(
        self, inputs: Mapping[str, Any], dims: Mapping[str, int] | None = None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Run once and return the outputs by name, as arrays that later calls do not touch.

        Inputs are numpy arrays, lists and numbers, or DLPack tensors on the host or on the session's
        device.  Dims that no input's shape shows must be given.  Raises `LumiError` ("input error",
        "shape error", "dim error").
        """
        with self._lock:
            ready, bound = self._launch(inputs, dims or {})
            return {s.name: take(s, ready.outputs[s.name], bound) for s in self.plan.outputs}

    def run_on_device(
        self, inputs: Mapping[str, Any], dims: Mapping[str, int] | None = None
    ) -> dict[str, DeviceArray]:
        """Like `run`, but the outputs stay on the device, and nothing waits for them.

        Only a call that reads another library's tensor waits until that may change again.
        """
        with self._lock:
            ready, bound = self._launch(inputs, dims or {})
            return {s.name: keep(s, ready.outputs[s.name], bound, self.device) for s in self.plan.outputs}

    def _launch(self, inputs: Mapping[str, Any], dims: Mapping[str, Any]) -> tuple[_Ready, dict[str, int]]:
        """Put a call on the device's queue."""
        given = self._accept(inputs)
        kind = (*dims, *[one.shape for one in given.values()])
        known = self._routes.get(kind)
        bound = None if known is None else known.bind(dims)
        if known is None or bound is None:
            number, bound = self._look_up(kind, given, dims)
        else:
            number = known.variant
        for signature in self._limited:
            check_values(signature, given[signature.name], bound)
        self._own(number)
        lent = {name: one for name, one in given.items() if isinstance(one, dlpack.Borrowed)}
        ready = self._prepare(number, lent)
        for name, one in given.items():
            place = ready.inputs[name]
            if isinstance(one, np.ndarray):
                place.memory.write(one, place.offset)
            elif not _reads_in_place(one):
                place.memory.copy(self.device.view(one.address, _size(one)), place.offset)
        ready.program.run(bound)
        if lent:
            self.device.wait()
        return ready, bound

    def _look_up(
        self, kind: tuple[object, ...], given: Mapping[str, Given], dims: Mapping[str, Any]
    ) -> tuple[int, dict[str, int]]:
        """The number of a call's variant and the value of every dim; what it shows of its kind is kept."""
        told, plan = self._integers(dims), self.plan
        shaped = [Shaped(s, given[s.name].shape) for s in plan.inputs]
        bound = bind_dims(plan.dims, told, shaped)
        number = self._model.choose(bound)
        self._states.hold(bound)
        found = route(self._model, number, bound, told)
        if found is not None:
            if len(self._routes) >= _ROUTES:
                self._routes.clear()
            self._routes[kind] = found
        return number, bound

    def _own(self, number: int) -> None:
        """Have the states that a variant writes in memory that no fork reads, and launches that know it."""
        if self._states.is_shared:
            self._states.own(self._model.written(number))
        if self._states.moved:
            self._ready.clear()
            self._states.moved = False

    def reset(self) -> None:
        """Make every state what it was before the first call: zero, or the weights it begins with."""
        with self._lock:
            self._routes.clear()
            self._states.reset()

    def save_states(self, path: str | Path | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """A copy of every state, by key; with a path it is written there too, as safetensors.

        Raises `LumiError` while a state's shape is not known, and where the file cannot be written.
        """
        with self._lock:
            if path is not None:
                self._states.write(Path(path))
            return self._states.save()

    def load_states(self, states: Mapping[str, Any] | str | Path) -> None:
        """Set every state to what `save_states` of a session of the same model returned or wrote to a path.

        Raises `LumiError` for states of another model, and leaves them all as they were then.
        """
        with self._lock:
            self._routes.clear()
            self._states.load(Path(states) if isinstance(states, str) else states)

    def randomize_states(self, seed: int = 0, dims: Mapping[str, int] | None = None) -> None:
        """Fill every state with seeded numbers, so that a call at a late position can be measured alone.

        `dims` are those that shapes of states depend on.
        """
        with self._lock:
            self._routes.clear()
            self._states.randomize(seed, dims or {})

    def fork(self) -> Session:
        """A session that goes on from the states as they are, over the same weights and kernels.

        They are shared until one of the two changes them: the first call that writes a state copies it.
        A session and its forks take turns.
        """
        other = Session.__new__(Session)
        with self._lock:
            other._start(self._model, self._states.fork(), self._lock)
        return other

    def _accept(self, inputs: Mapping[str, Any]) -> dict[str, Given]:
        signatures = self._signatures
        if inputs.keys() != signatures.keys():
            unknown, missing = set(inputs) - set(signatures), set(signatures) - set(inputs)
            what = f"no input is called {min(unknown)}" if unknown else f"input {min(missing)} is not given"
            listed = "; ".join(map(str, self.plan.inputs)) or "none"
            raise LumiError("input error", what, hint=f"inputs: {listed}")
        given: dict[str, Given] = {}
        for name, (signature, storage, rank) in signatures.items():
            value = inputs[name]
            is_plain = type(value) is np.ndarray and value.dtype == storage and value.ndim == rank
            as_it_is = is_plain and value.flags.c_contiguous and value.flags.aligned
            given[name] = value if as_it_is else self._accepted(signature, value)
        return given

    def _accepted(self, signature: Signature, value: Any) -> Given:
        if isinstance(value, np.ndarray) or dlpack.device_of(value) in (None, _HOST):
            return accept(signature, value, "input")
        if dlpack.device_of(value) == self.device.kind:
            return accept_lent(signature, value, self.device)
        raise LumiError(
            "input error",
            f"input {signature.name} lies on another device than the session's, {self.device.name}",
            hint="move it there, or to the host",
        )

    def _integers(self, dims: Mapping[str, Any]) -> dict[str, int]:
        for name, value in dims.items():
            if type(value) is int and name in self._model.plan.dims:
                continue
            if name not in self.plan.dims:
                listed = ", ".join(self.plan.dims) or "none"
                raise LumiError("dim error", f"no dim is called {name}", hint=f"dims: {listed}")
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise LumiError("dim error", f"{name} is {value!r}", hint="a dim is an integer")
        return {name: int(value) for name, value in dims.items()}

    def _prepare(self, number: int, lent: Mapping[str, dlpack.Borrowed]) -> _Ready:
        """A variant's launches, those that read large tensors where these lie now."""
        bound = tuple([(name, one.address) for name, one in lent.items() if _reads_in_place(one)])
        ready = self._ready.pop((number, bound), None)
        if ready is None:
            if self._arena is None:
                self._arena = self._allocate()
            seen = {name: self.device.view(address, _size(lent[name])) for name, address in bound}
            ready = self._place(number, self.plan.variants[number], self._arena, seen)
            others = [key for key in self._ready if key[1]]
            if bound and len(others) >= _BOUND:
                del self._ready[others[0]]
        self._ready[number, bound] = ready
        return ready

    def _allocate(self) -> Memory:
        """One arena for all variants, at the largest dims.  Raises `LumiError` where memory has no room."""
        largest = max(self.plan.variants, key=lambda v: v.arena)
        most = _largest_dims(largest)
        hint = "the model is too large for this machine"
        if most:
            hint = "memory is laid out for the largest dims: lower :max in defdim, or fix the dim with --bind"
        with room_for(f"the buffers of {self.plan.name}{most} need", largest.arena, hint):
            return self.device.allocate(largest.arena)

    def _place(self, number: int, variant: Variant, arena: Memory, lent: Mapping[str, Memory]) -> _Ready:
        inputs = {**self._model.executable.inputs(number), **lent}
        owned = {Role.PARAM: self._model.params, Role.STATE: self._states.memories, Role.INPUT: inputs}
        places = [
            Place(owned[b.role][b.name], 0) if b.name in owned.get(b.role, ()) else Place(arena, b.offset)
            for b in variant.buffers
        ]
        named = zip(variant.buffers, places, strict=True)
        filled = {b.name: place for b, place in named if b.role is Role.INPUT}
        outputs = {name: places[n] for name, n in variant.outputs.items()}
        return _Ready(self._model.executable.prepare(number, places), filled, outputs)


_HOST = (dlpack.CPU, 0)


def _largest_dims(variant: Variant) -> str:
    """What the largest buffer of the arena depends on: ` at n = 4096`; "" where it has one size."""
    sizes = {b: size_in_bytes(b, variant.dims) for b in variant.buffers if b.role.in_arena}
    shape = max(sizes, key=sizes.__getitem__).shape if sizes else ()
    names = {name for size in shape if isinstance(size, Dim) for name in size.names()}
    values = [f"{r.name} = {r.high}" for r in variant.dims.values() if r.name in names]
    return f" at {', '.join(values)}" if values else ""


def _size(given: Given) -> int:
    return math.prod(given.shape) * (given.itemsize if isinstance(given, np.ndarray) else given.dtype.size)


def _reads_in_place(lent: dlpack.Borrowed) -> bool:
    return _size(lent) >= IN_PLACE and lent.address % ALIGNMENT == 0


def _source(weights: Weights, init: str | None, seed: int) -> Source | None:
    if init not in (None, "random"):
        raise LumiError("weights error", f"init is {init!r}", hint='it can be "random"')
    if weights is None:
        return Random(seed) if init else None
    if isinstance(weights, str | Path):
        from lumi.runtime.weights import open_weights

        return open_weights(weights)
    return Arrays(weights) if isinstance(weights, Mapping) else weights
