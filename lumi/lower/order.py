"""What a graph's regions have to compute, in an order that keeps states right.

A *task* is a node that a region computes, or copies because someone asks for memory of its own.  Leaves
are in memory already; a view belongs to whoever reads it; and a *free* value, made elementwise from
params, positions and constants (a mask, 1 + w, a dequantised weight), belongs to every reader.  So do
integers and truth values made elementwise from inputs: what masks a sequence whose length a caller gives.

An update on the way from a state to its new value is written into the state's buffer, if everything
that reads an earlier version of the state can run before.  Otherwise it is an ordinary value, and the
state is copied afterwards.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lumi.hlir.graph import Graph, Node, under_views
from lumi.hlir.op import (
    Binary,
    Bitcast,
    Cast,
    Const,
    Input,
    Iota,
    Param,
    Select,
    State,
    Symbol,
    Unary,
    UnaryKind,
    Update,
    View,
)


class Task(NamedTuple):
    """A node to compute, or to copy into memory of its own."""

    node: Node
    copy: bool = False

    @property
    def key(self) -> tuple[int, bool]:
        """Tasks in the order their nodes were made."""
        return self.node.id, self.copy


@dataclass(frozen=True, slots=True)
class Order:
    """Tasks in an order they can run in.

    `reads` are the tasks each one needs; `before` those that must have run in an *earlier region*.
    `written` holds the updates that go into their state's buffer, `free` the free values.
    """

    tasks: tuple[Task, ...]
    reads: Mapping[Task, tuple[Task, ...]]
    before: Mapping[Task, tuple[Task, ...]]
    written: frozenset[int]
    free: frozenset[int]


def order(graph: Graph) -> Order:
    """The tasks of a graph in order, with as many updates in place as that allows."""
    free = free_values(graph)
    chains = {key: chain for key, node in graph.updates.items() if (chain := _chain(key, node))}
    written = {u.id for chain in chains.values() for u in chain}
    while True:
        found = _Attempt(graph, free, frozenset(written), chains)
        tasks = found.sort()
        if len(tasks) == len(found.reads):
            return Order(tuple(tasks), found.reads, found.before, frozenset(written), free)
        blocked = found.blocked(set(found.reads) - set(tasks))
        for chain in chains.values():
            first = next((k for k, u in enumerate(chain) if u.id in blocked), len(chain))
            written -= {u.id for u in chain[first:]}


@dataclass(frozen=True, slots=True)
class Results:
    """The buffer of each output, by name, and of each state's new value, by key."""

    outputs: Mapping[str, str]
    updates: Mapping[str, str]


def results(graph: Graph, found: Order | None = None) -> Results:
    """Where regions leave a call's results.

    A leaf is in its own buffer, an update written in place in its state's, anything else in `%id`.  A
    state whose new value is elsewhere still holds the old one after the regions have run.
    """
    found = found or order(graph)
    last = {node.id for node in graph.updates.values()}
    outputs = {
        name: buffer_name(node, found.written if node.id in last else frozenset())
        for name, node in graph.outputs.items()
    }
    return Results(outputs, {key: _update_name(key, node, found) for key, node in graph.updates.items()})


def buffer_name(node: Node, written: frozenset[int]) -> str:
    """The buffer of a node that is in memory."""
    match node.op:
        case Input(name) | Param(name) | State(name):
            return name
        case _:
            pass
    root = node
    while root.id in written:
        root = root.inputs[0]
        if isinstance(root.op, State):
            return root.op.key
    return f"%{node.id}"


def _update_name(key: str, node: Node, found: Order) -> str:
    name = buffer_name(node, found.written)
    in_other_state = node.id in found.written and name != key
    return f"%{node.id}" if in_other_state else name


def free_values(graph: Graph) -> frozenset[int]:
    """The free values of a graph: what is made elementwise from params, positions and constants.

    Integers may be inputs, too, for as long as they are not made floats.
    """
    found: set[int] = set()
    given: set[int] = set()
    for node in graph.nodes:
        if isinstance(node.op, Input) or any(i.id in given for i in node.inputs):
            if node.dtype.is_float:
                continue
            given.add(node.id)
        match node.op:
            case Const() | Symbol() | Iota() | Param() | Input():
                found.add(node.id)
            case Binary() | Select() | Cast() | Bitcast() | View() | Unary(UnaryKind.FLOOR):
                if all(i.id in found for i in node.inputs):
                    found.add(node.id)
            case Unary(UnaryKind.EXP2) if _is_whole(node.inputs[0]) and node.inputs[0].id in found:
                found.add(node.id)
            case _:
                pass
    return frozenset(found)


def _is_whole(node: Node) -> bool:
    """Whether a float holds whole numbers: their exp2 is a shift, as cheap to make anew as a product."""
    return isinstance(node.op, Cast) and node.inputs[0].dtype.kind in ("int", "uint")


def _chain(key: str, node: Node) -> list[Node]:
    """The updates from the state `key` to its new value, first to last; none when there is more to it.

    What begins at data ends the chain, unless the data is an input: a kernel knows that before it runs.
    """
    chain: list[Node] = []
    while isinstance(node.op, Update):
        chain.append(node)
        node = node.inputs[0]
    if not isinstance(node.op, State) or node.op.key != key:
        return []
    return list(itertools.takewhile(_is_placed, reversed(chain)))


def _is_placed(update: Node) -> bool:
    """Whether it is known before a call where an update writes."""
    return all(isinstance(under_views(given).op, Input) for given in update.inputs[2:])


@dataclass(slots=True)
class _Attempt:
    """Tasks and their constraints when the updates in `written` go into their states."""

    graph: Graph
    free: frozenset[int]
    written: frozenset[int]
    chains: Mapping[str, list[Node]]
    reads: dict[Task, tuple[Task, ...]] = field(default_factory=dict)
    before: dict[Task, tuple[Task, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        readers: dict[int, list[Task]] = defaultdict(list)
        for task in self._tasks():
            sources = list(self._sources(task))
            for source in sources:
                readers[source.id].append(task)
            self.reads[task] = tuple(Task(s) for s in sources if not s.is_leaf)
        for chain in self.chains.values():
            for update in chain:
                if update.id in self.written:
                    old, task = update.inputs[0], Task(update)
                    first = [Task(old)] if old.id in self.written else []
                    self.before[task] = (*first, *readers[old.id])

    def _tasks(self) -> Iterator[Task]:
        for node in self.graph.nodes:
            if self._computed(node):
                yield Task(node)
        for node in self._kept():
            if not isinstance(node.op, (Input, Param, State)):
                yield Task(node, copy=True)

    def _kept(self) -> list[Node]:
        """Results that need memory which computing the tasks does not give them."""
        last = {node.id for node in self.graph.updates.values()}
        kept = [n for n in self.graph.outputs.values() if n.id not in self.written or n.id not in last]
        for key, node in self.graph.updates.items():
            if node.id not in self.written or buffer_name(node, self.written) != key:
                kept.append(node)
        needs = {n.id: n for n in kept if n.id in self.written or not self._computed(n)}
        return list(needs.values())

    def _computed(self, node: Node) -> bool:
        return not (node.is_leaf or isinstance(node.op, View) or node.id in self.free)

    def _sources(self, task: Task) -> Iterator[Node]:
        """The computed nodes, states and updated states that a task reads."""
        node = task.node
        inputs = (node,) if task.copy else node.inputs[1:] if node.id in self.written else node.inputs
        for found in {under_views(i).id: under_views(i) for i in inputs}.values():
            if self._computed(found) or isinstance(found.op, State):
                yield found

    def sort(self) -> list[Task]:
        """Tasks in order, first made first among those ready; what a cycle keeps waiting is left out."""
        needs = {t: set(r) | set(self.before.get(t, ())) for t, r in self.reads.items()}
        users = self._users()
        ready = [(t.key, t) for t, below in needs.items() if not below]
        heapq.heapify(ready)
        done: list[Task] = []
        while ready:
            _, task = heapq.heappop(ready)
            done.append(task)
            for user in users[task]:
                needs[user].discard(task)
                if not needs[user]:
                    heapq.heappush(ready, (user.key, user))
        return done

    def blocked(self, stuck: set[Task]) -> set[int]:
        """The updates that wait for a reader of the old state which itself needs the new one."""
        users = self._users()
        writes = [t for t in stuck if t.node.id in self.written and not t.copy]
        found = {t.node.id for t in writes if not _after(t, users).isdisjoint(self.before[t])}
        return found or {t.node.id for t in writes}

    def _users(self) -> dict[Task, list[Task]]:
        users: dict[Task, list[Task]] = defaultdict(list)
        for task, below in self.reads.items():
            for source in {*below, *self.before.get(task, ())}:
                users[source].append(task)
        return users


def _after(task: Task, users: Mapping[Task, list[Task]]) -> set[Task]:
    """A task and everything that has to wait for it."""
    found, todo = {task}, [task]
    while todo:
        for user in users[todo.pop()]:
            if user not in found:
                found.add(user)
                todo.append(user)
    return found
