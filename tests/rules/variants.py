"""Choices of e-nodes: every finite term that an e-graph holds is one."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from lumi.egraph.graph import EGraph, ENode


def variants(egraph: EGraph, rng: random.Random, limit: int) -> Iterator[dict[int, ENode]]:
    """Up to `limit` choices, each around another e-node that the first root can reach."""
    nodes = [(cls, node) for cls, own in egraph.classes.items() for node in own]
    rng.shuffle(nodes)
    found = 0
    for cls, node in nodes:
        wanted = forced(egraph, cls, node)
        choice = choose(egraph, wanted, rng) if wanted else None
        if choice is not None:
            yield choice
            found += 1
            if found == limit:
                return


def forced(egraph: EGraph, target: int, node: ENode) -> dict[int, ENode]:
    """E-nodes on a shortest way from the first root to `node` of class `target`, and the node itself."""
    came: dict[int, tuple[int, ENode]] = {}
    queue = [egraph.roots[0]]
    for cls in queue:
        for user in egraph.classes[cls]:
            for child in user.children:
                if child not in came and child != egraph.roots[0]:
                    came[child] = (cls, user)
                    queue.append(child)
    chosen = {target: node}
    at = target
    while at != egraph.roots[0]:
        if at not in came:
            return {}
        at, chosen[at] = came[at]
    return chosen


def choose(egraph: EGraph, wanted: Mapping[int, ENode], rng: random.Random) -> dict[int, ENode] | None:
    """A random acyclic choice of one e-node a class that takes those of `wanted`; None when there is none."""
    choice: dict[int, ENode] = {}
    ready: list[tuple[int, ENode]] = []
    waiting: dict[int, list[tuple[int, ENode]]] = {}
    missing: dict[tuple[int, ENode], int] = {}
    for cls, nodes in egraph.classes.items():
        for node in [wanted[cls]] if cls in wanted else nodes:
            missing[cls, node] = len(set(node.children))
            for child in set(node.children):
                waiting.setdefault(child, []).append((cls, node))
            if not node.children:
                ready.append((cls, node))
    while ready:
        cls, node = ready.pop(rng.randrange(len(ready)))
        if cls in choice:
            continue
        choice[cls] = node
        for user in waiting.get(cls, []):
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return choice if all(r in choice for r in egraph.roots) else None
