"""Index maps: one affine expression over axes, symbols, data and their quotients, per buffer dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from lumi import dim
from lumi.dim import Extent


@dataclass(frozen=True, slots=True)
class Sym:
    """The runtime value of a dim expression."""

    extent: Extent

    def __str__(self) -> str:
        return str(self.extent)


@dataclass(frozen=True, slots=True)
class Data:
    """The `number`-th field that the access is given as an index (a gather)."""

    number: int

    def __str__(self) -> str:
        return f"(data {self.number})"


@dataclass(frozen=True, slots=True)
class Quot:
    """`floor(index / divisor)`."""

    index: Index
    divisor: int

    def __str__(self) -> str:
        return f"(div {self.index} {self.divisor})"


@dataclass(frozen=True, slots=True)
class Rem:
    """`index mod divisor`, never negative."""

    index: Index
    divisor: int

    def __str__(self) -> str:
        return f"(mod {self.index} {self.divisor})"


@dataclass(frozen=True, slots=True)
class Look:
    """What lies in an i32 buffer of that shape at `index`, clamped into `size` elements.

    It places what a store writes where a caller says (see `hlir.op.Update`).  The size is part of it, so
    that what it proves holds whatever lies in the buffer.
    """

    buffer: str
    index: tuple[Index, ...]
    shape: tuple[Extent, ...]
    size: Extent

    def __str__(self) -> str:
        return f"(look {self.buffer} [{' '.join(map(str, self.index))}])"


Part: TypeAlias = "str | Sym | Data | Quot | Rem | Look"
"""An axis by its name, or one of the other things an index may be made of."""


def parts_of(part: Part) -> tuple[Index, ...]:
    """The indices that a part is made of."""
    match part:
        case Quot(inner, _) | Rem(inner, _):
            return (inner,)
        case Look(_, inner, _, _):
            return inner
        case _:
            return ()


def hides(part: Part, axes: Iterable[str]) -> bool:
    """Whether a part depends on one of the axes in another way than by being it."""
    return any(not inner.axes().isdisjoint(axes) for inner in parts_of(part))


@dataclass(frozen=True, slots=True)
class Index:
    """Σ coefficient · part + offset, canonical: parts sorted, no zero coefficients.  Build with `index`."""

    terms: tuple[tuple[Part, int], ...] = ()
    offset: int = 0

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.offset + other)
        return index((*self.terms, *other.terms), self.offset + other.offset)

    def scale(self, factor: int) -> Index:
        """`factor` times this index."""
        return index([(p, c * factor) for p, c in self.terms], self.offset * factor)

    def axes(self) -> frozenset[str]:
        """Every axis it mentions."""
        found: set[str] = set()
        for part, _ in self.terms:
            if isinstance(part, str):
                found.add(part)
            for inner in parts_of(part):
                found |= inner.axes()
        return frozenset(found)

    def data(self) -> frozenset[int]:
        """The numbers of the data indices it mentions."""
        found: set[int] = set()
        for part, _ in self.terms:
            if isinstance(part, Data):
                found.add(part.number)
            for inner in parts_of(part):
                found |= inner.data()
        return frozenset(found)

    def looks(self) -> tuple[Look, ...]:
        """What it looks up in buffers."""
        found: list[Look] = []
        for part, _ in self.terms:
            if isinstance(part, Look):
                found.append(part)
            for inner in parts_of(part):
                found += inner.looks()
        return tuple(found)

    def dims(self) -> frozenset[str]:
        """Every dim whose runtime value it mentions."""
        found: set[str] = set()
        for part, _ in self.terms:
            for extent in _extents(part):
                found |= extent.names() if isinstance(extent, dim.Dim) else set()
            for inner in parts_of(part):
                found |= inner.dims()
        return frozenset(found)

    @property
    def axis(self) -> str | None:
        """The axis it is, when it is exactly one axis."""
        if len(self.terms) == 1 and self.offset == 0:
            part, coefficient = self.terms[0]
            if coefficient == 1 and isinstance(part, str):
                return part
        return None

    def rename(self, names: Mapping[str, str]) -> Index:
        """The same index with other axis names."""
        return self.map(lambda p: names.get(p, p) if isinstance(p, str) else p)

    def map(self, change: Callable[[Part], Part | Index]) -> Index:
        """Replace every axis, symbol and data part; quotients are rebuilt around what is inside."""
        total = Index((), self.offset)
        for part, coefficient in self.terms:
            new: Part | Index
            if isinstance(part, Quot):
                new = Quot(part.index.map(change), part.divisor)
            elif isinstance(part, Rem):
                new = Rem(part.index.map(change), part.divisor)
            elif isinstance(part, Look):
                new = replace(part, index=tuple(inner.map(change) for inner in part.index))
            else:
                new = change(part)
            total = total + (new if isinstance(new, Index) else index([(new, 1)])).scale(coefficient)
        return total

    def __str__(self) -> str:
        """An s-expression: `(+ i (* 2 j) 1)`."""
        parts = [str(p) if c == 1 else f"(* {c} {p})" for p, c in self.terms]
        if self.offset or not parts:
            parts.append(str(self.offset))
        return parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"


def _extents(part: Part) -> tuple[Extent, ...]:
    """The dim expressions whose runtime values a part needs."""
    match part:
        case Sym(extent):
            return (extent,)
        case Look(_, _, shape, size):
            return (*shape, size)
        case _:
            return ()


def index(terms: Iterable[tuple[Part, int]], offset: int = 0) -> Index:
    """The canonical index of these terms."""
    total: dict[Part, int] = {}
    for part, coefficient in terms:
        total[part] = total.get(part, 0) + coefficient
    return Index(tuple(sorted(((p, c) for p, c in total.items() if c), key=lambda t: repr(t[0]))), offset)


def of_axis(name: str) -> Index:
    """The index that is one axis."""
    return Index(((name, 1),))


def of_extent(extent: Extent) -> Index:
    """A dim expression as an index: its constant becomes the offset, each other term a symbol."""
    if isinstance(extent, int):
        return Index((), extent)
    offset = sum(c for m, c in extent.terms if not m)
    return index([(Sym(dim.Dim(((m, 1),))), c) for m, c in extent.terms if m], offset)
