"""The canonical layout of one form: reads grouped concrete syntax, writes lines.

A form that fits on its line stands on one line.  Otherwise a special form has its head on the first line and
its body below, two columns in; any other call aligns its arguments below the first, and a sequence its items;
bindings stand one pair a line with their values aligned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from lumi.syntax.concrete import Item, Node, Role

WIDTH = 88
_WIDEST_ALIGNED = {Role.BINDINGS: 16, Role.CLAUSES: 28}
_SHORT = 28
_SHORT_BODIES = ("if", "defdim", "do")


@dataclass(frozen=True, slots=True)
class Line:
    """Code with its indentation, and the comment behind it."""

    text: str
    note: str = ""


Lines = tuple[Line, ...]


Row = Callable[[Item, int, int], Lines]
Joins = Callable[[Item], bool]


def _never(item: Item) -> bool:
    return False


class Layout:
    """Lays out one top-level form; remembers, by identity, what of it has been laid out where."""

    def __init__(self) -> None:
        self._flat: dict[int, str | None] = {}
        self._known: dict[tuple[int, int, int], Lines] = {}

    def item(self, item: Item) -> Lines:
        """The top-level form with its note."""
        return _noted(self._row(item.nodes, 0, 0), item.note)

    # -- on one line

    def _flat_node(self, node: Node) -> str | None:
        """The node on one line, or None when a comment, a string of many lines or a rule forbids it."""
        key = id(node)
        if key not in self._flat:
            self._flat[key] = self._make_flat(node)
        return self._flat[key]

    def _make_flat(self, node: Node) -> str | None:
        if node.items is None:
            return None if "\n" in node.text else node.text
        if node.below or any(item.above or item.note for item in node.items) or _always_broken(node):
            return None
        parts = [part for item in node.items if (part := self._flat_item(item)) is not None]
        if len(parts) < len(node.items):
            return None
        return node.text + "".join(_spaced(node, parts)) + node.close

    def _flat_item(self, item: Item) -> str | None:
        parts = [part for node in item.nodes if (part := self._flat_node(node)) is not None]
        return " ".join(parts) if len(parts) == len(item.nodes) else None

    # -- on several lines

    def _node(self, node: Node, column: int, tail: int) -> Lines:
        """The node from `column` on, when `tail` more characters will stand behind its last line.

        The first line comes without its indentation, here and below.
        """
        key = id(node), column, tail
        if key not in self._known:
            flat = self._flat_node(node)
            fits = flat is not None and column + len(flat) + tail <= WIDTH
            self._known[key] = (
                (Line(flat),) if fits and flat is not None else self._broken(node, column, tail)
            )
        return self._known[key]

    def _broken(self, node: Node, column: int, tail: int) -> Lines:
        if node.items is None:
            return tuple(Line(text) for text in node.text.split("\n"))
        if not node.close:
            nodes = [inner for item in node.items for inner in item.nodes]
            return _behind(node.text, self._row(nodes, column + len(node.text), tail))
        tail = 0 if node.below else tail + 1
        if node.role is Role.BODY:
            return _closed(self._hanging(node, column, tail), node, column + 2)
        if node.text == "[" or not node.items or node.items[0].above:
            lines = self._column(node.items, column + 1, tail, node.role)
            return _closed(_behind(node.text, lines), node, column + 1)
        return _closed(self._call(node, column, tail), node, column + 2)

    def _call(self, node: Node, column: int, tail: int) -> Lines:
        """Arguments aligned below the first, or two columns in when only that is narrow enough."""
        hanging = self._hanging(node, column, tail)
        head, *arguments = node.items or ()
        text = self._flat_item(head)
        if text is None or head.note or not arguments or arguments[0].above:
            return hanging
        aligned = self._column(arguments, column + len(text) + 2, tail, node.role)
        choices = _behind(f"({text} ", aligned), hanging
        return min(choices, key=lambda lines: _overflow(lines, column, tail))

    def _hanging(self, node: Node, column: int, tail: int) -> Lines:
        """The first item on the line of the bracket, the others below it, two columns in."""
        head, *body = node.items or ()
        first = _noted(_behind("(", self._row(head.nodes, column + 1, 0 if body else tail)), head.note)
        if not body:
            return first
        return (*first, *_behind(" " * (column + 2), self._column(body, column + 2, tail, node.role)))

    def _column(self, items: Sequence[Item], column: int, tail: int, role: Role) -> Lines:
        """Items of a bracket with that role, below one another."""
        match role:
            case Role.BINDINGS | Role.CLAUSES:
                return self._pairs(items, column, tail, role)
            case Role.BODY | Role.STEPS:
                return self._stack(items, column, tail, self._row_of)
            case Role.PARAMETERS:
                return self._stack(items, column, tail, self._row_of, _is_untyped)
            case Role.CALL | Role.SEQUENCE:
                return self._stack(items, column, tail, self._row_of, self._is_short)

    def _is_short(self, item: Item) -> bool:
        """Whether an argument may share a line with its neighbours."""
        flat = self._flat_item(item)
        return all(node.items is None for node in item.nodes) or (flat is not None and len(flat) <= _SHORT)

    def _pairs(self, pairs: Sequence[Item], column: int, tail: int, role: Role) -> Lines:
        """Names or tests with their values: beside them in one column, or below when that reads better."""
        names = [self._flat_node(pair.nodes[0]) or "" for pair in pairs]
        width = max((len(name) for name in names if len(name) <= _WIDEST_ALIGNED[role]), default=0)

        def cost(lines: Lines) -> tuple[int, int]:
            return _overflow(lines, column, tail), len(lines) if role is Role.CLAUSES else 0

        def row(pair: Item, column: int, tail: int) -> Lines:
            name = self._flat_node(pair.nodes[0])
            if name is None or len(pair.nodes) == 1:
                return self._row(pair.nodes, column, tail)
            padded = name.ljust(width)
            beside = _behind(f"{padded} ", self._node(pair.nodes[1], column + len(padded) + 1, tail))
            below = _behind(" " * (column + 2), self._node(pair.nodes[1], column + 2, tail))
            return min((beside, (Line(name), *below)), key=cost)

        return self._stack(pairs, column, tail, row)

    def _stack(self, items: Sequence[Item], column: int, tail: int, row: Row, joins: Joins = _never) -> Lines:
        """Items below one another at `column`; neighbours that both join share a line while it holds them."""
        lead = " " * column
        lines: list[Line] = []
        after_joining = False
        for index, item in enumerate(items):
            room = tail if index == len(items) - 1 else 0
            flat = self._flat_item(item) if joins(item) and not item.above and not item.blank else None
            if flat is not None and after_joining and not lines[-1].note:
                together = f"{lines[-1].text} {flat}"
                if len(together) + room <= WIDTH:
                    lines[-1] = Line(together, item.note)
                    continue
            if item.blank and lines:
                lines.append(Line(""))
            lines += [Line(lead, comment) for comment in item.above]
            lines += _noted(_behind(lead, row(item, column, room)), item.note)
            after_joining = joins(item) and len(lines[-1].text) <= WIDTH
        return (replace(lines[0], text=lines[0].text[column:]), *lines[1:]) if lines else (Line(""),)

    def _row_of(self, item: Item, column: int, tail: int) -> Lines:
        return self._row(item.nodes, column, tail)

    def _row(self, nodes: Sequence[Node], column: int, tail: int) -> Lines:
        """Nodes one behind the other, the next starting where the last line of the one before ends."""
        lines: Lines = ()
        for index, node in enumerate(nodes):
            start = column if not lines else _end(lines, column) + 1
            piece = self._node(node, start, tail if index == len(nodes) - 1 else 0)
            lines = (*lines[:-1], *_behind(f"{lines[-1].text} ", piece)) if lines else piece
        return lines


def _is_untyped(item: Item) -> bool:
    """Whether a parameter is a name or a keyword; a model's typed inputs stand alone."""
    return item.text != "("


def _always_broken(node: Node) -> bool:
    """Whether a bracket has several lines even where one would hold it.

    So have several bindings, several clauses, a body of several forms, a definition with a docstring.
    """
    items = node.items or ()
    if node.role is Role.BINDINGS:
        return len(items) > 1
    if node.role is Role.CLAUSES:
        return len(items) > 2
    if node.role is not Role.BODY or items[0].text in _SHORT_BODIES:
        return False
    return len(items) > 2


def _spaced(node: Node, parts: Sequence[str]) -> Iterator[str]:
    """The parts with the spaces between them: two between the operands of einsum."""
    wide = node.text == "(" and parts[:1] == ["einsum"]
    for index, part in enumerate(parts):
        yield ("" if index == 0 else "  " if wide and index > 1 and not part.startswith(":") else " ") + part


def _behind(text: str, lines: Lines) -> Lines:
    """The lines with `text` before the first."""
    return (replace(lines[0], text=text + lines[0].text), *lines[1:])


def _noted(lines: Lines, note: str) -> Lines:
    """The lines with `note` behind the last."""
    joined = f"{lines[-1].note} {note}".strip()
    return (*lines[:-1], replace(lines[-1], note=joined))


def _closed(lines: Lines, node: Node, inside: int) -> Lines:
    """The lines with the closing bracket: gathered, or below the comments that end the node."""
    if node.below:
        lead = " " * inside
        return (*lines, *(Line(lead, comment) for comment in node.below), Line(lead + node.close))
    return (*lines[:-1], replace(lines[-1], text=lines[-1].text + node.close))


def _end(lines: Lines, column: int) -> int:
    """The column behind the last line."""
    return len(lines[-1].text) + (column if len(lines) == 1 else 0)


def _overflow(lines: Lines, column: int, tail: int) -> int:
    """How many characters stand beyond the width."""
    widths = [len(line.text) for line in lines]
    widths[0] += column
    widths[-1] += tail
    return sum(max(0, width - WIDTH) for width in widths)
