"""Runs graphs on a device for the prompt: compiles each once, keeps params, states and given tensors.

A graph is known by its text, so that evaluating the same expression again costs only its run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lumi import dim
from lumi.compiler import Options, compile_graph
from lumi.dtype import DType
from lumi.hlir import text
from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import Input, Param, State
from lumi.runtime.device import Device, open_device, room_for
from lumi.runtime.params import Random
from lumi.runtime.session import Session
from lumi.search.settings import Mode, Settings

Array = np.ndarray[Any, np.dtype[Any]]

QUICK = Options(families=("exact",), settings=Settings(mode=Mode.NONE))
"""How entries are compiled: the first plan that works, every rounding as it is written."""

_REMEMBERED = 256
"""Graphs that are kept in the form in which they are compiled."""

_UPDATE = "update:"
"""Marks the outputs that carry new values of params."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A compiled graph: what it reads, and the values of its dims."""

    session: Session
    inputs: Sequence[str]
    params: frozenset[str]
    dims: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Exposed:
    """A graph as it came, as it is compiled, the params it updates, and the text it is known by."""

    given: Graph
    graph: Graph
    updated: list[str]
    key: str


@dataclass(slots=True)
class Evaluator:
    """Everything that outlives an entry, for graphs that run on `target`, in precisions of `relaxed`, too.

    `params` and `states` hold arrays by key, `inputs` the tensors that names are bound to, by input name.
    """

    target: str = "cpu"
    relaxed: tuple[str, ...] = ()
    params: dict[str, Array] = field(default_factory=dict)
    states: dict[str, Array] = field(default_factory=dict)
    inputs: dict[str, Array] = field(default_factory=dict)
    _device: Device | None = None
    _ready: dict[str, _Ready] = field(default_factory=dict)
    _exposed: dict[int, _Exposed] = field(default_factory=dict)

    def run(self, graph: Graph) -> dict[str, Array]:
        """The outputs of the graph by name; states and params are left as it leaves them.

        Dims have their first hint.  A param that no entry has set holds its initial value, or seeded
        random numbers; a state begins with zeros, also when it is declared again with another type.
        """
        exposed = self._expose(graph)
        ready, updated = self._prepare(exposed), exposed.updated
        session = ready.session
        if session.plan.states:
            session.load_states({s.name: self.states[s.name] for s in session.plan.states})
        outputs = session.run({name: self.inputs[name] for name in ready.inputs}, ready.dims)
        self.states |= session.save_states()
        self.params |= {key: outputs.pop(_UPDATE + key) for key in updated}
        if updated:
            self._ready = {k: r for k, r in self._ready.items() if r.params.isdisjoint(updated)}
        return outputs

    def _expose(self, graph: Graph) -> _Exposed:
        """The graph as it is compiled; a graph that comes again is not looked at again."""
        found = self._exposed.get(id(graph))
        if found is None:
            if len(self._exposed) >= _REMEMBERED:
                self._exposed.clear()
            found = self._exposed[id(graph)] = _expose(graph)
        return found

    def _prepare(self, exposed: _Exposed) -> _Ready:
        key, graph = exposed.key, exposed.graph
        dims = hints(graph)
        for node in graph.leaves(Param):
            self._declare(node, dims, self.params)
        for node in graph.leaves(State):
            self._declare(node, dims, self.states)
        if key not in self._ready:
            plan = compile_graph(graph, replace(QUICK, target=self.target, relaxed=self.relaxed)).plan
            assert plan is not None
            self._device = self._device or open_device(plan.target)
            names = [n.op.name for n in graph.nodes if isinstance(n.op, Input)]
            params = frozenset(n.op.key for n in graph.nodes if isinstance(n.op, Param))
            self._ready[key] = _Ready(Session(plan, self.params, self._device), names, params, dims)
        return self._ready[key]

    def _declare(self, node: Node, dims: dict[str, int], held: dict[str, Array]) -> None:
        """Give a param or a state its first value, unless it has one of this type."""
        op = node.op
        assert isinstance(op, Param | State)
        shape = tuple(dim.value(size, dims) for size in node.shape)
        known = held.get(op.key)
        if known is not None and known.shape == shape and known.dtype == node.dtype.numpy:
            return
        init = 0.0 if isinstance(op, State) else op.init
        with room_for(f"{op.key} {node.type} needs", math.prod(shape) * node.dtype.size, "make it smaller"):
            held[op.key] = (
                _random(op.key, node.dtype, shape) if init is None else np.full(shape, init, node.dtype.numpy)
            )
        self._ready = {k: r for k, r in self._ready.items() if op.key not in r.params}


def hints(graph: Graph) -> dict[str, int]:
    """A value for every dim: its first hint, else the least it can be."""
    return {name: r.hints[0] if r.hints else r.low for name, r in graph.dims.items()}


def _expose(graph: Graph) -> _Exposed:
    """The graph with new values of params as outputs, which a plan has instead, and the keys of those."""
    changed = [n.op.key for n in graph.nodes if isinstance(n.op, Param) and n.op.key in graph.updates]
    outputs = {_UPDATE + key: graph.updates[key] for key in changed}
    updates = {key: node for key, node in graph.updates.items() if key not in changed}
    exposed = replace(graph, outputs={**graph.outputs, **outputs}, updates=updates)
    return _Exposed(graph, exposed, changed, text.show(exposed))


def _random(key: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    return Random().array(key, dtype, shape).view(dtype.numpy)
