"""Variants that are no faster than more general ones are left out: prices decide, measured where possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from lumi.compiler import Compilation, Options, compile_model
from lumi.crossings import MARGIN, merge
from lumi.errors import Source
from lumi.field.region import Region
from lumi.llir.kernel import KernelGraph
from lumi.runtime.session import Session
from lumi.search.protocol import Failure, Reason, Timing
from lumi.search.settings import Mode, Settings

TWICE = """
(defdim n :min 1 :max 4096 :hint [1 64 1024])
(defmodel twice [(x f32 [n 8])] (* x 2))
"""
LAYER = """
(defdim n :min 1 :max 4096 :hint [1 64])
(defmodel layer [(x f32 [n 64])]
  (relu (matmul (relu (matmul x (param "w" [64 96]))) (param "v" [96 64]))))
"""


@cache
def compiled(text: str, mode: Mode) -> Compilation:
    return compile_model(Source("m.lumi", text), Options(settings=Settings(mode, evaluations=60)))


def boxes(work: Compilation) -> list[str]:
    return [str(v.box) for v in work.variants]


def test_a_variant_with_the_kernels_of_the_next_is_left_out() -> None:
    work = compiled(TWICE, Mode.MODEL)
    assert boxes(work)[-1] == "n 1…4096" and "n 1…256" not in boxes(work)
    middle = work.buckets[1]
    assert (middle.box, middle.beyond, middle.merged) == ("n 1…256", "n 1…4096", True)
    assert all(c.seconds >= (1 - MARGIN) * c.beyond for c in middle.crossings if c.is_hint)
    assert work.plan is not None and len(work.plan.variants) == len(work.variants)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 255, 256, 257, 4096])
def test_what_a_variant_would_have_run_still_runs(n: int) -> None:
    plan = compiled(TWICE, Mode.MODEL).plan
    assert plan is not None
    x = np.random.default_rng(n).standard_normal((n, 8)).astype(np.float32)
    (found,) = Session(plan)(x=x).values()
    np.testing.assert_array_equal(found, 2 * x)


def test_a_faster_variant_stays() -> None:
    work = compiled(LAYER, Mode.MODEL)
    first, general = work.buckets
    assert boxes(work) == ["n = 1", "n 1…4096"] == [first.box, general.box]
    (step,) = first.crossings
    assert dict(step.dims) == {"n": 1} and step.seconds < (1 - MARGIN) * step.beyond
    assert (first.beyond, general.beyond) == ("n 1…4096", "")


def test_without_a_search_all_variants_stay() -> None:
    work = compiled(TWICE, Mode.NONE)
    assert boxes(work) == ["n = 1", "n 1…256", "n 1…4096"]
    assert not any(b.merged for b in work.buckets)


def test_prices_where_a_box_ends_are_told() -> None:
    ends = [c for c in compiled(TWICE, Mode.MODEL).buckets[1].crossings if not c.is_hint]
    assert [dict(c.dims) for c in ends] == [{"n": 256}]


@dataclass
class Clocked:
    """A backend whose measurements depend on the graph alone."""

    backend: Any
    seconds: Mapping[int, float]
    fails: bool = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.backend, name)

    def measure(self, region: Region, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        if self.fails:
            return Failure(Reason.MEMORY, "none left")
        assert set(dims) <= {"n"}
        return Timing(self.seconds[id(graph)], ())


@pytest.mark.parametrize(
    ("share", "kept"), [(0.9, True), (1 - MARGIN / 2, False), (1.0, False), (2.0, False)]
)
def test_measured_times_decide_in_a_measured_search(share: float, kept: bool) -> None:
    """Whatever the model says, which keeps the variant for one row."""
    work = replace(compiled(LAYER, Mode.MODEL))
    work.options = replace(work.options, settings=Settings(Mode.MEASURE))
    special, general = ({id(work.found[v.key(r)].graph) for r in v.regions} for v in work.variants)
    assert special.isdisjoint(general)
    times = dict.fromkeys(general, 1e-3) | dict.fromkeys(special, share * 1e-3)
    work.found = {
        k: replace(f, explanation=replace(f.explanation, mode="measure")) for k, f in work.found.items()
    }
    variants, (first, last) = merge(work, Clocked(work.options.backend(), times))
    assert [c.measured for c in last.crossings] == [True]
    assert [str(v.box) for v in variants] == (["n = 1"] if kept else []) + ["n 1…4096"]
    assert first.crossings[0].measured and first.crossings[0].seconds == share * 1e-3


def test_the_model_decides_what_cannot_be_measured() -> None:
    work = replace(compiled(LAYER, Mode.MODEL))
    work.options = replace(work.options, settings=Settings(Mode.MEASURE))
    work.found = {
        k: replace(f, explanation=replace(f.explanation, mode="measure")) for k, f in work.found.items()
    }
    variants, (first, _) = merge(work, Clocked(work.options.backend(), {}, fails=True))
    assert len(variants) == 2 and not first.crossings[0].measured


def test_after_ctrl_c_all_variants_stay() -> None:
    work = replace(compiled(LAYER, Mode.MODEL))
    work.options = replace(work.options, settings=Settings(Mode.MEASURE))
    variants, buckets = merge(work, Clocked(work.options.backend(), {}))
    assert len(variants) == 2 and not any(c.measured for b in buckets for c in b.crossings)
