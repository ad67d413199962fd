"""Kernels under other names, and the identity of a kernel whatever its names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace

from lumi.field.access import Access
from lumi.field.term import Bin, Gat, In, Pos, Red, Sel, Term, Un
from lumi.llir.json import encode
from lumi.llir.kernel import Carry, Dot, Kernel, Load, Loop, Map, Position, Reduce, Statement, Store, buffers

Names = Mapping[str, str]
"""New names by old ones; what is absent keeps its name."""


def rename(kernel: Kernel, buffers: Names | None = None, axes: Names | None = None) -> Kernel:
    """The same kernel on other buffers and over other axes."""
    to, over = buffers or {}, axes or {}
    return replace(
        kernel,
        axes={over.get(a, a): e for a, e in kernel.axes.items()},
        grid=_axes(kernel.grid, over),
        resident=_axes(kernel.resident, over),
        tiles={over.get(a, a): t for a, t in kernel.tiles.items()},
        body=tuple(_statement(s, to, over) for s in kernel.body),
    )


def identity(*kernels: Kernel) -> str:
    """A hash equal for kernels of one launch that differ only in the names of buffers and axes."""
    names = dict.fromkeys(b for kernel in kernels for b in buffers(kernel))
    to = {name: f"b{k}" for k, name in enumerate(names)}
    numbered = [
        rename(kernel, to, {name: f"a{k}" for k, name in enumerate(kernel.axes)}) for kernel in kernels
    ]
    return hashlib.sha256(json.dumps(encode(numbered), sort_keys=True).encode()).hexdigest()


def _axes(axes: tuple[str, ...], over: Names) -> tuple[str, ...]:
    return tuple(over.get(a, a) for a in axes)


def _statement(statement: Statement, to: Names, over: Names) -> Statement:
    match statement:
        case Load(_, access, _, axes, _):
            return replace(statement, access=_access(access, to, over), axes=_axes(axes, over))
        case Store(access, _, axes):
            return replace(statement, access=_access(access, to, over), axes=_axes(axes, over))
        case Position(_, axis):
            return replace(statement, axis=over.get(axis, axis))
        case Map(_, _, _, axes, _):
            return replace(statement, axes=_axes(axes, over))
        case Reduce(_, _, reduced, _, axes, _) | Dot(_, reduced, _, _, axes, _):
            return replace(statement, over=_axes(reduced, over), axes=_axes(axes, over))
        case Loop():
            return _loop(statement, to, over)
        case _:
            return statement


def _loop(loop: Loop, to: Names, over: Names) -> Loop:
    return Loop(
        _axes(loop.axes, over),
        None if loop.chunk is None else over.get(loop.chunk, loop.chunk),
        tuple(_term(g, over) for g in loop.guards),
        tuple(_carry(c, over) for c in loop.carries),
        tuple(_statement(s, to, over) for s in loop.body),
    )


def _carry(carry: Carry, over: Names) -> Carry:
    return replace(carry, axes=_axes(carry.axes, over))


def _access(access: Access, to: Names, over: Names) -> Access:
    return replace(access, index=tuple(i.rename(over) for i in access.index)).renamed(to)


def _term(term: Term, over: Names) -> Term:
    match term:
        case Pos(axis):
            return Pos(over.get(axis, axis))
        case Un(op, a):
            return Un(op, _term(a, over))
        case Bin(op, a, b):
            return Bin(op, _term(a, over), _term(b, over))
        case Sel(c, a, b):
            return Sel(_term(c, over), _term(a, over), _term(b, over))
        case Red(op, axes, body):
            return Red(op, _axes(axes, over), _term(body, over))
        case In(name, axes, dtype):
            return In(name, _axes(axes, over), dtype)
        case Gat(name, axes, dtype, index):
            return Gat(name, _axes(axes, over), dtype, _term(index, over))
        case _:
            return term
