"""The schedules that can turn a kernel into C.

All templates but `blas` share one code generator; they differ in how many copies of the code run at once.

- `c`: one at a time; works for anything.
- `stream`: for a matrix times a vector, where one factor of a sum of products is read once: `rows` of it
  share the other factor, turns are `unroll`ed to have more sums under way, and what is read once is
  fetched `ahead` bytes early.
- `matmul`: both factors are read again and again: blocks of `rows` × `columns` results in registers.
- `dot8`: sums of products of bytes, in vectors of bytes.
- `blas`: a plain f32 matrix product, where the machine has a BLAS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lumi.backends.cpu import library, product
from lumi.llir import bytedot
from lumi.llir.kernel import Dot, Kernel, Load, Loop, Map, Position, Reduce, Schedule, Step, walk
from lumi.llir.program import axes_of

DEFAULT = Schedule("c")
"""The schedule that works for every kernel."""

STREAM = (
    Schedule("stream", (("ahead", 8192), ("unroll", 2))),
    Schedule("stream", (("rows", 4),)),
    Schedule("stream", (("ahead", 8192),)),
    Schedule("stream", (("ahead", 8192), ("unroll", 4))),
    Schedule("stream", (("rows", 2), ("unroll", 2))),
)
"""One row after the other keeps up with memory; several rows at once are for weights in the cache."""

MATMUL = (
    Schedule("matmul", (("columns", 3), ("rows", 4))),
    Schedule("matmul", (("columns", 2), ("rows", 6))),
    Schedule("matmul", (("columns", 4), ("rows", 2))),
)

DOT8 = (
    Schedule("dot8", (("ahead", 8192), ("bytes", 1))),
    Schedule("dot8", (("bytes", 1), ("rows", 2))),
    Schedule("dot8", (("bytes", 1), ("columns", 2), ("rows", 4))),
)

BLAS = Schedule("blas")


def schedules(kernel: Kernel) -> tuple[Schedule, ...]:
    """Every schedule of a kernel, the one that always works first."""
    return (DEFAULT, *_special(kernel))


def available(step: Step) -> Step:
    """The step as this machine can run it: without a BLAS, our own block of the product."""
    own = MATMUL[0] if step.schedule == BLAS and library.find_blas() is None else step.schedule
    return replace(step, schedule=own, then=tuple(map(available, step.then)))


def _special(kernel: Kernel) -> Iterator[Schedule]:
    outer = {_is_outer(kernel, s) for s in walk(kernel.body) if isinstance(s, Dot)}
    sums = any(isinstance(s, (Dot, Reduce)) for s in walk(kernel.body))
    if True in outer:
        yield from MATMUL
    if sums:
        yield from STREAM
    if bytedot.find(kernel.body).sums:
        yield from DOT8
    if True in outer and library.find_blas() is not None and product.find(kernel) is not None:
        yield BLAS


def _is_outer(kernel: Kernel, dot: Dot) -> bool:
    """Whether each factor of a sum of products varies along an axis that the other lacks."""
    axes = _axes(kernel)
    a, b = (set(axes.get(o, ())) if isinstance(o, str) else set[str]() for o in (dot.a, dot.b))
    long = {x for x in dot.axes if kernel.axes[x] != 1}
    return bool((a - b) & long) and bool((b - a) & long)


def _axes(kernel: Kernel) -> dict[str, tuple[str, ...]]:
    """The axes of every value of a kernel."""
    found: dict[str, tuple[str, ...]] = {}
    for statement in walk(kernel.body):
        match statement:
            case Load(var, _, _, axes, _) | Map(var, _, _, axes, _) | Reduce(var, _, _, _, axes, _):
                found[var] = axes
            case Dot(var, _, _, _, axes, _):
                found[var] = axes
            case Position():
                found[statement.var] = axes_of(statement)
            case Loop():
                for carry in statement.carries:
                    found[carry.previous] = found[carry.final] = carry.axes
            case _:
                pass
    return found
