"""Terms that were chosen from an e-graph, looked for in another one of the same region."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from lumi.egraph import encode
from lumi.egraph.encode import CODES, Encoding
from lumi.egraph.explore import Limits, Task, explore
from lumi.egraph.graph import Attribute, ENode
from lumi.egraph.guard import explore_guarded
from lumi.egraph.readout import Tables
from lumi.egraph.rules import Rule, RuleBook

INLINE = frozenset({"Acc", "Full", "Chunk", "Mask"})
"""Nodes that are no terms, which have no numbers."""


@dataclass(frozen=True, slots=True)
class Part:
    """Terms that are to be found: one node for every class that they are made of, by the class's id.

    `wanted` are pairs of a class and the number of the region's term that it must be equal to.  What is
    `given` need not be found: the classes, with the numbers of the region's terms that stand for them.
    """

    nodes: Mapping[int, ENode]
    wanted: tuple[tuple[int, int], ...]
    given: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Goal:
    """One node for every class that the values of a region's stores are made of, by the class's id.

    `roots[k]` is the class of the k-th store; `cuts` are the classes that are stored between kernels.
    """

    nodes: Mapping[int, ENode]
    roots: tuple[int, ...]
    cuts: frozenset[int]

    def whole(self, terms: Encoding) -> Part:
        """All of it, which the terms of the region must be equal to."""
        return Part(self.nodes, tuple(zip(self.roots, terms.roots, strict=True)), {})

    def part(self, stored: Collection[int], known: Mapping[int, int]) -> Part:
        """What a kernel computes that stores some classes, from what other kernels store.

        `known` are the stored classes that terms of the region are equal to, with their numbers.  Of a class
        that is none of them, such as the result of one chunk, nothing can be said without the kernels that
        read it: they belong to the part.
        """
        mine, more = set[int](), set(stored)
        while more:
            mine |= more
            partial = mine - known.keys()
            more = {c for c in {*self.cuts, *self.roots} - mine if partial & self._read(c)}
        wanted = tuple((c, known[c]) for c in sorted(mine & known.keys()))
        given = {c: number for c, number in known.items() if c not in mine}
        nodes, _ = self._below([c for c, _ in wanted], given)
        return Part(nodes, wanted, given)

    def _read(self, number: int) -> set[int]:
        """The stored classes that a stored class is computed from."""
        return self._below(self.nodes[number].children, self.cuts)[1]

    def _below(self, starts: Iterable[int], stops: Collection[int]) -> tuple[dict[int, ENode], set[int]]:
        """The nodes that some classes are made of, and those of `stops` that are met, where it ends."""
        found, met, stack = dict[int, ENode](), set[int](), list(starts)
        while stack:
            number = stack.pop()
            if number in stops:
                met.add(number)
            elif number not in found:
                found[number] = self.nodes[number]
                stack += found[number].children
        return found, met


def is_found(part: Part, book: RuleBook, rules: Collection[Rule], terms: Encoding) -> bool:
    """Whether rules make the terms of a region equal to a part of a goal.

    It is looked for only when nothing changes any more, so that no rule works on it.
    """
    tables, numbers = _explored(part, book, rules, terms)
    return all(tables.nodes[numbers[c]] == tables.nodes[number] for c, number in part.wanted)


def known(goal: Goal, book: RuleBook, rules: Collection[Rule], terms: Encoding) -> dict[int, int]:
    """The stored classes of a goal that rules make terms of the region equal to, with their numbers."""
    tables, numbers = _explored(goal.whole(terms), book, rules, terms)
    mine = set(numbers.values())
    term_of = {found: n for n, found in sorted(tables.nodes.items(), reverse=True) if n not in mine}
    stored = {c: tables.nodes[numbers[c]] for c in {*goal.cuts, *goal.roots}}
    return {c: term_of[found] for c, found in stored.items() if found in term_of}


def _explored(
    part: Part, book: RuleBook, rules: Collection[Rule], terms: Encoding
) -> tuple[Tables, dict[int, int]]:
    """The tables when nothing changes any more, and the numbers that the classes of a part have in them."""
    numbers = dict(part.given)
    commands = tuple(_commands(part, len(terms.commands), numbers))
    task = replace(Task.of(book, rules, terms), afterwards=commands)
    run = explore if all(r.is_built_in for r in rules) else explore_guarded
    return run(task, Limits()).tables, numbers


def _commands(part: Part, first: int, numbers: dict[int, int]) -> Iterator[str]:
    """Commands that number the terms of a part from `first` on, children before parents."""
    done, stack = set(numbers), [c for c, _ in part.wanted]
    while stack:
        number = stack[-1]
        if number in done:
            stack.pop()
            continue
        node = part.nodes[number]
        missing = [c for c in node.children if c not in done]
        stack += missing
        if missing:
            continue
        if node.op not in INLINE:
            yield f"(set (node {first}) {_text(part, node, numbers)})"
            numbers[number] = first
            first += 1
        done.add(number)


def _text(part: Part, node: ENode, numbers: Mapping[int, int]) -> str:
    inside = [
        f"(node {numbers[c]})" if c in numbers else _text(part, part.nodes[c], numbers) for c in node.children
    ]
    return f"({' '.join([node.op, *map(_attribute, node.attrs), *inside])})"


def _attribute(value: Attribute) -> str:
    if isinstance(value, float):
        return encode.number(value)
    if isinstance(value, str):
        return str(CODES[value]) if value in CODES else f'"{value}"'
    return str(value)
