"""The canonical text of an e-graph: a line an e-node, the same on every egglog version."""

from __future__ import annotations

from lumi.egraph.graph import EGraph, ENode


def canonical(egraph: EGraph) -> str:
    """`cK = (Op attribute… cChild…)` lines in class order, then the roots.

    Classes are numbered by depth and content, so equal e-graphs print equally.
    """
    lines = [f"c{c} = {_node(n)}" for c, nodes in sorted(egraph.classes.items()) for n in nodes]
    lines += [f"store {k} = c{root}" for k, root in enumerate(egraph.roots)]
    return "\n".join(lines) + "\n"


def _node(node: ENode) -> str:
    parts = [node.op, *(f'"{a}"' if isinstance(a, str) else repr(a) for a in node.attrs)]
    return f"({' '.join([*parts, *(f'c{c}' for c in node.children)])})"
