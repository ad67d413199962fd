"""A genome's values: the expression of every class it uses, built on demand and reused between genomes."""

from __future__ import annotations

from collections.abc import Iterable

from lumi.egraph.goal import Goal
from lumi.egraph.graph import ENode
from lumi.search.alias import Aliases
from lumi.search.dag import Accumulator, Dag, Domain, Final, Previous, Running
from lumi.search.order import MemoryOrder
from lumi.search.space import Genome, Space

UNITS = {"sum": 1.0, "max": 0.0, "mul": 1.0}
"""The rho that leaves an accumulator as it is."""


ELEMENTWISE = frozenset({"Un", "Bin", "Sel"})
"""Nodes that compute each element by itself."""


class InfeasibleError(Exception):
    """A choice that no kernels compute: its message says why."""


class Draft:
    """The values of one genome.

    `bodies[c]` is how class c is computed (a value, an accumulator or a domain by its number), `uses[c]`
    what others see of it: the same, or a read of what was stored.  `users` are the classes that a class
    is directly part of.
    """

    def __init__(self, space: Space, dag: Dag, aliases: Aliases, orders: MemoryOrder, genome: Genome) -> None:
        self.space, self.dag, self.aliases, self.orders, self.genome = space, dag, aliases, orders, genome
        self.bodies: dict[int, int] = {}
        self.uses: dict[int, int] = {}
        self.owners: dict[int, tuple[int, tuple[str, ...]]] = {}
        self.aliased: set[int] = set()
        self.users: dict[int, list[int]] = {}
        self._open: set[int] = set()

    def derive(self, genome: Genome, changed: Iterable[int], toggled: Iterable[int]) -> Draft:
        """The draft of a genome that differs in the choice of `changed` and in whether `toggled` are cut.

        Everything that does not depend on these is taken over.
        """
        toggled = tuple(toggled)
        starts = [*changed, *(u for c in toggled for u in self.users.get(c, ()))]
        touched = self._above(starts)
        if self.aliased and (touched | set(toggled)) & self.aliased:
            return Draft(self.space, self.dag, self.aliases, self.orders, genome).build()
        made = Draft(self.space, self.dag, self.aliases, self.orders, genome)
        made.bodies = {c: v for c, v in self.bodies.items() if c not in touched}
        made.uses = {c: v for c, v in self.uses.items() if c not in touched and c not in toggled}
        made.owners = {k: o for k, o in self.owners.items() if o[0] not in touched and o[0] not in toggled}
        made.build()
        for number in touched:
            is_read = number in genome.cuts and not touched.issuperset(self.users.get(number, ()))
            if is_read and made.use(number) != self.uses[number]:
                return Draft(self.space, self.dag, self.aliases, self.orders, genome).build()
        return made

    def _above(self, starts: Iterable[int]) -> set[int]:
        """The classes whose values contain one of `starts`, up to and with the stored ones."""
        found: set[int] = set()
        stack = list(starts)
        while stack:
            number = stack.pop()
            if number not in found:
                found.add(number)
                if number not in self.genome.cuts:
                    stack.extend(self.users.get(number, ()))
        return found

    def members(self, stored: Iterable[int]) -> list[int]:
        """The classes computed in the kernel that stores `stored`, and those it reads from others."""
        found = dict.fromkeys(stored)
        stack = list(found)
        while stack:
            node = self.node(stack.pop())
            for child in node.children:
                if child not in found:
                    found[child] = None
                    if child not in self.genome.cuts:
                        stack.append(child)
        return list(found)

    def is_factor(self, number: int) -> bool:
        """Whether a class is reduced as it is, or as a factor of a product, or is an index."""
        for user in dict.fromkeys(self.users.get(number, ())):
            node = self.node(user)
            is_product = node.op == "Bin" and node.attrs[0] == "mul"
            if node.op not in ELEMENTWISE:
                return True
            if is_product and any(self.node(u).op == "Acc" for u in self.users.get(user, ())):
                return True
            if node.op == "Un" and str(node.attrs[0]).startswith("cast.") and self.is_factor(user):
                return True
        return False

    def node(self, number: int) -> ENode:
        """The chosen node of a class."""
        return self.space.alternatives[number][self.genome.choice.get(number, 0)]

    def goal(self) -> Goal:
        """The terms that were chosen."""
        roots, found = self.space.egraph.roots, dict[int, ENode]()
        stack = list(roots)
        while stack:
            number = stack.pop()
            if number not in found:
                found[number] = self.node(number)
                stack += found[number].children
        return Goal(found, roots, self.genome.cuts & found.keys())

    def build(self) -> Draft:
        """Compute every stored value.  Raises `InfeasibleError` for a cyclic choice."""
        for root in self.space.outputs:
            self.body(root)
        return self

    def use(self, number: int) -> int:
        """What other classes see of a class."""
        seen = self.uses.get(number)
        if seen is None:
            seen = self.body(number)
            if number in self.genome.cuts:
                seen = self._stored(number, seen)
            self.uses[number] = seen
        return seen

    def _stored(self, number: int, body: int) -> int:
        """A read of a stored class: of its own buffer, or of one that holds the same under other axes."""
        dag, space = self.dag, self.space
        names = self.orders.of(body)
        dtype = space.dtype(number)
        if number in space.outputs:
            return dag.stored(number, names, dag.free[body], dtype)
        key, order = self.aliases.of(body)
        owner = self.owners.setdefault(key, (number, order))
        if owner[0] == number:
            return dag.stored(number, names, dag.free[body], dtype)
        self.aliased |= {number, owner[0]}
        renamed = dict(zip(owner[1], order, strict=True))
        own = self.orders.of(self.bodies[owner[0]])
        return dag.stored(owner[0], tuple(renamed[a] for a in own), dag.free[body], dtype)

    def body(self, number: int) -> int:
        """How a class is computed."""
        made = self.bodies.get(number)
        if made is not None:
            return made
        if number in self._open:
            raise InfeasibleError("a value needs itself")
        if not self.space.alternatives[number]:
            raise InfeasibleError("a class has no executable node")
        self._open.add(number)
        node = self.node(number)
        for child in node.children:
            self.users.setdefault(child, []).append(number)
        made = self.bodies[number] = self._make(number, node)
        self._open.discard(number)
        return made

    def _make(self, number: int, node: ENode) -> int:
        dag = self.dag
        match node.op:
            case "In" | "Gat":
                return self._read(number, node)
            case "Const":
                return dag.number(float(node.attrs[0]))
            case "Pos":
                return dag.position(int(node.attrs[0]))
            case "Un" | "Bin":
                return dag.apply(str(node.attrs[0]), tuple([self.use(c) for c in node.children]))
            case "Sel":
                return dag.apply("sel", tuple([self.use(c) for c in node.children]))
            case "Fin":
                return dag.see(Final, self.body(node.children[0]))
            case "Run":
                return dag.see(Running, self.body(node.children[0]))
            case "Prev":
                return dag.see(Previous, self.body(node.children[0]))
            case "Acc":
                return self._accumulator(node)
            case _:
                return self._domain(node)

    def _read(self, number: int, node: ENode) -> int:
        name, axes = str(node.attrs[0]), int(node.attrs[1])
        if name.startswith("$"):
            return self.dag.dimension(name[1:])
        index = self.use(node.children[0]) if node.children else None
        after = self.space.producers.get(self.space.region.accesses[name].buffer)
        return self.dag.read(name, axes, self.space.dtype(number), index, after)

    def _accumulator(self, node: ENode) -> int:
        domain, step, rho, tau = node.children
        op = str(node.attrs[0])
        made = Accumulator(
            op,
            self.body(domain),
            self.use(step),
            self._unless(rho, UNITS[op]),
            self._unless(tau, 0.0),
        )
        return self.dag.accumulator(made)

    def _unless(self, number: int, unit: float) -> int | None:
        value = self.use(number)
        return None if value == self.dag.number(unit) else value

    def _domain(self, node: ENode) -> int:
        if node.op == "Mask":
            axes, chunk, guards = self.dag.domains[self.body(node.children[0])]
            return self.dag.domain(Domain(axes, chunk, (*guards, self.use(node.children[1]))))
        chunk = int(node.attrs[1]) if node.op == "Chunk" else 0
        return self.dag.domain(Domain(int(node.attrs[0]), chunk, ()))
