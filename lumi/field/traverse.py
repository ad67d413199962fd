"""Walks over terms as the graphs they are: shared terms are met once, and depth does not matter.

Terms compare by structure, so hashing one costs as much as the tree it unfolds to; everything here tells
terms apart by identity instead.
"""

from __future__ import annotations

from collections.abc import Iterable

from lumi.field.term import Gat, In, Pos, Red, Term, children


def postorder(roots: Iterable[Term]) -> list[Term]:
    """Every term below `roots` once, each after the terms inside it."""
    done: dict[int, Term] = {}
    todo: list[tuple[Term, bool]] = [(root, False) for root in reversed(list(roots))]
    while todo:
        term, ready = todo.pop()
        if id(term) in done:
            continue
        if ready:
            done[id(term)] = term
        else:
            todo.append((term, True))
            todo.extend((inner, False) for inner in reversed(children(term)) if id(inner) not in done)
    return list(done.values())


def free_axes(roots: Iterable[Term]) -> dict[int, frozenset[str]]:
    """The axes that each term below `roots` varies over, by the identity of the term."""
    found: dict[int, frozenset[str]] = {}
    for term in postorder(roots):
        below = frozenset().union(*(found[id(inner)] for inner in children(term)))
        match term:
            case In(_, axes) | Gat(_, axes):
                below |= frozenset(axes)
            case Pos(axis):
                below = frozenset((axis,))
            case Red(_, axes):
                below -= frozenset(axes)
            case _:
                pass
        found[id(term)] = below
    return found


def bound_axes(roots: Iterable[Term]) -> frozenset[str]:
    """The axes that some reduction below `roots` binds."""
    return frozenset(a for term in postorder(roots) if isinstance(term, Red) for a in term.axes)
