"""A kernel: a grid of cells, each running a tile program in single assignment.

Every value is a tile over some of the kernel's axes; a tile spans `tiles[axis]` positions of each.
Lanes past the end of an axis are never loaded, reduced or stored.  Tile sizes and the template that
turns the program into code are choices of the search, kept in the `Schedule`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from lumi.dim import Dim, Extent
from lumi.dtype import DType
from lumi.field.access import Access
from lumi.field.term import In, Term, children
from lumi.memo import Memo

Operand: TypeAlias = "str | float"
"""A value by its name, or a number that takes the type of what it meets."""


@dataclass(frozen=True, slots=True)
class Load:
    """The elements of `access` over the current tile of `axes`; `data` are the fields its index needs."""

    var: str
    access: Access
    data: tuple[Operand, ...]
    axes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Position:
    """The positions along `axis` in the current tile, i32."""

    var: str
    axis: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """The runtime value of a dim, i32."""

    var: str
    name: str


@dataclass(frozen=True, slots=True)
class Map:
    """An elementwise operator (a name of `field.term`, `sel`, `cast.<dtype>`, `bits.<dtype>`)."""

    var: str
    op: str
    args: tuple[Operand, ...]
    axes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Reduce:
    """The reduction of a tile by `op` (sum, max, mul) over the axes `over`; ragged lanes are identities."""

    var: str
    op: str
    over: tuple[str, ...]
    value: Operand
    axes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Dot:
    """Σ over `over` of a · b, in `dtype`."""

    var: str
    over: tuple[str, ...]
    a: Operand
    b: Operand
    axes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Store:
    """Write a tile to memory, converted to the access's dtype."""

    access: Access
    value: Operand
    axes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Carry:
    """An accumulator of a loop: starts as the identity of `op`, is `previous` inside, becomes `next`.

    After the loop it is called `final`.
    """

    op: str
    previous: str
    next: str
    final: str
    axes: tuple[str, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Loop:
    """Run `body` for each tile of the axes; with `chunk`, only over that chunk of the axis.

    Chunk c of C covers ceil(extent / C) positions from c · ceil(extent / C) on, whatever the tile: kernels
    with different tiles mean the same chunks.

    A tile on which some guard is false everywhere is skipped: it would leave every carry as it is.
    """

    axes: tuple[str, ...]
    chunk: str | None
    guards: tuple[Term, ...]
    carries: tuple[Carry, ...]
    body: tuple[Statement, ...]


Statement: TypeAlias = "Load | Position | Symbol | Map | Reduce | Dot | Store | Loop"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A tile program.  `axes` holds the extent of every axis it uses, in memory order.

    The grid has one cell per tile of each `grid` axis; `resident` axes are held whole.
    """

    axes: Mapping[str, Extent]
    grid: tuple[str, ...]
    resident: tuple[str, ...]
    tiles: Mapping[str, int]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a kernel becomes code: a template of the backend and its numbers, sorted by name."""

    template: str
    options: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Temporary:
    """A buffer between kernels: its shape and the type it is stored in."""

    shape: tuple[Extent, ...]
    dtype: DType


@dataclass(frozen=True, slots=True)
class Step:
    """What one launch runs: a kernel under its schedule, others `beside` it, and what comes `then`.

    Kernels of a step call a buffer by the same name.  Those beside the first run under its schedule, and
    none touches what another of them writes, so that they can run in any order, or at once.  The steps
    that come then, which have none themselves, each wait for everything before them.
    """

    kernel: Kernel
    schedule: Schedule
    beside: tuple[Kernel, ...] = ()
    then: tuple[Step, ...] = ()

    @property
    def turns(self) -> tuple[Step, ...]:
        """What waits for each other, as steps of their own."""
        return (replace(self, then=()), *self.then) if self.then else (self,)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All of them."""
        return (self.kernel, *self.beside, *(k for step in self.then for k in step.kernels))

    @property
    def buffers(self) -> tuple[str, ...]:
        """The buffers that they touch, in the order of first mention: the order a launch takes them in."""
        return tuple(dict.fromkeys(b for k in self.kernels for b in buffers(k)))

    @property
    def written(self) -> frozenset[str]:
        """The buffers that they write."""
        return frozenset().union(*(written(k) for k in self.kernels))

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims of one kernel after those of another: the order a launch takes their values in."""
        return tuple(n for k in self.kernels for n in dims(k))


@dataclass(frozen=True, slots=True)
class KernelGraph:
    """The launches of a region, producers first, and the temporaries (`T0`, `T1` …) between them."""

    steps: tuple[Step, ...]
    temporaries: Mapping[str, Temporary]


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement, loops before their bodies."""
    for statement in body:
        yield statement
        if isinstance(statement, Loop):
            yield from walk(statement.body)


def accesses(kernel: Kernel) -> Iterator[tuple[Access, bool]]:
    """Every access with whether it writes; behind a store, what its place is looked up with."""
    return _accesses(kernel.body)


def _accesses(body: tuple[Statement, ...]) -> Iterator[tuple[Access, bool]]:
    for statement in walk(body):
        if isinstance(statement, Load):
            yield statement.access, False
        elif isinstance(statement, Store):
            yield statement.access, True
            yield from ((look, False) for look in statement.access.looks())


def buffers(kernel: Kernel) -> tuple[str, ...]:
    """The buffers a kernel touches, in the order of first mention: the order it takes them in."""
    return _buffers(kernel.body)[0]


def written(kernel: Kernel) -> frozenset[str]:
    """The buffers a kernel writes."""
    return _buffers(kernel.body)[1]


@Memo
def _buffers(body: tuple[Statement, ...]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The buffers that are touched, and those of them that are written."""
    found = list(_accesses(body))
    return tuple(dict.fromkeys(a.buffer for a, _ in found)), frozenset(a.buffer for a, w in found if w)


def dims(kernel: Kernel) -> tuple[str, ...]:
    """The names of every dim a kernel mentions, sorted: the order in which it takes their values."""
    found = {n for e in kernel.axes.values() for n in _names(e)}
    for access, _ in accesses(kernel):
        found |= {n for e in access.shape for n in _names(e)}
        found |= {n for i in access.index for n in i.dims()}
    for statement in walk(kernel.body):
        if isinstance(statement, Symbol):
            found.add(statement.name)
        elif isinstance(statement, Loop):
            found |= {n for g in statement.guards for n in _term_names(g)}
    return tuple(sorted(found))


def _names(extent: Extent) -> frozenset[str]:
    return extent.names() if isinstance(extent, Dim) else frozenset()


def _term_names(term: Term) -> Iterator[str]:
    if isinstance(term, In) and term.name.startswith("$"):
        yield term.name[1:]
    for child in children(term):
        yield from _term_names(child)


def are_apart(one: Kernel, other: Kernel) -> bool:
    """Whether neither of two kernels touches what the other writes."""
    return written(one).isdisjoint(buffers(other)) and written(other).isdisjoint(buffers(one))
