"""Splits a graph into parts, one a region, by the scopes its nodes were made in.

The scope directly under the model's names the part; a part whose nodes share no scope has the name of the
graph.  A scope that is left and entered again, or that would read and overwrite a state, makes several parts.

Values can only be fused inside a region, so small neighbours are joined, but not at the price of sharing:
equal parts share everything that is found later.  A kind of part that is worth sharing is only joined
with what stands beside each of its kind.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

from lumi.hlir.graph import Graph, Node
from lumi.hlir.op import Input, Param, State
from lumi.lower.order import Order, Task, buffer_name, results
from lumi.lower.part import Part, Root, Rooted, collect

WORTH_SHARING = 48
"""Tasks that the parts of one kind must save together for their sharing to count."""

SMALL = 64
"""Tasks up to which neighbours are joined."""

LAYER = 128
"""Tasks up to which they are joined when the result is shared, so that it is searched only once."""


@dataclass(slots=True)
class Draft:
    """Tasks that will be a part."""

    scope: str
    tasks: list[Task] = field(default_factory=list)

    def with_next(self, other: Draft) -> Draft:
        """This draft and the next one as one, in the scope that they share."""
        return Draft(_shared_scope([self.scope, other.scope]), self.tasks + other.tasks)


class Partition:
    """The parts of a graph in program order, each with a number that equal ones share."""

    def __init__(self, graph: Graph, found: Order) -> None:
        self._order = found
        self._name = graph.name
        self._results = set(results(graph, found).outputs.values())
        self._results |= set(results(graph, found).updates.values())
        self._users: dict[Task, list[Task]] = defaultdict(list)
        for task, sources in found.reads.items():
            for source in sources:
                self._users[source].append(task)
        self._kinds: dict[tuple[object, ...], int] = {}
        self._drafts = _drafts(found)
        self.parts = self._make()
        while self._join():
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
        """Join pairs of neighbours; whether there were any."""
        kinds = [kind for _, kind in self.parts]
        count = Counter(kinds)
        near = [self._joinable(a, b) for a, b in pairwise(self._drafts)]
        pairs = Counter(pair for pair, fits in zip(pairwise(kinds), near, strict=True) if fits)
        worth = {
            kind: (count[kind] - 1) * len(draft.tasks) >= WORTH_SHARING
            for kind, draft in zip(kinds, self._drafts, strict=True)
        }

        def together(k: int) -> bool:
            a, b = kinds[k : k + 2]
            most = LAYER if worth[a] or worth[b] else SMALL
            fits = len(self._drafts[k].tasks) + len(self._drafts[k + 1].tasks) <= most
            return near[k] and fits and all(not worth[x] or pairs[a, b] == count[x] for x in (a, b))

        joined: list[Draft] = []
        k = 0
        while k < len(kinds):
            draft = self._drafts[k]
            if k + 1 < len(kinds) and together(k):
                k += 1
                draft = draft.with_next(self._drafts[k])
            joined.append(draft)
            k += 1
        changed = len(joined) < len(self._drafts)
        self._drafts = joined
        return changed

    def _joinable(self, a: Draft, b: Draft) -> bool:
        """Whether `b` reads from `a` and needs nothing to be over in it."""
        inside = set(a.tasks)
        reads = any(s in inside for t in b.tasks for s in self._order.reads[t])
        waits = any(s in inside for t in b.tasks for s in self._order.before.get(t, ()))
        return reads and not waits

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
        return Part(number, draft.scope or self._name, nodes, roots, names, owned)

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
        place = latest.get(scope, -1)
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
