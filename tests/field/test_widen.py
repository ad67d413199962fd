"""A region in f64 gives what the reference gives."""

from __future__ import annotations

import numpy as np
import pytest

from lumi import paths
from lumi.dtype import F64
from lumi.errors import Source
from lumi.field.evaluate import evaluate
from lumi.field.region import Region
from lumi.field.term import Red, Un
from lumi.field.traverse import postorder
from lumi.field.widen import cut_factors, dtypes, widened
from lumi.interpreter.module import load
from lumi.interpreter.packing import packings
from lumi.interpreter.trace import trace
from lumi.lower.lower import lower
from lumi.search.samples import cut_to_tf32, samples, wide
from tests.search.test_model_plans import CASES, regions
from tests.workloads import WORKLOADS

PACKED = (
    ("*", "q4_k"),
    ("*v_proj*", "q6_k"),
    ("*o_proj*", "q5_k"),
    ("*down_proj*", "q5_0"),
    ("lm_head*", "q4_0"),
)
LLAMA = {"layers": 1, "vocab": 256, "width": 256, "heads": 8, "kv-heads": 2, "hidden": 256, "context": 32}


def llama(packed: bool) -> list[Region]:
    """The regions of a small Llama whose matrices are halves, or packed in blocks of all formats."""
    path = paths.data("models") / "llama.lumi"
    module = load(Source(path.name, path.read_text()))
    kinds = packings(trace(module, config=LLAMA), PACKED) if packed else {}
    return lower(trace(module, config=LLAMA, bind={"seq": 1}, packing=kinds))


ROUNDING = """
(defmodel rounding [(x f32 [5 32]) (w f32 [7 32])]
  "A product whose factors are rounded, one of them infinite."
  (einsum (where (less-than x 2) x inf) [s k] w [n k] -> [s n] :precision tf32))
"""

REGIONS = [(f"{n} {r.scope}", r, CASES[n].dims) for n in CASES for r in regions(n)]
REGIONS += [(f"llama {r.scope}", r, {"past": 5}) for r in llama(packed=False)]
REGIONS += [(f"packed {r.scope}", r, {"past": 5}) for r in llama(packed=True)]
REGIONS += [("rounding", r, {}) for r in lower(trace(load(Source("rounding", ROUNDING))))]
REGIONS += [(n, w.region(), w.sizes(w.small)) for n, w in WORKLOADS.items()]
NAMES = [name for name, _, _ in REGIONS]
EACH = pytest.mark.parametrize(("region", "dims"), [(r, d) for _, r, d in REGIONS], ids=NAMES)


def held(region: Region, dims: dict[str, int]) -> dict[str, np.ndarray]:
    """Made-up contents of buffers, what is stored in f64."""
    types = {s.access.buffer: s.access.dtype for s in region.stores}
    return {n: wide(a, types[n]) if n in types else a for n, a in samples(region, dims).items()}


@EACH
def test_region_in_f64_is_the_reference(region: Region, dims: dict[str, int]) -> None:
    want, got = held(region, dims), held(region, dims)
    evaluate(region, want, dims)
    evaluate(widened(region), got, dims, wide=False)
    for name in {s.access.buffer for s in region.stores}:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-11, atol=1e-13, err_msg=name)


@EACH
def test_floats_of_a_region_in_f64_are_read_rounded_or_f64(region: Region, dims: dict[str, int]) -> None:
    made = widened(region)
    types = dtypes(made)
    for term in postorder(s.term for s in made.stores):
        dtype = types[id(term)]
        if isinstance(term, Red) or (isinstance(term, Un) and "." not in term.op):
            assert dtype is None or not dtype.is_float or dtype == F64
    assert all(s.access.dtype == F64 for s in made.stores if s.access.dtype.is_float)


@EACH
def test_factors_are_cut_as_the_reference_cuts_them(region: Region, dims: dict[str, int]) -> None:
    want, got = (samples(region, dims) for _ in range(2))
    evaluate(region, want, dims, wide=False, factors=cut_to_tf32)
    evaluate(cut_factors(region), got, dims, wide=False)
    for store in region.stores:
        name, dtype = store.access.buffer, store.access.dtype
        a, b = wide(got[name], dtype), wide(want[name], dtype)
        finite = np.isfinite(b)
        scale = np.abs(b[finite]).max(initial=1e-30)
        assert np.abs(a[finite] - b[finite]).max(initial=0.0) <= 1e-4 * scale
