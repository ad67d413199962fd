"""Seeded random contents for the buffers of a region, and how far right results may be from each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from lumi import dim
from lumi.dtype import BF16, BOOL, DTYPES, F8E4M3, F8E5M2, F16, F64, DType, from_memory, to_memory
from lumi.field.access import Access
from lumi.field.region import Region
from lumi.field.term import Red, Sel, Term, Un, children
from lumi.field.traverse import postorder
from lumi.llir.arithmetic import Array

BLOCK = 1_000_003
"""Values drawn for a large buffer; a prime, so that their repetition lines up with no dimension."""

SLACK = 64.0
"""Roundings in a row that a right result may differ by, beside those of its longest reduction."""

SPREAD = 4.0
"""How much further than the region's own roundings take it a right result may be off."""


def samples(region: Region, dims: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """Raw memory for every buffer of the region by canonical name (`B0` …).

    Floats are normal, small integers cover their type, others are legal indices of whatever the region
    gathers from.
    """
    generator = np.random.default_rng(seed)
    found = {a.buffer: a for a in _accesses(region)}
    limit = _index_limit(region, dims)
    return {
        name: _sample(found[name].dtype, _shape(found[name], dims), limit, generator)
        for name in (f"B{k}" for k in range(len(region.buffers)))
        if name in found
    }


def _accesses(region: Region) -> Iterator[Access]:
    yield from region.accesses.values()
    for store in region.stores:
        yield store.access


def _shape(access: Access, dims: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(dim.value(e, dims) for e in access.shape)


def _index_limit(region: Region, dims: Mapping[str, int]) -> int | None:
    """The least size of a dimension that data index; None when nothing is gathered."""
    sizes = [
        dim.value(size, dims)
        for access in region.accesses.values()
        for index, size in zip(access.index, access.shape, strict=True)
        if index.data()
    ]
    return min(sizes, default=None)


def _sample(dtype: DType, shape: tuple[int, ...], limit: int | None, generator: np.random.Generator) -> Array:
    count = math.prod(shape)
    return (
        np.resize(_block(dtype, min(count, BLOCK), limit, generator), shape)
        if count
        else np.empty(shape, dtype.storage)
    )


def _block(dtype: DType, count: int, limit: int | None, generator: np.random.Generator) -> Array:
    if dtype == BOOL:
        return generator.integers(0, 2, count).astype(dtype.storage)
    if dtype.is_float:
        values = generator.standard_normal(count)
        return to_memory(values, dtype)
    low, high = dtype.bounds if dtype.size == 1 else (-9, 9)
    if limit is not None and dtype.size > 1:
        low, high = 0, max(limit - 1, 0)
    return generator.integers(low, high, count, endpoint=True).astype(dtype.storage)


def tolerance(region: Region, dims: Mapping[str, int]) -> float:
    """How far a right float result may be off, in units of the largest result.

    Each rounding errs by half a spacing of the coarsest type in use; a sum of n terms in another order by
    about √n of them.
    """
    length, coarsest = 1, 2.0**-53
    extents = {a.name: dim.value(a.extent, dims) for a in region.axes}
    for term in _terms(region):
        if isinstance(term, Red):
            length = max(length, math.prod(extents[a] for a in term.axes))
        if isinstance(term, Un) and term.op.startswith("cast."):
            coarsest = max(coarsest, _spacing(DTYPES[term.op[5:]]))
    for access in _accesses(region):
        coarsest = max(coarsest, _spacing(access.dtype))
    return coarsest * (SLACK + math.sqrt(length))


def drift(narrow: Array, want: Array, dtype: DType) -> float:
    """How far a right float result may be off by what the region itself makes of a rounding.

    In units of the largest result: `SPREAD` times the error of `narrow`, the raw results with every
    operation rounded to its dtype, against `want`.  A sine amplifies the rounding of a large angle, for
    instance, which no count of operations foresees.
    """
    if not dtype.is_float:
        return 0.0
    got = wide(narrow, dtype).reshape(want.shape)
    finite = np.isfinite(want) & np.isfinite(got)
    if not finite.any():
        return 0.0
    largest = float(np.abs(want[finite]).max())
    return SPREAD * float(np.abs(got[finite] - want[finite]).max()) / largest if largest else 0.0


def cut_to_tf32(values: Array) -> Array:
    """f32 with the 10 upper bits of their mantissas, which devices make by cutting off or by rounding.

    Cutting off errs most: always to one side, by a whole spacing at worst.
    """
    raw = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return (raw & np.uint32(0xFFFFE000)).view(np.float32)


def _spacing(dtype: DType) -> float:
    """The relative rounding error of a float type; none but narrow ones are coarser than f32."""
    if not dtype.is_float:
        return 0.0
    return {F8E4M3: 2.0**-5, F8E5M2: 2.0**-4, BF16: 2.0**-9, F16: 2.0**-12, F64: 2.0**-53}.get(
        dtype, 2.0**-24
    )


def _terms(region: Region) -> Iterator[Term]:
    seen: set[int] = set()
    todo = [s.term for s in region.stores]
    while todo:
        term = todo.pop()
        if id(term) not in seen:
            seen.add(id(term))
            yield term
            todo.extend(children(term))


def depends_on_rounding(term: Term) -> bool:
    """Whether an integer result may differ by float rounding: it compares or converts floats."""
    return any(
        isinstance(t, Sel) or (isinstance(t, Un) and t.op.startswith("cast.")) for t in postorder([term])
    )


def rounds_to_tf32(region: Region) -> bool:
    """Whether a region rounds a value to TF32."""
    return any(isinstance(t, Un) and t.op == "tf32" for t in _terms(region))


def wide(raw: Array, dtype: DType) -> Array:
    """A copy that the reference may write: floats in f64."""
    if not dtype.is_float:
        return raw.copy()
    return from_memory(raw, dtype).astype(np.float64)


def mismatch(raw: Array, want: Array, dtype: DType, limit: float, rounded: bool) -> str:
    """How results differ from the reference by more than rounding; empty when they do not.

    Floats may differ by `limit` times the largest finite result; infinities and NaN must be where they
    are in the reference.  With `rounded`, one integer in a hundred may differ.
    """
    if not dtype.is_float:
        wrong = int(np.count_nonzero(raw != want))
        allowed = raw.size // 100 if rounded else 0
        return f"{wrong} of {raw.size} integers differ" if wrong > allowed else ""
    got = wide(raw, dtype)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return "infinities or NaN are not where they should be"
    if not finite.any():
        return ""
    largest = float(np.abs(want[finite]).max())
    error = float(np.abs(got[finite] - want[finite]).max())
    return f"off by {error:.3g} where {limit * largest:.3g} is allowed" if error > limit * largest else ""
