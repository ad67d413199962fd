"""Dims and index maps in the syntax that C and CUDA share.

The code it is put into has `clamp`, `floor_div` and `floor_mod`, and the dims as variables `d_<name>`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lumi import dim
from lumi.dim import Extent, Quotient
from lumi.dtype import I32
from lumi.field.access import Access
from lumi.field.index import Data, Index, Look, Part, Quot, Rem, Sym, hides
from lumi.memo import Memo

Coordinate: TypeAlias = "Callable[[str], tuple[str, int]]"
"""The C variable of an axis and an offset from it."""

DataText: TypeAlias = "Callable[[int], str]"
"""C for a data index by its number."""


@Memo
def strides(access: Access) -> tuple[Extent, ...]:
    """The distance in elements between neighbours along each dimension."""
    return tuple(dim.product(access.shape[k + 1 :]) for k in range(len(access.shape)))


def step(access: Access, axis: str) -> Extent | None:
    """How far the element moves with the position along `axis`; None when not by a constant."""
    known = _steps(access)
    if axis not in known:
        known[axis] = _step(access, axis)
    return known[axis]


@Memo
def _steps(access: Access) -> dict[str, Extent | None]:
    """What is known of an access by its axes."""
    return {}


def _step(access: Access, axis: str) -> Extent | None:
    total: Extent = 0
    for index, stride in zip(access.index, strides(access), strict=True):
        if axis not in index.axes():
            continue
        if access.clamp or index.data():
            return None
        for part, coefficient in index.terms:
            if part == axis:
                total = total + stride * coefficient
            elif hides(part, (axis,)):
                return None
    return total


def is_row(access: Access, axis: str) -> bool:
    """Whether neighbours along `axis` are neighbours in memory wherever no index leaves its dimension."""
    *outer, last = access.index
    once = sum(part == axis or hides(part, (axis,)) for part, _ in last.terms)
    return once == 1 and (axis, 1) in last.terms and not any(axis in index.axes() for index in outer)


def element(access: Access, at: Coordinate, data: DataText, buffers: Mapping[str, str]) -> str:
    """C for the number of the element, counted from the start of the buffer.

    `buffers` names the pointers to the buffers in which a place is looked up.
    """
    return str(_element(access, len(access.index), _Terms(at, data, buffers)))


def row(access: Access, at: Coordinate, data: DataText) -> tuple[str, str, str]:
    """C for the element that begins a row, the place in the row before it is clamped, and the row's size."""
    terms = _Terms(at, data, {})
    place = _Linear(terms)
    place.add(access.index[-1], 1)
    return str(_element(access, len(access.index) - 1, terms)), str(place), extent(access.shape[-1])


@dataclass(frozen=True, slots=True)
class _Terms:
    """C for what an index is made of."""

    at: Coordinate
    data: DataText
    buffers: Mapping[str, str]

    def looked(self, look: Look) -> str:
        """What lies in a buffer, clamped."""
        access = Access(look.buffer, look.index, look.shape, I32)
        place = f"{self.buffers[look.buffer]}[{_element(access, len(look.index), self)}]"
        return f"clamp({place}, {extent(look.size)})"


def _element(access: Access, count: int, terms: _Terms) -> _Linear:
    """The first `count` indices, each times the distance between its neighbours."""
    linear = _Linear(terms)
    dimensions = zip(access.index, access.shape, strides(access), strict=True)
    for index, size, stride in itertools.islice(dimensions, count):
        if access.clamp or index.data():
            place = _Linear(terms)
            place.add(index, 1)
            linear.add_text(f"clamp({place}, {extent(size)})", stride)
        else:
            linear.add(index, stride)
    return linear


@dataclass(slots=True)
class _Linear:
    """A sum of C terms, each times a dim expression, plus a dim expression."""

    known: _Terms
    terms: dict[str, Extent]
    constant: Extent

    def __init__(self, known: _Terms) -> None:
        self.known, self.terms, self.constant = known, {}, 0

    def add(self, index: Index, factor: Extent) -> None:
        self.constant = self.constant + factor * index.offset
        for part, coefficient in index.terms:
            self._add_part(part, factor * coefficient)

    def _add_part(self, part: Part, factor: Extent) -> None:
        match part:
            case str():
                variable, offset = self.known.at(part)
                self.constant = self.constant + factor * offset
                self.add_text(variable, factor)
            case Sym(extent):
                self.constant = self.constant + factor * extent
            case Data(number):
                self.add_text(f"(int64_t){self.known.data(number)}", factor)
            case Quot(index, divisor):
                self.add_text(f"floor_div({self._inner(index)}, {divisor})", factor)
            case Rem(index, divisor):
                self.add_text(f"floor_mod({self._inner(index)}, {divisor})", factor)
            case Look():
                self.add_text(self.known.looked(part), factor)

    def _inner(self, index: Index) -> str:
        inner = _Linear(self.known)
        inner.add(index, 1)
        return str(inner)

    def add_text(self, text: str, factor: Extent) -> None:
        self.terms[text] = self.terms.get(text, 0) + factor

    def __str__(self) -> str:
        parts = []
        for text, factor in self.terms.items():
            if factor == 1:
                parts.append(text)
            elif factor != 0:
                parts.append(f"{text} * {extent(factor)}")
        if self.constant != 0 or not parts:
            parts.append(extent(self.constant))
        return " + ".join(parts)


def extent(value: Extent) -> str:
    """C for a dim expression; the dims are `d_<name>`, all int64_t."""
    if isinstance(value, int):
        return str(value)
    parts = []
    for monomial, coefficient in value.terms:
        factors = [_atom(a) for a in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient))
        parts.append(" * ".join(factors))
    return parts[0] if len(parts) == 1 and "*" not in parts[0] else f"({' + '.join(parts)})"


def _atom(atom: str | Quotient) -> str:
    return dim_name(atom) if isinstance(atom, str) else f"floor_div({extent(atom.value)}, {atom.divisor})"


def dim_name(name: str) -> str:
    """The C variable of a dim."""
    return f"d_{identifier(name)}"


def identifier(name: str) -> str:
    """A name as part of a C identifier; different names stay different."""
    return "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in name)
