"""Terms that were chosen from an e-graph, looked for in another one of the same region."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from lumi.egraph import encode
from lumi.egraph.encode import CODES, Encoding
from lumi.egraph.explore import Limits, Task, explore
from lumi.egraph.graph import Attribute, ENode
from lumi.egraph.guard import explore_guarded
from lumi.egraph.rules import Rule, RuleBook

INLINE = frozenset({"Acc", "Full", "Chunk", "Mask"})
"""Nodes that are no terms, which have no numbers."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One node for every class that the values of a region's stores are made of, by the class's id.

    `roots[k]` is the class of the k-th store.
    """

    nodes: Mapping[int, ENode]
    roots: tuple[int, ...]


def is_found(goal: Goal, book: RuleBook, rules: Collection[Rule], terms: Encoding) -> bool:
    """Whether rules make the terms of a region equal to those of the goal.

    The goal is looked for only when nothing changes any more, so that no rule works on it.
    """
    numbers: dict[int, int] = {}
    commands = tuple(_commands(goal, len(terms.commands), numbers))
    task = replace(Task.of(book, rules, terms), afterwards=commands)
    run = explore if all(r.is_built_in for r in rules) else explore_guarded
    tables = run(task, Limits()).tables
    pairs = zip(terms.roots, goal.roots, strict=True)
    return all(tables.nodes[known] == tables.nodes[numbers[wanted]] for known, wanted in pairs)


def _commands(goal: Goal, first: int, numbers: dict[int, int]) -> Iterator[str]:
    """Commands that number the terms of a goal from `first` on, children before parents."""
    done, stack = set[int](), list(goal.roots)
    while stack:
        number = stack[-1]
        node = goal.nodes[number]
        missing = [c for c in node.children if c not in done]
        stack += missing
        if missing:
            continue
        stack.pop()
        if number not in done and node.op not in INLINE:
            numbers[number] = first + len(numbers)
            yield f"(set (node {numbers[number]}) {_text(goal, node, numbers)})"
        done.add(number)


def _text(goal: Goal, node: ENode, numbers: Mapping[int, int]) -> str:
    inside = [
        f"(node {numbers[c]})" if c in numbers else _text(goal, goal.nodes[c], numbers) for c in node.children
    ]
    return f"({' '.join([node.op, *map(_attribute, node.attrs), *inside])})"


def _attribute(value: Attribute) -> str:
    if isinstance(value, float):
        return encode.number(value)
    if isinstance(value, str):
        return str(CODES[value]) if value in CODES else f'"{value}"'
    return str(value)
