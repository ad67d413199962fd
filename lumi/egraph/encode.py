"""A region as egglog commands: one `(set (node k) …)` a distinct term, children before parents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumi.dtype import DTYPES, DType
from lumi.field.axis import AxisTable
from lumi.field.region import Region
from lumi.field.term import Bin, Const, Gat, In, Pos, Red, Sel, Term, Un, children

CODES: dict[str, int] = {
    name: code for code, name in enumerate(("bool", "i8", "u8", "i32", "i64", "f16", "bf16", "f32", "f64"), 1)
}
"""The number of a dtype in the e-graph; 0 is a constant's, which takes the type of what it meets."""

_TYPES: dict[int, DType] = {code: DTYPES[name] for name, code in CODES.items()}


def dtype_of(code: int) -> DType | None:
    """The dtype of a number; None for a constant's."""
    return _TYPES.get(code)


@dataclass(frozen=True, slots=True)
class Encoding:
    """The commands that build a region's terms, and the number of each store's term."""

    commands: tuple[str, ...]
    roots: tuple[int, ...]


def encode(region: Region) -> Encoding:
    """Number the distinct terms of a region; equal terms get one number."""
    numbers: dict[int, int] = {}  # by identity: hashing a term walks the tree that its DAG unfolds to
    texts: dict[str, int] = {}
    for store in region.stores:
        for term in _postorder(store.term, numbers):
            text = _text(term, region.axes, [f"(node {numbers[id(c)]})" for c in children(term)])
            numbers[id(term)] = texts.setdefault(text, len(texts))
    commands = tuple(f"(set (node {k}) {text})" for text, k in texts.items())
    return Encoding(commands, tuple(numbers[id(store.term)] for store in region.stores))


def _postorder(root: Term, done: Mapping[int, int]) -> Iterator[Term]:
    """The terms under `root` that are not `done` yet, children first, without recursion."""
    stack: list[tuple[Term, Iterator[Term]]] = [(root, iter(children(root)))]
    while stack:
        term, rest = stack[-1]
        child = next((c for c in rest if id(c) not in done), None)
        if child is not None:
            stack.append((child, iter(children(child))))
            continue
        stack.pop()
        if id(term) not in done:
            yield term


def _text(term: Term, axes: AxisTable, inside: Sequence[str]) -> str:
    match term:
        case In(name, over, dtype):
            return f'(In "{name}" {axes.mask(over)} {CODES[dtype.name]})'
        case Gat(name, over, dtype, _):
            return f'(Gat "{name}" {axes.mask(over)} {CODES[dtype.name]} {inside[0]})'
        case Const(value):
            return _constant(value)
        case Pos(axis):
            return f"(Pos {axes[axis].bit})"
        case Un(op, _):
            return f'(Un "{op}" {inside[0]})'
        case Bin(op, _, _):
            return f'(Bin "{op}" {inside[0]} {inside[1]})'
        case Sel():
            return f"(Sel {' '.join(inside)})"
        case Red(op, over, _):
            return f'(Red "{op}" (Full {axes.mask(over)}) {inside[0]})'


def _constant(value: float) -> str:
    """An f64 that egglog reads back bit for bit; -0.0, which it takes for 0.0, is written as a product."""
    if value == 0 and math.copysign(1, value) < 0:
        return '(Bin "mul" (Const 0.0) (Const -1.0))'
    return f"(Const {'NaN' if math.isnan(value) else repr(float(value))})"


def splits(region: Region, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The facts that an axis may be split over a chunk axis of the region."""
    for axis, chunk in pairs:
        yield f"(Splittable {region.axes[axis].bit} {region.axes[chunk].bit})"
