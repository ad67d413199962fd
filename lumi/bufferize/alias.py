"""Where the new values of states go: over the old ones when that is safe, else by a copy.

A kernel that updates part of a state already writes into the state's buffer.  A state that gets a whole
new value keeps its buffer too: the new value is laid over the old one when every reader of the old value
comes first, or can be brought forward because it does not depend on the new one.  Else there is a conflict:
the new value has a buffer of its own and is copied when everything has run.

What a state takes over as it is, from an input or from what another state held, is a copy that runs like
any kernel, so that it is laid over the state by the same rule: states that change places take one copy
more than there are states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lumi.bufferize.call import Call, Interface, call, values
from lumi.bufferize.copy import SOURCE, TARGET, copy_kernel
from lumi.bufferize.inplace import merge
from lumi.bufferize.order import before
from lumi.llir.kernel import Kernel, Schedule, Step
from lumi.plan.plan import Role


@dataclass(frozen=True, slots=True)
class Resolved:
    """Calls in which every state ends in its own buffer; `outputs` maps names to values."""

    calls: tuple[Call, ...]
    outputs: dict[str, str]


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

    def resolve(self) -> Resolved:
        """Lay every update over its state or copy it there; a state that is no leaf is never read."""
        for output, key in self._face.before.items():
            self._outputs[output] = self._saved(key)
        changed = {k: name for k, name in self._face.updates.items() if name != k and k in self._face.leaves}
        updates = {key: self._fresh(key, name) for key, name in changed.items()}
        laid: dict[str, str] = {}
        repairs: list[Call] = []
        for key, name in updates.items():
            if name not in laid and self._overlay(key, name):
                laid[name] = key
                repairs = [_renamed(c, name, key) for c in repairs]
            else:
                repairs.append(self._copy(laid.get(name, name), key))
        return Resolved((*self._calls, *repairs), self._outputs)

    def _saved(self, key: str) -> str:
        """A fresh buffer with what the state holds before anything runs."""
        name = f"%{key}.old"
        if name not in self._values:
            self._calls.insert(0, self._copy_to(key, name))
        return name

    def _fresh(self, key: str, name: str) -> str:
        """The value that a state gets, computed in this call: a copy of what exists before it."""
        if name not in self._face.leaves:
            return name
        made = f"%{key}.new"
        copy = self._copy_to(name, made)
        changes = any(name in c.writes() for c in self._calls)
        self._calls.insert(0 if changes else len(self._calls), copy)
        return made

    def _copy_to(self, source: str, name: str) -> Call:
        """A copy to a temporary of its own."""
        self._values[name] = replace(self._values[source], name=name, role=Role.TEMPORARY)
        return self._copy(source, name)

    def _copy(self, source: str, target: str) -> Call:
        kernel = copy_kernel(self._values[source].dtype, self._values[source].shape)
        return call(Step(kernel, self._schedules(kernel)[0]), {SOURCE: source, TARGET: target}, "copy")

    def _overlay(self, key: str, name: str) -> bool:
        """Let the value `name` live in the buffer of state `key`, if no reader of the old value sees it."""
        old, new = self._values[key], self._values[name]
        writers = [n for n, c in enumerate(self._calls) if name in c.writes()]
        readers = [n for n, c in enumerate(self._calls) if key in c.names.values()]
        if not writers or (old.dtype, old.shape) != (new.dtype, new.shape):
            return False
        if any(key in c.writes() for c in self._calls):
            return False
        calls = before(self._calls, writers[0], [n for n in readers if n > writers[0]])
        if calls is None:
            return False
        if writers[0] in readers:
            writer = self._calls[writers[0]]
            merged = self._merge(writer, key, name) if len(writers) == 1 else None
            if merged is None:
                return False
            calls = [merged if c is writer else c for c in calls]
        self._calls = [_renamed(c, name, key) for c in calls]
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
