"""Values of a plan: expressions over axes, interned, so that equal expressions are one number.

The e-graph offers many nodes a class; once one is chosen for each, the terms that remain form a DAG whose
leaves are reads of buffers.  A reduction is an accumulator over a domain; its value is seen after the
loop (`Final`), at the current step (`Running`) or before it (`Previous`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from lumi.dtype import BOOL, DTYPES, I32, DType
from lumi.field.axis import LIMIT

AXES = (1 << LIMIT) - 1
"""The axes of a mask; the bits above are loop times."""

TRUTH = frozenset({"lt", "le", "eq", "and", "or", "not"})
"""Operators that yield bool."""


class Read(NamedTuple):
    """The region's access `name`, with the value of its data index if it has one."""

    name: str
    data: int | None


class Stored(NamedTuple):
    """A class that a kernel stored; `axes` name the dimensions of the buffer in the reader's terms."""

    stored: int
    axes: tuple[str, ...]


class Dimension(NamedTuple):
    """The runtime value of a dim."""

    dim: str


class Number(NamedTuple):
    """A constant."""

    value: float


class Position(NamedTuple):
    """The position along the axis whose bit this is."""

    axis: int


class Apply(NamedTuple):
    """An elementwise operator of values."""

    op: str
    args: tuple[int, ...]


class Final(NamedTuple):
    """An accumulator after its loop."""

    accumulator: int


class Running(NamedTuple):
    """An accumulator after the current step of its loop."""

    accumulator: int


class Previous(NamedTuple):
    """An accumulator before the current step of its loop."""

    accumulator: int


Value: TypeAlias = "Read | Stored | Dimension | Number | Position | Apply | Final | Running | Previous"


class Domain(NamedTuple):
    """A set of axes, or with `chunk` the part of one axis that belongs to that chunk; both are masks.

    Where a guard is false the body is the identity of the reduction, so such tiles may be skipped.
    """

    axes: int
    chunk: int
    guards: tuple[int, ...]

    @property
    def base(self) -> tuple[int, int]:
        """The domain without its guards."""
        return self.axes, self.chunk


class Accumulator(NamedTuple):
    """acc' = (rho · acc) op tau op reduce(step): rho rescales what was gathered, tau corrects it.

    `domain` is the number of its domain.  rho multiplies a sum and is added to a maximum; None stands for
    "as it is".
    """

    op: str
    domain: int
    step: int
    rho: int | None
    tau: int | None

    @property
    def parts(self) -> tuple[int, ...]:
        """The values it is made of."""
        return tuple(p for p in (self.step, self.rho, self.tau) if p is not None)


class Dag:
    """The table of values.  Facts about value `v` stand at index v of the lists.

    `free`: its axes, with the loop times of running accumulators.  `accumulators`: all that it is made
    with.  `reads`: the stored classes it needs.  `dtype`: None for a constant, which has no type of its own.
    `domains` and `table` hold the interned domains and accumulators; `around[a]` are the axes of
    accumulator a outside its loop.
    """

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.free: list[int] = []
        self.accumulators: list[frozenset[int]] = []
        self.reads: list[frozenset[int]] = []
        self.dtype: list[DType | None] = []
        self.domains: list[Domain] = []
        self.table: list[Accumulator] = []
        self.around: list[int] = []
        self._numbers: dict[tuple[object, ...], int] = {}

    def read(self, name: str, axes: int, dtype: DType, data: int | None, after: int | None) -> int:
        """A read of a buffer of the region; `after` is the class whose store it must follow."""
        free, parts = axes, () if data is None else (data,)
        reads = frozenset() if after is None else frozenset({after})
        for part in parts:
            free |= self.free[part]
            reads |= self.reads[part]
        return self._intern(Read(name, data), free, self._accumulators(parts), reads, dtype)

    def stored(self, source: int, axes: tuple[str, ...], mask: int, dtype: DType) -> int:
        """A read of what a kernel stored."""
        return self._intern(Stored(source, axes), mask, frozenset(), frozenset({source}), dtype)

    def dimension(self, name: str) -> int:
        """The runtime value of a dim."""
        return self._intern(Dimension(name), 0, frozenset(), frozenset(), I32)

    def number(self, value: float) -> int:
        """A constant; every bit counts, so that -0.0 is not 0.0."""
        return self._intern(Number(value), 0, frozenset(), frozenset(), None, key=value.hex())

    def position(self, axis: int) -> int:
        """The position along an axis."""
        return self._intern(Position(axis), axis, frozenset(), frozenset(), I32)

    def apply(self, op: str, args: tuple[int, ...]) -> int:
        """An elementwise operator."""
        number = self._numbers.get((Apply, op, args))
        if number is not None:
            return number
        free = 0
        for a in args:
            free |= self.free[a]
        dtype = _result(op, [self.dtype[a] for a in args])
        return self._intern(Apply(op, args), free, self._accumulators(args), self._reads(args), dtype)

    def domain(self, made: Domain) -> int:
        """The number of a domain."""
        number = self._numbers.get((Domain, made))
        if number is None:
            number = self._numbers[(Domain, made)] = len(self.domains)
            self.domains.append(made)
        return number

    def accumulator(self, made: Accumulator) -> int:
        """The number of an accumulator."""
        number = self._numbers.get((Accumulator, made))
        if number is None:
            number = self._numbers[(Accumulator, made)] = len(self.table)
            self.table.append(made)
            free = 0
            for part in made.parts:
                free |= self.free[part]
            domain = self.domains[made.domain]
            times = domain.axes | domain.axes << LIMIT
            self.around.append((free & ~times) | domain.chunk)
        return number

    def see(self, kind: type[Final] | type[Running] | type[Previous], accumulator: int) -> int:
        """An accumulator after, during or before a step of its loop."""
        number = self._numbers.get((kind, accumulator))
        if number is not None:
            return number
        made = self.table[accumulator]
        domain = self.domains[made.domain]
        free = self.around[accumulator]
        if kind is not Final:
            free |= domain.axes << LIMIT
        parts = made.parts
        inside = self._accumulators(parts) | {accumulator}
        dtype = next((d for p in made.parts if (d := self.dtype[p]) is not None), None)
        return self._intern(kind(accumulator), free, inside, self._reads(parts), dtype)

    def children(self, number: int) -> tuple[int, ...]:
        """The values directly inside; those of an accumulator stand for the accumulator."""
        match self.values[number]:
            case Read(_, data):
                return () if data is None else (data,)
            case Apply(_, args):
                return args
            case Final(acc) | Running(acc) | Previous(acc):
                return self.table[acc].parts
            case _:
                return ()

    def walk(self, roots: Iterable[int]) -> Iterator[int]:
        """Every value under the roots, each once, children before parents."""
        seen: set[int] = set()
        for root in roots:
            stack = [(root, False)]
            while stack:
                number, ready = stack.pop()
                if ready:
                    yield number
                elif number not in seen:
                    seen.add(number)
                    stack.append((number, True))
                    stack.extend((c, False) for c in reversed(self.children(number)) if c not in seen)

    def _accumulators(self, parts: Iterable[int]) -> frozenset[int]:
        return frozenset().union(*(self.accumulators[p] for p in parts))

    def _reads(self, parts: Iterable[int]) -> frozenset[int]:
        return frozenset().union(*(self.reads[p] for p in parts))

    def _intern(
        self,
        value: Value,
        free: int,
        accumulators: frozenset[int],
        reads: frozenset[int],
        dtype: DType | None,
        key: object = None,
    ) -> int:
        full = (type(value), key) if key is not None else (type(value), *value)
        number = self._numbers.get(full)
        if number is None:
            number = self._numbers[full] = len(self.values)
            self.values.append(value)
            self.free.append(free)
            self.accumulators.append(accumulators)
            self.reads.append(reads)
            self.dtype.append(dtype)
        return number


def _result(op: str, dtypes: list[DType | None]) -> DType | None:
    """The type an operator yields: constants take the type of what they meet."""
    if op in TRUTH:
        return BOOL
    if "." in op:
        return _named(op)
    operands = dtypes[1:] if op == "sel" else dtypes
    return next((d for d in operands if d is not None), None)


@functools.cache
def _named(op: str) -> DType:
    """The dtype in `cast.f32` or `bits.i8`."""
    return DTYPES[op.split(".", 1)[1]]


def bits(mask: int) -> Iterator[int]:
    """The single bits of a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low
        mask ^= low
