"""Where the new values of states go: over the old ones when that is safe, else by a copy.

A kernel that updates part of a state already writes into the state's buffer.  A state that gets a whole
new value keeps its buffer too: the new value is laid over the old one when every reader of the old value
comes first; else it has a buffer of its own and is copied when everything has run.  Copies read only
what no other copy writes, so that states may be swapped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lumi.bufferize.call import Call, Interface, Value, call, values
from lumi.bufferize.copy import SOURCE, TARGET, copy_kernel
from lumi.bufferize.inplace import merge
from lumi.llir.kernel import Kernel, Schedule, Step
from lumi.plan.plan import Role


@dataclass(frozen=True, slots=True)
class Resolved:
    """Calls in which every state ends in its own buffer; `outputs` maps names to values."""

    calls: tuple[Call, ...]
    outputs: dict[str, str]
    copies: tuple[str, ...]


class Aliasing:
    """Resolves the states of one variant.  A copy runs under the first of its `schedules`."""

    def __init__(
        self, calls: Sequence[Call], face: Interface, schedules: Callable[[Kernel], Sequence[Schedule]]
    ) -> None:
        self._calls = list(calls)
        self._face = face
        self._schedules = schedules
        self._values = values(calls, face.leaves)
        self._outputs = dict(face.outputs)
        self._before: list[Call] = []
        self._after: list[Call] = []

    def resolve(self) -> Resolved:
        """Lay every update over its state or copy it there."""
        for output, key in self._face.before.items():
            self._outputs[output] = self._save(key)
        laid: dict[str, str] = {}
        for key, name in self._face.updates.items():
            if name == key:
                continue
            if name in self._face.leaves:
                state = self._face.leaves[name].role is Role.STATE
                self._after.append(self._copy(self._save(name) if state else name, key))
            elif name not in laid and self._overlay(key, name):
                laid[name] = key
            else:
                self._after.append(self._copy(laid.get(name, name), key))
        copied = tuple(c.names[TARGET] for c in (*self._before, *self._after))
        return Resolved((*self._before, *self._calls, *self._after), self._outputs, copied)

    def _save(self, key: str) -> str:
        """A fresh buffer with what the state holds before anything runs."""
        name = f"%{key}"
        if name not in self._values:
            self._values[name] = replace(self._values[key], name=name, role=Role.TEMPORARY)
            self._before.append(self._copy(key, name))
        return name

    def _copy(self, source: str, target: str) -> Call:
        value: Value = self._values[source]
        kernel = copy_kernel(value.dtype, value.shape)
        return call(Step(kernel, self._schedules(kernel)[0]), {SOURCE: source, TARGET: target}, "copy")

    def _overlay(self, key: str, name: str) -> bool:
        """Let the value `name` live in the buffer of state `key`, if no reader of the old value sees it."""
        old, new = self._values[key], self._values[name]
        writers = [n for n, c in enumerate(self._calls) if name in c.writes()]
        readers = [n for n, c in enumerate(self._calls) if key in c.names.values()]
        if not writers or (old.dtype, old.shape) != (new.dtype, new.shape):
            return False
        if any(n > writers[0] for n in readers) or any(key in c.writes() for c in self._calls):
            return False
        if writers[0] in readers:
            merged = self._merge(self._calls[writers[0]], key, name) if len(writers) == 1 else None
            if merged is None:
                return False
            self._calls[writers[0]] = merged
        self._calls = [_renamed(c, name, key) for c in self._calls]
        self._after = [_renamed(c, name, key) for c in self._after]
        self._outputs = {o: key if v == name else v for o, v in self._outputs.items()}
        return True

    def _merge(self, both: Call, key: str, name: str) -> Call | None:
        if len(both.step.kernels) > 1:
            return None  # of kernels that run together none may write what another reads
        own = {actual: own for own, actual in both.names.items()}
        kernel = merge(both.step.kernel, own[key], own[name])
        return None if kernel is None else call(replace(both.step, kernel=kernel), both.names, both.scope)


def _renamed(call: Call, name: str, to: str) -> Call:
    return replace(call, names={own: to if actual == name else actual for own, actual in call.names.items()})
