"""How far right results may be from the reference, and how far results are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from lumi import dim
from lumi.dtype import BF16, DTYPES, F8E4M3, F8E5M2, F16, F64, DType
from lumi.field.access import Access
from lumi.field.region import Region
from lumi.field.term import Red, Sel, Term, Un
from lumi.field.traverse import postorder
from lumi.llir.arithmetic import Array
from lumi.search.samples import accesses, wide

SLACK = 64.0
"""Roundings in a row that a right result may differ by, beside those of its longest reduction."""

SPREAD = 4.0
"""How much further than the region's own roundings take it a right result may be off."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How the `count` elements of a buffer differ from the reference.

    Of floats: the largest `error` where the reference is finite, its `largest` magnitude there, and how many
    are `astray`: infinite or NaN where the reference is not, or the other way round.  Of integers: how many
    are astray, which is to say another number.
    """

    count: int
    error: float
    largest: float
    astray: int

    def wrong(self, dtype: DType, limit: float, rounded: bool) -> str:
        """How results differ by more than rounding; empty when they do not.

        Floats may differ by `limit` times the largest finite result; infinities and NaN must be where they
        are in the reference.  With `rounded`, one integer in a hundred may differ.
        """
        if not dtype.is_float:
            allowed = self.count // 100 if rounded else 0
            return f"{self.astray} of {self.count} integers differ" if self.astray > allowed else ""
        if self.astray:
            return "infinities or NaN are not where they should be"
        most = limit * self.largest
        return f"off by {self.error:.3g} where {most:.3g} is allowed" if self.error > most else ""

    @property
    def drift(self) -> float:
        """How far a right float result may be off, if these are results in the region's own types.

        In units of the largest result: `SPREAD` times their error.  A sine amplifies the rounding of a large
        angle, for instance, which no count of operations foresees.
        """
        return SPREAD * self.error / self.largest if self.largest else 0.0


def difference(raw: Array, want: Array, dtype: DType) -> Difference:
    """How results in memory differ from the reference's, whose floats are f64."""
    if not dtype.is_float:
        return Difference(raw.size, 0.0, 0.0, int(np.count_nonzero(raw != want)))
    got = wide(raw, dtype).reshape(want.shape)
    finite = np.isfinite(want)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    astray = np.count_nonzero(~finite & ~same) + np.count_nonzero(finite & ~np.isfinite(got))
    both = finite & np.isfinite(got)
    error = float(np.abs(got[both] - want[both]).max(initial=0.0))
    largest = float(np.abs(want[finite]).max(initial=0.0))
    return Difference(raw.size, error, largest, int(astray))


def tolerance(region: Region, dims: Mapping[str, int]) -> float:
    """How far a right float result may be off, in units of the largest result.

    Each rounding errs by half a spacing of the coarsest type in use; a sum of n terms in another order by
    about √n of them.
    """
    return _tolerance(region, dims, accesses(region))


def tolerance_of_reference(region: Region, dims: Mapping[str, int]) -> float:
    """The same of a region in f64, in which only casts round, and what is read is exact."""
    return _tolerance(region, dims, (s.access for s in region.stores))


def _tolerance(region: Region, dims: Mapping[str, int], rounding: Iterator[Access]) -> float:
    length, coarsest = 1, 2.0**-53
    extents = {a.name: dim.value(a.extent, dims) for a in region.axes}
    for term in postorder(s.term for s in region.stores):
        if isinstance(term, Red):
            length = max(length, math.prod(extents[a] for a in term.axes))
        if isinstance(term, Un) and term.op.startswith("cast."):
            coarsest = max(coarsest, _spacing(DTYPES[term.op[5:]]))
    for access in rounding:
        coarsest = max(coarsest, _spacing(access.dtype))
    return coarsest * (SLACK + math.sqrt(length))


def _spacing(dtype: DType) -> float:
    """The relative rounding error of a float type; none but narrow ones are coarser than f32."""
    if not dtype.is_float:
        return 0.0
    return {F8E4M3: 2.0**-5, F8E5M2: 2.0**-4, BF16: 2.0**-9, F16: 2.0**-12, F64: 2.0**-53}.get(
        dtype, 2.0**-24
    )


def depends_on_rounding(term: Term) -> bool:
    """Whether an integer result may differ by float rounding: it compares or converts floats."""
    return any(
        isinstance(t, Sel) or (isinstance(t, Un) and t.op.startswith("cast.")) for t in postorder([term])
    )


def rounds_to_tf32(region: Region) -> bool:
    """Whether a region rounds a value to TF32."""
    return any(isinstance(t, Un) and t.op == "tf32" for t in postorder(s.term for s in region.stores))
