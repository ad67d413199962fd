"""The tables of a saturated e-graph as an `EGraph` whose class ids depend on its contents alone.

A class is named by the hash of its smallest-depth e-node over the names of its children, and classes are
numbered in the order of (depth, name).  So two egglog versions, or two orders of rules, that reach the
same e-graph yield the same numbers, and everything that the search derives from them.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lumi.egraph.encode import dtype_of
from lumi.egraph.engine import Engine
from lumi.egraph.graph import Attribute, ENode

SORTS = ("Dom", "T", "A")
"""The sorts of classes: domains, terms, accumulators."""

FACTS = ("free", "final", "dtype", "over", "chunk", "acc-free", "acc-dtype", "low", "high")
"""The analyses that leave the e-graph."""

RELATIONS = ("StoreAs",)
"""The relations that leave the e-graph, unless others are asked for."""

Name: TypeAlias = "tuple[int, str]"
"""A class by the depth and the hash of its smallest e-node."""


@dataclass(slots=True)
class Tables:
    """What the tables say, by class id: the e-nodes and the facts that leave the e-graph."""

    classes: dict[int, tuple[ENode, ...]]
    nodes: dict[int, int]
    facts: dict[str, dict[int, int]]
    relations: dict[str, set[tuple[Attribute, ...]]]


def read(engine: Engine, relations: Collection[str] = RELATIONS) -> Tables:
    """Read an e-graph out in canonical numbering, with the named relations."""
    raw = _Raw.of(engine, relations)
    number = {value: k for k, (_, value) in enumerate(sorted((n, v) for v, n in raw.names().items()))}
    classes = {
        number[value]: tuple(
            sorted(
                (
                    ENode(op, attrs, tuple(number[c] for c in kids))
                    for op, attrs, kids in nodes
                    if value not in kids  # x * 1 = x: such a node is in no finite term
                ),
                key=lambda n: (n.op, tuple(map(_order, n.attrs)), n.children),
            )
        )
        for value, nodes in raw.classes.items()
    }
    return Tables(
        dict(sorted(classes.items())),
        {k: number[value] for k, value in raw.nodes.items()},
        {name: {number[v]: x for v, x in table.items() if v in number} for name, table in raw.facts.items()},
        {name: _renumbered(sorts, rows, number) for name, (sorts, rows) in raw.relations.items()},
    )


def _renumbered(
    sorts: Sequence[str], rows: Iterable[tuple[Any, ...]], number: Mapping[Any, int]
) -> set[tuple[Attribute, ...]]:
    """The rows of a relation under canonical numbers.

    egglog 13 may leave a row behind under a class that was merged into another; such a row is dropped.
    """
    return {
        tuple(number[x] if s in SORTS else x for s, x in zip(sorts, row, strict=True))
        for row in rows
        if all(x in number for s, x in zip(sorts, row, strict=True) if s in SORTS)
    }


def _order(attribute: Attribute) -> tuple[str, str]:
    return type(attribute).__name__, str(attribute)


@dataclass(slots=True)
class _Raw:
    """The tables under egglog's own class ids."""

    classes: dict[Any, list[tuple[str, tuple[Attribute, ...], tuple[Any, ...]]]]
    nodes: dict[int, Any] = field(default_factory=dict)
    facts: dict[str, dict[Any, int]] = field(default_factory=dict)
    relations: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = field(default_factory=dict)

    @staticmethod
    def of(engine: Engine, relations: Collection[str]) -> _Raw:
        raw = _Raw(defaultdict(list))
        plain: dict[tuple[str, Any], Attribute] = {}

        def value(sort: str, v: Any) -> Any:
            if sort not in ("i64", "f64", "String"):
                return v
            if (sort, v) not in plain:
                plain[sort, v] = engine.plain(sort, v)
            return plain[sort, v]

        for name, function in engine.freeze().functions.items():
            sorts, out = function.input_sorts, function.output_sort
            is_class = out in SORTS and name[0].isupper()
            if not is_class and name not in ("node", *FACTS, *relations):
                continue
            rows = [
                ([value(s, v) for s, v in zip(sorts, r.inputs, strict=True)], r.output) for r in function.rows
            ]
            if name == "node":
                raw.nodes = {k: cls for (k,), cls in rows}
            elif is_class:
                for args, cls in rows:
                    attrs = tuple(
                        _attribute(name, k, a)
                        for k, (s, a) in enumerate(zip(sorts, args, strict=True))
                        if s not in SORTS
                    )
                    raw.classes[cls].append(
                        (name, attrs, tuple(a for s, a in zip(sorts, args, strict=True) if s in SORTS))
                    )
            elif name in FACTS:
                raw.facts[name] = {args[0]: value(out, v) for args, v in rows}
            else:
                raw.relations[name] = (sorts, [tuple(args) for args, _ in rows])
        return raw

    def names(self) -> Mapping[Any, Name]:
        """The name of every class, smallest depth first."""
        waiting: dict[Any, list[tuple[Any, int]]] = defaultdict(list)
        missing: dict[tuple[Any, int], int] = {}
        heap: list[tuple[int, str, int]] = []
        found: dict[Any, Name] = {}
        ready: list[Any] = []

        def push(cls: Any, k: int) -> None:
            op, attrs, kids = self.classes[cls][k]
            text = f"({op} {' '.join([*map(repr, attrs), *(found[c][1] for c in kids)])})"
            depth = 1 + max((found[c][0] for c in kids), default=0)
            ready.append(cls)
            heapq.heappush(heap, (depth, hashlib.sha256(text.encode()).hexdigest()[:16], len(ready) - 1))

        for cls, nodes in self.classes.items():
            for k, (_, _, kids) in enumerate(nodes):
                missing[cls, k] = len(set(kids))
                for kid in set(kids):
                    waiting[kid].append((cls, k))
        for (cls, k), count in missing.items():
            if not count:
                push(cls, k)
        while heap:
            depth, digest, position = heapq.heappop(heap)
            cls = ready[position]
            if cls in found:
                continue
            found[cls] = (depth, digest)
            for user, k in waiting[cls]:
                missing[user, k] -= 1
                if not missing[user, k]:
                    push(user, k)
        return found


def _attribute(op: str, position: int, value: Attribute) -> Attribute:
    """Dtype numbers become names; every other attribute stays."""
    if op in ("In", "Gat") and position == 2 and isinstance(value, int):
        dtype = dtype_of(value)
        return dtype.name if dtype else "weak"
    return value
