"""A region as its reference computes it: every float in f64, halves rounded only where the region casts.

What `evaluate` does with `wide` becomes a region of its own, so that whatever computes regions can compute
the reference too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from lumi.dtype import BOOL, DTYPES, F32, F64, I32, DType, from_memory, to_memory
from lumi.field.access import Access
from lumi.field.operators import COMPARISONS
from lumi.field.region import Region, Store
from lumi.field.term import Bin, Const, Gat, In, Pos, Red, Sel, Term, Un
from lumi.field.traverse import postorder

MANTISSA = -8192
"""The bits of a f32, as an i32, that TF32 has."""


def widened(region: Region) -> Region:
    """The region in f64: buffers that it stores hold floats in f64, others are as they are.

    It gives what `evaluate(region, …, wide=True)` gives.
    """
    stored = frozenset(s.access.buffer for s in region.stores if s.access.dtype.is_float)
    accesses = {n: _wide(a) if a.buffer in stored else a for n, a in region.accesses.items()}
    types = dtypes(region)
    terms = _Widening(types, {n for n, a in accesses.items() if a is not region.accesses[n]})
    for term in postorder(s.term for s in region.stores):
        terms.made[id(term)] = terms.widen(term)
    stores = tuple(Store(terms.stored(s), _wide(s.access)) for s in region.stores)
    return replace(region, accesses=accesses, stores=stores, key=f"{region.key}\nin f64")


def cut_factors(region: Region) -> Region:
    """The region whose sums of products have f32 factors with the 10 upper bits of their mantissas, as TF32.

    Cut off, which errs most: always to one side, by a whole spacing at worst.  That stands for every rounding
    to TF32, those of the region itself too.
    """
    types, made = dtypes(region), dict[int, Term]()

    def factor(term: Term) -> Term:
        if types[id(term)] != F32:
            return made[id(term)]
        return Un("bits.f32", Bin("bitand", Un("bits.i32", made[id(term)]), Const(MANTISSA)))

    for term in postorder(s.term for s in region.stores):
        match term:
            case Red("sum", axes, Bin("mul", a, b)):
                made[id(term)] = Red("sum", axes, Bin("mul", factor(a), factor(b)))
            case Un("tf32", a):
                made[id(term)] = made[id(a)]
            case _:
                made[id(term)] = rebuilt(term, lambda inner: made[id(inner)])
    stores = tuple(Store(made[id(s.term)], s.access) for s in region.stores)
    return replace(region, stores=stores, key=f"{region.key}\nin tf32")


def rebuilt(term: Term, made: Callable[[Term], Term]) -> Term:
    """A term with other terms inside."""
    match term:
        case Gat(name, axes, dtype, index):
            return Gat(name, axes, dtype, made(index))
        case Un(op, a):
            return Un(op, made(a))
        case Bin(op, a, b):
            return Bin(op, made(a), made(b))
        case Sel(c, a, b):
            return Sel(made(c), made(a), made(b))
        case Red(op, axes, body):
            return Red(op, axes, made(body))
        case _:
            return term


def dtypes(region: Region) -> dict[int, DType | None]:
    """The type of each term by its identity; None for what is made of numbers alone."""
    found: dict[int, DType | None] = {}
    for term in postorder(s.term for s in region.stores):
        found[id(term)] = _dtype(term, found)
    return found


def _dtype(term: Term, known: Mapping[int, DType | None]) -> DType | None:
    match term:
        case In(_, _, dtype) | Gat(_, _, dtype, _):
            return dtype
        case Const():
            return None
        case Pos():
            return I32
        case Un(op, a):
            return DTYPES[op[5:]] if op.startswith(("cast.", "bits.")) else known[id(a)]
        case Bin(op, a, b):
            return BOOL if op in COMPARISONS else known[id(a)] or known[id(b)]
        case Sel(_, a, b):
            return known[id(a)] or known[id(b)]
        case Red(_, _, body):
            return known[id(body)]


def _wide(access: Access) -> Access:
    return replace(access, dtype=F64) if access.dtype.is_float else access


@dataclass(slots=True)
class _Widening:
    """Terms in f64, by the identity of those that they stand for; `held` are accesses of buffers in f64."""

    types: Mapping[int, DType | None]
    held: set[str]
    made: dict[int, Term] = field(default_factory=dict)

    def widen(self, term: Term) -> Term:
        """A term whose inner terms are made."""
        match term:
            case In(name, axes, dtype):
                return self._read(In(name, axes, F64 if name in self.held else dtype), dtype)
            case Gat(name, axes, dtype, index):
                kind = F64 if name in self.held else dtype
                return self._read(Gat(name, axes, kind, self.made[id(index)]), dtype)
            case Un(op, a) if op.startswith("cast."):
                return self.cast(a, DTYPES[op[5:]])
            case Un(op, a) if op.startswith("bits."):
                return self._bits(a, DTYPES[op[5:]])
            case Bin(op, a, b):
                return Bin(op, self._operand(a, b), self._operand(b, a))
            case Sel(c, a, b):
                return Sel(self.made[id(c)], self._operand(a, b), self._operand(b, a))
            case _:
                return rebuilt(term, lambda inner: self.made[id(inner)])

    def stored(self, store: Store) -> Term:
        """What a store leaves in memory."""
        is_same = self.types[id(store.term)] == store.access.dtype
        return self.made[id(store.term)] if is_same else self.cast(store.term, store.access.dtype)

    def cast(self, term: Term, dtype: DType) -> Term:
        """A term in another type."""
        made, known = self.made[id(term)], self.types[id(term)]
        if not dtype.is_float:
            return made if known == dtype else Un(f"cast.{dtype}", made)
        if dtype.is_narrow:
            return _rounded(made, dtype)
        if known is None:
            return made
        return made if known.is_float else Un("cast.f64", made)

    def _read(self, term: In | Gat, dtype: DType) -> Term:
        return Un("cast.f64", term) if dtype.is_float and term.dtype != F64 else term

    def _bits(self, term: Term, dtype: DType) -> Term:
        made, known = self.made[id(term)], self.types[id(term)]
        raw = Un(f"cast.{known}", made) if known is not None and known.is_float and known != F64 else made
        found = Un(f"bits.{dtype}", raw)
        return Un("cast.f64", found) if dtype.is_float and dtype != F64 else found

    def _operand(self, term: Term, other: Term) -> Term:
        """An operand beside another one; a number takes the type of that."""
        made, dtype = self.made[id(term)], self.types[id(other)]
        is_number = self.types[id(term)] is None
        return _rounded(made, dtype) if is_number and dtype is not None and dtype.is_narrow else made


def _rounded(term: Term, dtype: DType) -> Term:
    """A f64, or a number, rounded to a narrow float."""
    if isinstance(term, Const):
        return Const(float(from_memory(to_memory(np.asarray(term.value), dtype), dtype)))
    return Un("cast.f64", Un(f"cast.{dtype}", term))
