"""Splits a graph into parts, one a region, by the scopes its nodes were made in.

The scope directly under the model names the part.  A value made by the model itself joins the part it
reads from.  A scope that is left and entered again, or that would read and overwrite a state, makes
several parts.

Equal parts share everything that is found later, so a part stays by itself when sharing pays; the others
join their neighbours, because values can only be fused inside a region.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import Input, Param, State
from lumi.lower.order import Order, Task, buffer_name, results
from lumi.lower.part import Part, Root, Rooted, collect

WORTH_SHARING = 48
"""Tasks that equal parts must save together, for each of them to stay a region of its own."""

JOINED = 96
"""Tasks up to which neighbours are joined."""


@dataclass(slots=True)
class Draft:
    """Tasks that will be a part."""

    scope: str
    tasks: list[Task] = field(default_factory=list)


class Partition:
    """The parts of a graph in program order, each with a number that equal ones share."""

    def __init__(self, graph: Graph, found: Order) -> None:
        self._order = found
        self._results = set(results(graph, found).outputs.values())
        self._results |= set(results(graph, found).updates.values())
        self._users: dict[Task, list[Task]] = defaultdict(list)
        for task, sources in found.reads.items():
            for source in sources:
                self._users[source].append(task)
        self._kinds: dict[tuple[object, ...], int] = {}
        self._drafts = _drafts(found)
        self.parts = self._make()
        if self._join():
            self.parts = self._make()

    def halve(self, number: int) -> bool:
        """Make two parts of one that is too large; False when it is a single task."""
        draft = self._drafts[number]
        if len(draft.tasks) < 2:
            return False
        middle = len(draft.tasks) // 2
        halves = [Draft(draft.scope, draft.tasks[:middle]), Draft(draft.scope, draft.tasks[middle:])]
        self._drafts[number : number + 1] = halves
        self.parts = self._make()
        return True

    def _make(self) -> list[tuple[Part, int]]:
        home = {task: k for k, draft in enumerate(self._drafts) for task in draft.tasks}
        parts = [self._part(k, draft, home) for k, draft in enumerate(self._drafts)]
        return [(part, self._kinds.setdefault(part.fingerprint(), len(self._kinds))) for part in parts]

    def _join(self) -> bool:
        """Join neighbours; whether there were any."""
        count = Counter(kind for _, kind in self.parts)
        joined: list[Draft] = []
        can_grow = False
        for draft, (_, kind) in zip(self._drafts, self.parts, strict=True):
            stays = (count[kind] - 1) * len(draft.tasks) >= WORTH_SHARING
            if can_grow and not stays and self._joinable(joined[-1], draft):
                joined[-1].tasks += draft.tasks
                joined[-1].scope = _shared_scope([joined[-1].scope, draft.scope]) or joined[-1].scope
            else:
                joined.append(draft)
            can_grow = not stays
        changed = len(joined) < len(self._drafts)
        self._drafts = joined
        return changed

    def _joinable(self, a: Draft, b: Draft) -> bool:
        """Whether `b` reads from `a`, needs nothing to be over in it, and both are small."""
        inside = set(a.tasks)
        reads = any(s in inside for t in b.tasks for s in self._order.reads[t])
        waits = any(s in inside for t in b.tasks for s in self._order.before.get(t, ()))
        return reads and not waits and len(a.tasks) + len(b.tasks) <= JOINED

    def _part(self, number: int, draft: Draft, home: dict[Task, int]) -> Part:
        roots = tuple(Root(t.node, kind) for t in draft.tasks if (kind := self._rooted(t, home)))
        stored = {r.node.id for r in roots if r.kind is not Rooted.COPY}

        def memory(node: Node) -> str | None:
            """The buffer that this part reads a node from; None when it computes the node."""
            here = home.get(Task(node), number) == number and not isinstance(node.op, (Input, Param, State))
            if here and node.id not in stored and node.id not in self._order.written:
                return None
            return buffer_name(node, self._order.written)

        nodes, names = collect(roots, memory)
        owned = frozenset(t.node.id for t in draft.tasks if not t.copy)
        return Part(number, draft.scope, nodes, roots, names, owned)

    def _rooted(self, task: Task, home: dict[Task, int]) -> Rooted | None:
        if task.copy:
            return Rooted.COPY
        if task.node.id in self._order.written:
            return Rooted.WRITE
        wanted = f"%{task.node.id}" in self._results
        crosses = any(home[user] != home[task] for user in self._users[task])
        return Rooted.VALUE if wanted or crosses else None


def _drafts(found: Order) -> list[Draft]:
    """Tasks by scope, in an order in which every part comes after those it needs."""
    model = _model_scope(found.tasks)
    drafts: list[Draft] = []
    home: dict[Task, int] = {}
    latest: dict[str, int] = {}
    for task in found.tasks:
        reads = max((home[s] for s in found.reads[task]), default=-1)
        after = max((home[s] + 1 for s in found.before.get(task, ())), default=0)
        scope = _under(task.node.scope, model)
        joins_source = scope == model and reads >= 0
        place = reads if joins_source else latest.get(scope, -1)
        if place < max(reads, after, 0):
            place = latest[scope] = len(drafts)
            drafts.append(Draft(scope))
        drafts[place].tasks.append(task)
        home[task] = place
    return drafts


def _model_scope(tasks: Iterable[Task]) -> str:
    """The longest scope that everything computed is in."""
    return _shared_scope([t.node.scope for t in tasks if not t.node.is_leaf])


def _shared_scope(scopes: Iterable[str]) -> str:
    """The innermost scope that all of these lie in."""
    shared: list[str] = []
    for names in zip(*(s.split("/") for s in scopes), strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "/".join(shared)


def _under(scope: str, model: str) -> str:
    """The scope directly under the model's that a scope lies in."""
    below = scope[len(model) :].strip("/").split("/")[0] if scope.startswith(model) else ""
    return "/".join(p for p in (model, below) if p)
