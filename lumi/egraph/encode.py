"""A region as egglog commands: one `(set (node k) …)` a distinct term, children before parents."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lumi import dim
from lumi.dim import DimRange, Extent
from lumi.dtype import DTYPES, DType
from lumi.field.axis import AxisTable
from lumi.field.region import Region
from lumi.field.term import Bin, Const, Gat, In, Pos, Red, Sel, Term, Un, children
from lumi.field.traverse import postorder

CODES: dict[str, int] = {
    name: code
    for code, name in enumerate(
        ("bool", "i8", "u8", "i32", "i64", "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2"), 1
    )
}
"""The number of a dtype in the e-graph; 0 is a constant's, which takes the type of what it meets."""

SHORT = 1 << 17
"""Points over which i32 holds every sum of products of two values that i8 holds, one of them not -128."""

LONG = 4
"""Points of an axis along which it is worth to round a factor: shorter ones are parts of a block."""

_TYPES: dict[int, DType] = {code: DTYPES[name] for name, code in CODES.items()}


def dtype_of(code: int) -> DType | None:
    """The dtype of a number; None for a constant's."""
    return _TYPES.get(code)


@dataclass(frozen=True, slots=True)
class Encoding:
    """The commands that build a region's terms and state its facts, and the number of each store's term."""

    commands: tuple[str, ...]
    roots: tuple[int, ...]


def encode(
    region: Region, splits: Sequence[tuple[str, str]] = (), ranges: Mapping[str, DimRange] | None = None
) -> Encoding:
    """Number the distinct terms of a region; equal terms get one number.

    `splits` are (axis, chunk axis) pairs; `ranges` are the declared dims.
    """
    numbers: dict[int, int] = {}  # by identity: hashing a term walks the tree that its DAG unfolds to
    texts: dict[str, int] = {}
    for term in postorder(store.term for store in region.stores):
        text = _text(term, region.axes, [f"(node {numbers[id(c)]})" for c in children(term)])
        numbers[id(term)] = texts.setdefault(text, len(texts))
    commands = [f"(set (node {k}) {text})" for text, k in texts.items()]
    commands += [f"(set (low {text}) 0)" for text in texts if text.startswith(("(Pos ", '(In "$'))]
    commands += _facts(region.axes, splits, ranges or {}, texts)
    return Encoding(tuple(commands), tuple(numbers[id(store.term)] for store in region.stores))


def _facts(
    axes: AxisTable,
    splits: Sequence[tuple[str, str]],
    ranges: Mapping[str, DimRange],
    texts: Collection[str],
) -> Iterator[str]:
    """Which axes may be split, empty, short or long, and how far positions go."""
    for whole, chunk in splits:
        yield f"(Splittable {axes[whole].bit} {axes[chunk].bit})"
    yield f"(set (empty-axes) {sum(a.bit for a in axes if may_be_empty(a.extent, ranges))})"
    yield f"(set (short-axes) {_short(axes)})"
    yield f"(set (long-axes) {sum(a.bit for a in axes if not isinstance(a.extent, int) or a.extent >= LONG)})"
    for axis in axes:
        position, longest = f"(Pos {axis.bit})", dim.bounds(axis.extent, ranges)[1]
        if position in texts and 1 <= longest <= 2**31:
            yield f"(set (high {position}) {int(longest) - 1})"


def _short(axes: AxisTable) -> int:
    """The shortest axes, as a mask: as many as have at most `SHORT` points together."""
    mask, points = 0, 1
    sizes = [(a.extent, a.bit) for a in axes if isinstance(a.extent, int) and a.extent > 0]
    for size, bit in sorted(sizes):
        points *= size
        if points > SHORT:
            break
        mask |= bit
    return mask


def may_be_empty(extent: Extent, ranges: Mapping[str, DimRange]) -> bool:
    """Whether an extent can be 0.  A dim that is not declared is taken to be at least 1."""
    if isinstance(extent, int):
        return extent < 1
    taken = {name: DimRange(name, 1, 2**31, ()) for name in extent.names()}
    return dim.bounds(extent, {**taken, **ranges})[0] < 1


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
        case Bin("add" | "mul" as op, Const(), b) if not isinstance(b, Const):
            return f'(Bin "{op}" {inside[1]} {inside[0]})'  # rules look for numbers on the right
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
    return f"(Const {number(value)})"


def number(value: float) -> str:
    """An f64 other than -0.0 that egglog reads back bit for bit."""
    return "NaN" if math.isnan(value) else repr(float(value))
