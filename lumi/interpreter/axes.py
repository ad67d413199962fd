"""`einsum` and `rearrange`: axis patterns as data.

A pattern is a vector of axis names, `1`, `...` (any axes) and, in `rearrange`, groups `(h d)` that stand
for one dimension.  Both forms become permuted, reshaped views; einsum is their broadcast product, summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lumi import dim
from lumi.dim import Extent
from lumi.dtype import F32, DType
from lumi.errors import LumiError
from lumi.hlir.graph import Node
from lumi.hlir.op import BinaryKind, Monoid, UnaryKind
from lumi.interpreter.builtin import BUILTINS, extent, tensor
from lumi.interpreter.evaluate import Interpreter
from lumi.interpreter.registry import special
from lumi.interpreter.scope import Scope
from lumi.interpreter.value import Value, describe
from lumi.syntax import printer
from lumi.syntax.form import Form, Int, List, Symbol, Vector

ARROW = Symbol("->")
ELLIPSIS = "..."
_EINSUM = "(einsum x [... i] w [o i] -> [... o])"
_REARRANGE = "(rearrange x [b s (h d)] -> [b h s d] :h 8)"

Axes = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor, the names of its axes, and the pattern they came from."""

    node: Node
    axes: Axes
    pattern: Form


@special("einsum")
def einsum(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(einsum a [axes] b [axes] … -> [axes])`: the product, summed over the axes that the result lacks.

    Halves are widened to f32 first and rounded once at the end.  More than two operands are taken from
    left to right; an axis is summed as soon as no later operand has it.  With `:precision tf32` the factors
    of each product are rounded to TF32, and sums are still f32.
    """
    pairs, result, options = _split(form)
    operands = []
    for source, pattern in pairs:
        node = tensor(interpreter, interpreter.evaluate(source, scope))
        operands.append(Operand(node, _spread(_flat(pattern), node.type.rank, pattern, node), pattern))
    _check(operands, form)
    out = _result(result, operands)
    dtype = operands[0].node.dtype
    in_tf32 = _is_tf32(interpreter, options, dtype, scope)
    interpreter.builder.span = interpreter.place(form)
    if dtype.is_narrow:
        operands = [Operand(interpreter.builder.cast(o.node, F32), o.axes, o.pattern) for o in operands]
    total = operands[0]
    for k, operand in enumerate(operands[1:], start=2):
        later = {a for o in operands[k:] for a in o.axes}
        merged = dict.fromkeys((*total.axes, *operand.axes))
        kept = out if k == len(operands) else tuple(a for a in merged if a in later or a in out)
        a, b = (_in_tf32(interpreter, o) if in_tf32 else o for o in (total, operand))
        total = Operand(_product(interpreter, a, b, kept), kept, operand.pattern)
    if len(operands) == 1:
        total = Operand(_sum(interpreter, total, out), out, result)
    return interpreter.builder.cast(total.node, dtype)


def _is_tf32(interpreter: Interpreter, options: Sequence[Form], dtype: DType, scope: Scope) -> bool:
    """Whether `:precision`, nil unless it is given, is `tf32`, which tensors of `dtype` must then have."""
    positional, keywords = interpreter.arguments(options, scope)
    if positional or any(name != "precision" for name in keywords):
        what = f"takes no {printer.show(options[0])} behind the result"
        raise LumiError(
            "call error", f"einsum {what}", options[0].span, hint="it may be followed by :precision"
        )
    precision = keywords.get("precision")
    if precision is None:
        return False
    if precision is not BUILTINS["tf32"]:
        hint = "tf32 is one, of products of f32; cast tensors to multiply them in another dtype"
        raise LumiError("type error", f"{describe(precision)} is no precision", options[1].span, hint=hint)
    if dtype is F32 or dtype.is_narrow:
        return True
    hint = "TF32 is what tensor cores multiply of f32: cast the tensors, or leave :precision out"
    raise LumiError("type error", f"einsum of {dtype} in the precision tf32", options[1].span, hint=hint)


def _in_tf32(interpreter: Interpreter, operand: Operand) -> Operand:
    return replace(operand, node=interpreter.builder.unary(UnaryKind.TF32, operand.node))


def _product(interpreter: Interpreter, a: Operand, b: Operand, out: Axes) -> Node:
    """The broadcast product over `out` and the other axes, summed over the others."""
    builder = interpreter.builder
    order = tuple(dict.fromkeys((*out, *a.axes, *b.axes)))
    product = builder.binary(BinaryKind.MUL, _placed(interpreter, a, order), _placed(interpreter, b, order))
    return builder.reduce(Monoid.SUM, product, range(len(out), len(order)))


def _sum(interpreter: Interpreter, a: Operand, out: Axes) -> Node:
    order = tuple(dict.fromkeys((*out, *a.axes)))
    return interpreter.builder.reduce(Monoid.SUM, _placed(interpreter, a, order), range(len(out), len(order)))


def _placed(interpreter: Interpreter, a: Operand, order: Axes) -> Node:
    """The operand with its axes in `order`, and 1 for every axis that it lacks."""
    own = [axis for axis in order if axis in a.axes]
    moved = interpreter.builder.permute(a.node, [a.axes.index(axis) for axis in own])
    sizes = iter(moved.shape)
    return interpreter.builder.reshape(moved, [next(sizes) if axis in own else 1 for axis in order])


def _split(form: List) -> tuple[list[tuple[Form, Vector]], Vector, tuple[Form, ...]]:
    """Sources with their patterns, the result's pattern, and what stands behind it."""
    end = form.items.index(ARROW) + 2 if ARROW in form.items else 0
    items, options = form.items[1:end], form.items[end:]
    if len(items) < 4 or len(items) % 2 or end > len(form.items) or ARROW in options:
        raise LumiError(
            "form error", "einsum takes tensors, each with its axes, -> axes", form.span, hint=_EINSUM
        )
    pairs = [
        (source, _pattern(axes, _EINSUM)) for source, axes in zip(items[:-2:2], items[1:-2:2], strict=True)
    ]
    return pairs, _pattern(items[-1], _EINSUM), options


def _pattern(form: Form, usage: str) -> Vector:
    if isinstance(form, Vector):
        return form
    raise LumiError("form error", f"{printer.show(form)} is no list of axes", form.span, hint=usage)


def _flat(pattern: Vector) -> Axes:
    """The axis names of an einsum pattern."""
    names: list[str] = []
    for item in pattern.items:
        if not isinstance(item, Symbol):
            raise LumiError("form error", f"{printer.show(item)} is no axis", item.span, hint=_EINSUM)
        if item.name in names:
            raise LumiError("form error", f"axis `{item.name}` stands twice", item.span)
        names.append(item.name)
    return tuple(names)


def _spread(names: Axes, rank: int, pattern: Form, node: Node | None) -> Axes:
    """The names with `...` replaced by one name an axis, numbered from the last."""
    count = rank - (len(names) - (ELLIPSIS in names))
    if count < 0 or (count and ELLIPSIS not in names):
        raise LumiError(
            "shape error",
            f"{printer.show(pattern)} names {len(names)} axes of {node.type if node else rank}",
            pattern.span,
            label=str(node.type) if node else "",
            hint="name every axis, or begin with ...",
        )
    spread: list[str] = []
    for name in names:
        spread += [f"{ELLIPSIS}{i}" for i in reversed(range(count))] if name == ELLIPSIS else [name]
    return tuple(spread)


def _check(operands: Sequence[Operand], form: List) -> None:
    """Equal names must have equal sizes, all operands one dtype."""
    sizes: dict[str, tuple[Extent, str]] = {}
    for k, operand in enumerate(operands):
        source = form.items[1 + 2 * k]
        if operand.node.dtype != operands[0].node.dtype:
            raise LumiError(
                "type error",
                f"einsum of {operands[0].node.type} and {operand.node.type}",
                source.span,
                label=str(operand.node.type),
                hint="cast one of them",
            )
        for axis, size in zip(operand.axes, operand.node.shape, strict=True):
            other, where = sizes.setdefault(axis, (size, _name(source, k)))
            if size == other or (axis.startswith(ELLIPSIS) and 1 in (size, other)):
                continue
            raise LumiError(
                "shape error",
                f"einsum axis `{axis}` is {other} in {where} but {size} in {_name(source, k)}",
                operand.pattern.span,
                label=str(operand.node.type),
            )


def _name(source: Form, k: int) -> str:
    """How a message calls operand `k`."""
    return source.name if isinstance(source, Symbol) else f"operand {k + 1}"


def _result(pattern: Vector, operands: Sequence[Operand]) -> Axes:
    names = _flat(pattern)
    known = {axis for operand in operands for axis in operand.axes}
    batch = sum(axis.startswith(ELLIPSIS) for axis in known)
    if batch and ELLIPSIS not in names:
        raise LumiError("form error", "the result lacks the axes of ...", pattern.span, hint=_EINSUM)
    for name, item in zip(names, pattern.items, strict=True):
        if name not in known and name != ELLIPSIS:
            raise LumiError("form error", f"axis `{name}` is in no operand", item.span)
    return _spread(names, batch + len(names) - (ELLIPSIS in names), pattern, None)


# -- rearrange


@dataclass(slots=True)
class Group:
    """The axis names that make up one dimension."""

    names: list[str] = field(default_factory=list)


@special("rearrange")
def rearrange(interpreter: Interpreter, form: List, scope: Scope) -> Value:
    """`(rearrange x [b s (h d)] -> [b h s d] :h 8)`: split, permute and merge dimensions.

    One size of each group may be left out; `1` inserts or removes an axis of size 1.
    """
    items = form.items
    if len(items) < 5 or items[3] != ARROW:
        raise LumiError("form error", "rearrange takes a tensor, axes -> axes", form.span, hint=_REARRANGE)
    node = tensor(interpreter, interpreter.evaluate(items[1], scope))
    left, right = _pattern(items[2], _REARRANGE), _pattern(items[4], _REARRANGE)
    positional, keywords = interpreter.arguments(items[5:], scope)
    if positional:
        raise LumiError("form error", "sizes are given by name", form.span, hint=_REARRANGE)
    given = {name: extent(value) for name, value in keywords.items()}
    source = list(_groups(left, node))
    sizes = _sizes(source, node, given, left)
    count = sum(n.startswith(ELLIPSIS) for g in source for n in g.names)
    target = list(_groups(right, None, count))
    before, after = ([n for g in groups for n in g.names] for groups in (source, target))
    if sorted(before) != sorted(after):
        odd = sorted(set(before) ^ set(after))
        raise LumiError(
            "form error", f"axes {' '.join(odd) or 'twice'} are not on both sides", form.span, hint=_REARRANGE
        )
    for name in given:
        if name not in sizes:
            raise LumiError("call error", f"rearrange has no axis `{name}`", form.span)
    builder = interpreter.builder
    builder.span = interpreter.place(form)
    split = builder.reshape(node, [sizes[n] for n in before])
    moved = builder.permute(split, [before.index(n) for n in after])
    return builder.reshape(moved, [dim.product(sizes[n] for n in g.names) for g in target])


def _groups(pattern: Vector, node: Node | None, spread: int = 0) -> Iterator[Group]:
    """One group a dimension; `...` stands for as many as are left over (`spread` without a tensor)."""
    if node is not None:
        spread = node.type.rank - sum(item != Symbol(ELLIPSIS) for item in pattern.items)
        if spread < 0 or (spread and Symbol(ELLIPSIS) not in pattern.items):
            raise LumiError(
                "shape error",
                f"{printer.show(pattern)} does not fit {node.type}",
                pattern.span,
                label=str(node.type),
                hint="one item a dimension, or begin with ...",
            )
    for item in pattern.items:
        match item:
            case Symbol(name) if name == ELLIPSIS:
                yield from (Group([f"{ELLIPSIS}{i}"]) for i in reversed(range(spread)))
            case Symbol(name):
                yield Group([name])
            case Int(1):
                yield Group()
            case List(items) if all(isinstance(i, Symbol) and i.name != ELLIPSIS for i in items):
                yield Group([i.name for i in items if isinstance(i, Symbol)])
            case _:
                raise LumiError("form error", f"{printer.show(item)} is no axis", item.span, hint=_REARRANGE)


def _sizes(
    groups: Sequence[Group], node: Node, given: dict[str, Extent], pattern: Vector
) -> dict[str, Extent]:
    """The size of every axis name; a group leaves at most one open."""
    sizes: dict[str, Extent] = {}
    for group, size in zip(groups, node.shape, strict=True):
        open_ = [n for n in group.names if n not in given]
        known = dim.product(given[n] for n in group.names if n in given)
        rest = dim.divide(size, known) if known != 0 else None
        if len(open_) > 1 or rest is None or (not open_ and rest != 1):
            wanted = f"({' '.join(group.names)})" if len(group.names) != 1 else group.names[0]
            known_sizes = ", ".join(f"{n} = {given[n]}" for n in group.names if n in given)
            wanted += f" with {known_sizes}" if known_sizes else ""
            what = "leaves two sizes open" if len(open_) > 1 else f"does not make {size}"
            raise LumiError(
                "shape error",
                f"{wanted} {what}",
                pattern.span,
                label=str(node.type),
                hint=f"give sizes by name: {_REARRANGE}",
            )
        for name in group.names:
            if name in sizes:
                raise LumiError("form error", f"axis `{name}` stands twice", pattern.span)
            sizes[name] = given.get(name, rest)
    return sizes
