"""Decides, consumers first, under which roles each value of a part is read and which values are stored.

A *heavy* value (one with a contraction, a scan or a scatter that is not stored further down) is
computed once: where it is read under two roles, or at an index that is not digits and an offset, it is
cut, that is, stored and read back under any names.  A light value is computed again for each role.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lumi.field.region import Note
from lumi.hlir.graph import Node
from lumi.hlir.op import Gather, Scan, Scatter, Update, View
from lumi.lower.part import Part, Root, Rooted
from lumi.lower.reading import Read, Reader, Reading
from lumi.lower.space import Role, Space
from lumi.lower.varying import contractions


@dataclass(frozen=True, slots=True)
class Stored:
    """A value of the part that goes to memory, under the role it is stored with.

    For a write it is the role of the update's new part.
    """

    node: Node
    role: Role
    kind: Rooted


class Requests:
    """The roles, the stored values and the notes of a part."""

    def __init__(
        self, part: Part, space: Space, reader: Reader, varies: Mapping[int, frozenset[int]]
    ) -> None:
        self.part = part
        self.space = space
        self.roles: dict[int, dict[Role, bool]] = defaultdict(dict)
        self.readings: dict[tuple[int, Role], Reading] = {}
        self.stored: list[Stored] = []
        self.notes: list[Note] = []
        self.reader = reader
        self._needed: dict[int, str] = {}
        self._roots: dict[int, list[Root]] = defaultdict(list)
        for root in part.roots:
            self._roots[root.node.id].append(root)
        self._in_place = {r.node.id for r in part.roots if r.kind is Rooted.WRITE}
        self._heavy = self._weigh(varies)
        for node in reversed(part.nodes):
            self._visit(node)
        self.stored.reverse()
        self.notes.reverse()
        self.kept = frozenset(s.node.id for s in self.stored if s.kind is Rooted.VALUE)

    def inside(self, node: Node, role: Role) -> bool:
        """Whether the program keeps a role of a node inside its shape."""
        return self.roles[node.id].get(role, True)

    # -- decisions

    def _visit(self, node: Node) -> None:
        for root in reversed(self._roots[node.id]):
            if root.kind is Rooted.COPY:
                self._keep(node, self._request(node, self.space.canonical(node)), Rooted.COPY)
        if node.id in self._in_place:
            source = node.inputs[1]
            self._keep(node, self._request(source, self.space.canonical(source)), Rooted.WRITE)
            return
        roles = list(self.roles[node.id])
        why = self._why(node, roles)
        if why:
            role = self.space.canonical(node)
            self._keep(node, role, Rooted.VALUE)
            roles = [role]
            if why != "root":
                self._note("cut", node, why)
        elif node.id in self.part.memory:
            return
        elif len(roles) > 1 and not isinstance(node.op, View) and not node.is_leaf:
            self._note("duplicate", node, _shown(roles))
        for role in roles:
            self._read(node, role, self.inside(node, role))

    def _why(self, node: Node, roles: list[Role]) -> str:
        """Why a node is stored; empty when it is not."""
        if any(r.kind is Rooted.VALUE for r in self._roots[node.id]):
            return "root"
        if node.id in self.part.memory:
            return ""
        if node.id in self._needed:
            return self._needed[node.id]
        if any(self._has_two_data(node, r) for r in roles):
            return "read at an index that depends on data"
        if isinstance(node.op, View) or node.id not in self._heavy or not roles:
            return ""
        if len(roles) > 1:
            return f"heavy, {_shown(roles)}"
        if not all(map(self.space.is_digits, roles[0])):
            return f"heavy, read at {_show(roles[0])}"
        return ""

    def _has_two_data(self, node: Node, role: Role) -> bool:
        """Whether an input would be read at two indices that depend on data."""
        match node.op:
            case Gather(axis):
                kept = (*role[:axis], *role[axis + node.inputs[1].type.rank :])
            case Update() if len(node.inputs) > 2:
                kept = role
            case _:
                return False
        return any(at.data() for at in kept)

    def _read(self, node: Node, role: Role, inside: bool) -> None:
        if 0 in node.shape:
            return
        reading = self.reader.read(node, role, inside)
        self.readings[node.id, role] = reading
        for read in reading.reads:
            self._request_read(read)
        if reading.memory:
            self._needed.setdefault(reading.memory.id, f"reshaped in memory to {node.type}")

    def _request_read(self, read: Read) -> None:
        known = self.roles[read.node.id]
        known[read.role] = known.get(read.role, True) and read.inside

    def _request(self, node: Node, role: Role) -> Role:
        self._request_read(Read(node, role, True))
        return role

    def _keep(self, node: Node, role: Role, kind: Rooted) -> None:
        self.stored.append(Stored(node, role, kind))

    def _note(self, what: str, node: Node, why: str) -> None:
        self.notes.append(Note(what, f"%{node.id}", why))

    # -- weight

    def _weigh(self, varies: Mapping[int, frozenset[int]]) -> frozenset[int]:
        """The heavy nodes: those with costly work between them and the nearest values in memory."""
        costly = contractions(self.part.nodes, varies)
        heavy: set[int] = set()
        for node in self.part.nodes:
            computed = node.id not in self.part.memory or node.id in self._roots
            below = (i for i in node.inputs if i.id not in self.part.memory)
            if not computed or (isinstance(node.op, Update) and node.id in self._in_place):
                continue
            if node.id in costly or isinstance(node.op, (Scan, Scatter)) or any(i.id in heavy for i in below):
                heavy.add(node.id)
        return frozenset(heavy)


def _show(role: Role) -> str:
    return f"[{' '.join(map(str, role))}]"


def _shown(roles: Iterable[Role]) -> str:
    shown = [_show(r) for r in roles]
    return f"{len(shown)} roles {' | '.join(shown)}"
