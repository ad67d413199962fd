"""Consistency of a saturated e-graph: a rule that unites unequal terms mostly shows in axes or types.

Every e-node of a class must vary over the axes of the class and have its element type.  `free` merges by
intersection and `dtype` by the larger number, so the e-node that does not belong is the one that differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lumi.egraph.encode import CODES, dtype_of
from lumi.egraph.graph import ENode
from lumi.egraph.readout import Tables
from lumi.field.axis import LIMIT, AxisTable


@dataclass(frozen=True, slots=True)
class Conflict:
    """A class with an e-node that does not belong to it, in words."""

    cls: int
    node: ENode
    detail: str

    @property
    def text(self) -> str:
        """The operation of the e-node, and what is wrong with it."""
        op = f"{self.node.op} {self.node.attrs[0]}" if self.node.attrs else self.node.op
        return f"{op} {self.detail}"


def conflicts(tables: Tables, axes: AxisTable) -> Iterator[Conflict]:
    """Every e-node whose axes or element type are not those of its class; `axes` are the region's."""
    for cls, nodes in tables.classes.items():
        if cls not in tables.facts["free"]:
            continue
        for node in nodes:
            free, own = _space(node, tables), tables.facts["free"][cls]
            if free != own:
                yield Conflict(
                    cls, node, f"varies over {_names(free, axes)} in a class over {_names(own, axes)}"
                )
            code, type_of_class = _dtype(node, tables), tables.facts["dtype"].get(cls, 0)
            if code and code != type_of_class:
                yield Conflict(cls, node, f"is {dtype_of(code)} in a class of {dtype_of(type_of_class)}")


def _names(mask: int, axes: AxisTable) -> str:
    """The axes of a mask, and the loops that it is inside of: `[i k, a tile of j]`."""
    tiles = [f"a tile of {name}" for name in axes.names(mask >> LIMIT)]
    return f"[{', '.join(filter(None, [' '.join(axes.names(mask)), *tiles]))}]"


def _space(node: ENode, tables: Tables) -> int:
    """The axes and loop times an e-node varies over, given those of its children."""
    free = tables.facts["free"]
    match node.op, node.attrs, node.children:
        case (("In" | "Gat"), (_, int(mask), _), children):
            return mask | sum(free[c] & ~mask for c in children)
        case "Pos", (int(mask),), _:
            return mask
        case "Red", _, (domain, body):
            return tables.facts["chunk"][domain] | free[body] & ~tables.facts["over"][domain]
        case "Fin", _, (acc,):
            over, chunk, inside = _accumulator(acc, tables)
            return chunk | inside & ~(over | over << LIMIT)
        case (("Run" | "Prev"), _, (acc,)):
            over, chunk, inside = _accumulator(acc, tables)
            return chunk | over << LIMIT | inside & ~over
        case _, _, children:
            union = 0
            for child in children:
                union |= free[child]
            return union


def _accumulator(acc: int, tables: Tables) -> tuple[int, int, int]:
    """The axes of an accumulator's domain, its chunk axis, and what its step and updates vary over."""
    domain = tables.classes[acc][0].children[0]
    return tables.facts["over"][domain], tables.facts["chunk"][domain], tables.facts["acc-free"][acc]


def _dtype(node: ENode, tables: Tables) -> int:
    """The number of an e-node's element type given those of its children; 0 when it takes any."""
    of = tables.facts["dtype"]
    match node.op, node.attrs, node.children:
        case (("In" | "Gat"), (_, _, str(name)), _):
            return CODES[name]
        case "Pos", _, _:
            return CODES["i32"]
        case "Un", (str(op),), _ if op.startswith(("cast.", "bits.")):
            return CODES[op[5:]]
        case (("Un" | "Bin"), (str(op),), _) if op in BOOLEAN:
            return CODES["bool"]
        case "Sel", _, (_, a, b):
            return max(of.get(a, 0), of.get(b, 0))
        case (("Un" | "Bin"), _, children):
            return max(of.get(c, 0) for c in children)
        case "Red", _, (_, body):
            return of.get(body, 0)
        case (("Fin" | "Run" | "Prev"), _, (acc,)):
            return tables.facts["acc-dtype"].get(acc, 0)
        case _:
            return 0


BOOLEAN = ("lt", "le", "eq", "and", "or", "not")
"""Operators that give bool."""
