"""The params and states of one trace: what was declared under which key, and what `set!` made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lumi.dim import Extent
from lumi.dtype import DType
from lumi.errors import LumiError, Span
from lumi.hlir.builder import Builder
from lumi.hlir.graph import Node
from lumi.interpreter.value import Cell


class Store:
    """Cells by key.  A key is the names of the layers around a declaration and its own, joined by dots."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._prefix: list[str] = []
        self._cells: dict[str, Cell] = {}
        self._places: dict[str, Span | None] = {}

    @contextmanager
    def prefixed(self, name: str) -> Iterator[None]:
        """Keys declared inside begin with `name`."""
        self._prefix.append(name)
        try:
            yield
        finally:
            self._prefix.pop()

    def key(self, name: str) -> str:
        """The key of `name`, declared here."""
        return ".".join([*self._prefix, name])

    def claim(self, key: str, span: Span | None) -> None:
        """Raise when `key` is taken already."""
        if key in self._places:
            first = self._places[key]
            hint = f"first declared at {first}; " if first else ""
            raise LumiError(
                "name error", f"{key} is declared twice", span, hint=f"{hint}give each layer its own :name"
            )
        self._places[key] = span

    def param(
        self, key: str, dtype: DType, shape: Sequence[Extent], init: float | None, span: Span | None
    ) -> Cell:
        """A weight, declared for the first time."""
        self.claim(key, span)
        return self.hold("param", key, self._builder.param(key, dtype, shape, init))

    def state(self, key: str, dtype: DType, shape: Sequence[Extent], span: Span | None) -> Cell:
        """A tensor that lives between calls, declared for the first time."""
        self.claim(key, span)
        return self.hold("state", key, self._builder.state(key, dtype, shape))

    def hold(self, kind: str, key: str, node: Node) -> Cell:
        """The cell of a claimed key, at first with the value `node`."""
        cell = self._cells.get(key)
        if cell is None or cell.first is not node:
            cell = self._cells[key] = Cell(kind, key, node, node)
        return cell

    def updates(self) -> dict[str, Node]:
        """What the call leaves under the keys that `set!` has changed."""
        return {key: cell.node for key, cell in self._cells.items() if cell.node is not cell.first}

    def begin(self) -> None:
        """Begin another call: every key may be declared again, every cell has its first value."""
        self._places.clear()
        for cell in self._cells.values():
            cell.node = cell.first
