"""The tables of an e-graph as plain data, its classes numbered in the order of their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lumi.egraph.encode import dtype_of
from lumi.egraph.engine import Engine
from lumi.egraph.graph import Attribute, ENode
from lumi.egraph.naming import Node, names

SORTS = ("Dom", "T", "A")
"""The sorts of classes: domains, terms, accumulators."""

FACTS = ("free", "final", "dtype", "over", "chunk", "acc-free", "acc-dtype", "low", "high")
"""The analyses that leave the e-graph."""

RELATIONS = ("StoreAs",)
"""The relations that leave the e-graph, unless others are asked for."""

Value: TypeAlias = Any
"""A class or a primitive as egglog gives it."""


@dataclass(frozen=True, slots=True)
class Tables:
    """E-nodes by class, the class of each term by its number, analyses and relations over classes."""

    classes: dict[int, tuple[ENode, ...]]
    nodes: dict[int, int]
    facts: dict[str, dict[int, int]]
    relations: dict[str, set[tuple[Attribute, ...]]]


def read(engine: Engine, relations: Collection[str] = RELATIONS) -> Tables:
    """Read an e-graph out, with the named relations."""
    tables = {name: _Table(engine, f) for name, f in engine.freeze().functions.items()}
    nodes: dict[Value, list[Node[Value]]] = defaultdict(list)
    for name, table in tables.items():
        if table.holds_terms and name[0].isupper():
            for row, cls in table.rows():
                nodes[cls].append(table.node(name, row))
    found = names(nodes)
    number = {cls: k for k, cls in enumerate(sorted(found, key=lambda c: found[c]))}
    return Tables(
        {k: _canonical(nodes[cls], cls, number) for cls, k in number.items()},
        {row[0]: number[cls] for row, cls in tables["node"].rows()},
        {name: tables[name].fact(number) for name in FACTS},
        {name: tables[name].relation(number) for name in relations},
    )


def _canonical(nodes: Iterable[Node[Value]], cls: Value, number: Mapping[Value, int]) -> tuple[ENode, ...]:
    """The e-nodes of a class in order, but for those that contain it: x * 1 = x is in no finite term."""
    made = (ENode(op, attrs, tuple(number[c] for c in kids)) for op, attrs, kids in nodes if cls not in kids)
    return tuple(sorted(made, key=lambda n: (n.op, tuple(map(_order, n.attrs)), n.children)))


def _order(attribute: Attribute) -> tuple[str, str]:
    return type(attribute).__name__, str(attribute)


class _Table:
    """One table of an e-graph, its primitives as Python values."""

    def __init__(self, engine: Engine, function: Any) -> None:
        self._engine, self._function = engine, function
        self._sorts: Sequence[str] = function.input_sorts
        self._plain: dict[tuple[str, Value], Attribute] = {}

    @property
    def holds_terms(self) -> bool:
        """Whether its rows are classes."""
        return self._function.output_sort in SORTS

    def rows(self) -> Iterable[tuple[tuple[Value, ...], Value]]:
        """Each row's columns and what they are mapped to."""
        for row in self._function.rows:
            columns = tuple(self._value(s, v) for s, v in zip(self._sorts, row.inputs, strict=True))
            yield columns, self._value(self._function.output_sort, row.output)

    def node(self, op: str, row: Sequence[Value]) -> Node[Value]:
        """A row of an operator's table as an e-node; the dtype of a read becomes a name."""
        attrs = [v for s, v in zip(self._sorts, row, strict=True) if s not in SORTS]
        if op in ("In", "Gat"):
            attrs[2] = str(dtype_of(attrs[2]))
        return op, tuple(attrs), tuple(v for s, v in zip(self._sorts, row, strict=True) if s in SORTS)

    def fact(self, number: Mapping[Value, int]) -> dict[int, int]:
        """An analysis by class."""
        return {number[row[0]]: value for row, value in self.rows() if row[0] in number}

    def relation(self, number: Mapping[Value, int]) -> set[tuple[Attribute, ...]]:
        """A relation with numbers for classes.

        egglog 13 may leave a row behind under a class that was merged into another; such a row is dropped.
        """
        return {
            tuple(number[v] if s in SORTS else v for s, v in zip(self._sorts, row, strict=True))
            for row, _ in self.rows()
            if all(v in number for s, v in zip(self._sorts, row, strict=True) if s in SORTS)
        }

    def _value(self, sort: str, value: Value) -> Value:
        if sort not in ("i64", "f64", "String"):
            return value
        if (sort, value) not in self._plain:
            self._plain[sort, value] = self._engine.plain(sort, value)
        return self._plain[sort, value]
