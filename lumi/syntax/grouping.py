"""Reads concrete syntax, writes it with each bracket's role known and its items grouped.

A group is what stays on one line: a keyword with its value, a name with what it is bound to, the first line
of a special form.  Comments move to where they can stand: above the group, or behind it; a comment behind the
last item of a bracket moves behind the bracket, because the bracket is gathered to that item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lumi.syntax.concrete import Item, Node, Role

# How many forms after the head stay on its line; the rest is the body.
_BODIES = {
    "defn": 2,
    "deflayer": 2,
    "defmodel": 2,
    "defmacro": 2,
    "defdim": 1,
    "fn": 1,
    "let": 1,
    "fold": 2,
    "for": 1,
    "if": 1,
    "scope": 1,
    "do": 0,
}
_BINDING = ("let", "fold", "for")
_TAKING_PARAMETERS = ("defn", "deflayer", "defmodel", "defmacro", "fn")


def group(item: Item, role: Role | None = None) -> Item:
    """The item with everything inside it grouped; `role` is what its bracket is to the form around it."""
    notes = [item.note]
    nodes = []
    for node in item.nodes:
        grouped, note = _node(node, role)
        nodes.append(grouped)
        notes.insert(-1, note)
    return replace(item, nodes=tuple(nodes), note=" ".join(n for n in notes if n))


def _node(node: Node, role: Role | None) -> tuple[Node, str]:
    """The node with its items grouped, and the note that moves out of it."""
    if node.items is None:
        return node, ""
    if not node.close:
        inner = [group(item) for item in node.items]
        bare = tuple(replace(item, note="") for item in inner)
        return replace(node, items=bare), " ".join(item.note for item in inner if item.note)
    role = role or _role(node)
    items = _groups(node.items, role)
    note = ""
    if items and not node.below:
        note = items[-1].note
        items[-1] = replace(items[-1], note="")
    return replace(node, items=tuple(items), role=role), note


def _role(node: Node) -> Role:
    items = node.items or ()
    if node.text == "[" or not items:
        return Role.SEQUENCE
    head = items[0].text
    if head in _BODIES and len(items) > _BODIES[head] + 1:
        return Role.BODY
    return {"->": Role.STEPS, "einsum": Role.STEPS, "cond": Role.CLAUSES}.get(head, Role.CALL)


def _groups(items: tuple[Item, ...], role: Role) -> list[Item]:
    head = items[0].text if items else ""
    match role:
        case Role.BODY:
            return _first_line_and_body(head, items)
        case Role.BINDINGS:
            return _by_two(items)
        case Role.CLAUSES:
            return [group(items[0]), *_by_two(items[1:])]
        case Role.STEPS if head == "einsum":
            return [group(items[0]), *_operands(items[1:])]
        case Role.STEPS:
            return [group(item) for item in items]
        case Role.CALL:
            return [group(items[0]), *_arrows(_keywords(items[1:]))]
        case Role.PARAMETERS | Role.SEQUENCE:
            return _keywords(items)


def _first_line_and_body(head: str, items: tuple[Item, ...]) -> list[Item]:
    """The header as one item, then the body; comments inside the header move above the body."""
    size = _BODIES[head] + 1
    roles: list[Role | None] = [None] * size
    if head in _BINDING:
        roles[1:] = [Role.BINDINGS] * (size - 1)
    elif head in _TAKING_PARAMETERS:
        roles[-1] = Role.PARAMETERS
    pairs = zip(items, roles, strict=False)
    header = _joined([group(item, role if item.text == "[" else None) for item, role in pairs])
    first, *rest = _keywords(items[size:])
    first = replace(first, above=(*header.above, *first.above))
    return [replace(header, above=()), first, *rest]


def _by_two(items: Sequence[Item]) -> list[Item]:
    """Each pair joined: a name and what it is bound to, a test and its value."""
    return [_joined([group(item) for item in items[i : i + 2]]) for i in range(0, len(items), 2)]


def _keywords(items: Sequence[Item]) -> list[Item]:
    """Each keyword joined with its value."""
    found: list[Item] = []
    rest = iter(items)
    for item in rest:
        value = next(rest, None) if item.text.startswith(":") else None
        found.append(_joined([group(item), group(value)]) if value else group(item))
    return found


def _operands(items: Sequence[Item]) -> list[Item]:
    """The operands of einsum: each tensor, and the arrow, joined with the axes behind it."""
    found: list[Item] = []
    for item in _keywords(items):
        axes = item.text == "[" and found and len(found[-1].nodes) == 1
        found[-1:] = [_joined([found[-1], item])] if axes else [*found[-1:], item]
    return found


def _arrows(items: list[Item]) -> list[Item]:
    """An arrow joined with the axes before and behind it: `[b (h d)] -> [b h d]`."""
    for i in range(1, len(items) - 1):
        if items[i].text == "->":
            return [*items[: i - 1], _joined(items[i - 1 : i + 2]), *items[i + 2 :]]
    return items


def _joined(items: Sequence[Item]) -> Item:
    """Several items as one: what stood above any stands above all, notes follow one another."""
    return Item(
        tuple(node for item in items for node in item.nodes),
        tuple(line for item in items for line in item.above),
        " ".join(item.note for item in items if item.note),
        items[0].blank,
    )
