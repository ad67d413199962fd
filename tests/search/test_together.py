"""Which kernels a search lets one launch run, and which it takes apart again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import pytest

from lumi.compiler import Compilation, Options, Stage, compile_model
from lumi.dtype import F32
from lumi.egraph.saturate import saturate
from lumi.errors import Source
from lumi.field.access import Access
from lumi.field.index import of_axis
from lumi.field.region import Region, Store
from lumi.llir.kernel import Dot, Kernel, KernelGraph, Schedule, Step, are_apart, walk
from lumi.search.planner import Planner
from lumi.search.protocol import Cost, Failure, Timing
from lumi.search.search import Found, search
from lumi.search.settings import Mode, Settings
from lumi.search.space import Genome, Space
from lumi.search.trial import Timings
from tests.search.plans import DEFAULT, Interpreted, Modelled
from tests.workloads import Workload, add, exp2, read

HEADS = """
(defmodel heads [(x f32 [1 512])]
  (let [y (rms-norm x :name "norm")]
    (outputs :q (linear y 700 :name "q" :bias false)
             :k (exp (linear y 132 :name "k" :bias false))
             :v (linear y 36 :name "v" :bias false))))
"""

GATED = """
(defmodel gated [(x f32 [1 512])]
  (let [y (rms-norm x :name "norm")]
    (+ x (gated-mlp y 1024 :name "mlp"))))
"""


@cache
def steps_of(text: str, target: str = "cuda") -> tuple[Step, ...]:
    work: Compilation = compile_model(Source("test.lumi", text), Options(target=target), until=Stage.KERNELS)
    return tuple(s for f in work.found.values() for s in f.graph.steps)


def dots(kernel: Kernel) -> int:
    return sum(isinstance(s, Dot) for s in walk(kernel.body))


def test_products_with_one_vector_share_a_launch() -> None:
    (together,) = [s for s in steps_of(HEADS) if s.beside]
    assert together.schedule.template == "ring"
    assert sorted(k.axes[a] for k in together.kernels for a in k.grid) == [36, 132, 700]
    assert all(are_apart(a, b) for a in together.kernels for b in together.kernels if a is not b)


def test_products_over_the_same_rows_share_a_kernel() -> None:
    first, second = [s for s in steps_of(GATED) if dots(s.kernel)]
    assert (dots(first.kernel), dots(second.kernel)) == (2, 1)
    assert not first.beside


def test_launch_of_a_processor_runs_one_kernel() -> None:
    assert not any(s.beside for s in steps_of(HEADS, "cpu"))


@dataclass
class Starting(Interpreted):
    """Starting a kernel takes a second; one launch of several takes `factor` of their seconds apart."""

    joins: bool = True
    factor: float = 1.0

    def together(self, kernels: Sequence[Kernel]) -> Sequence[Schedule]:
        return (DEFAULT,)

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        return replace(Modelled.cost(self, kernel, schedule, dims), seconds=1.0)

    def cost_together(self, kernels: Sequence[Kernel], schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        return self.cost(kernels[0], schedule, dims)

    def measure(self, region: object, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        self.trials.append(graph)
        steps = tuple(self.factor * len(s.kernels) if s.beside else 1.0 for s in graph.steps)
        return Timing(sum(steps), steps)


def apart() -> Region:
    """A region that stores two values over axes of their own."""
    x, y = read("x", "i"), read("y", "j")
    sizes = {"i": 6, "j": 9}
    made = Workload("apart", add(x, y), sizes, sizes, "", {"x": "i", "y": "j"}).region()
    stores = tuple(
        Store(exp2(term), Access(f"B{8 + k}", (of_axis(axis),), (sizes[axis],), F32))
        for k, (term, axis) in enumerate(((x, "i"), (y, "j")))
    )
    return replace(made, stores=stores)


def searched(factor: float, mode: Mode) -> tuple[Found, Starting]:
    region, backend = apart(), Starting(factor=factor)
    settings = Settings(mode=mode, hints=({},))
    return search(region, saturate(region), settings, backend, timings=Timings()), backend


def counts(found: Found) -> list[int]:
    return [len(s.kernels) for s in found.graph.steps]


def test_model_decides_what_one_launch_runs() -> None:
    found, _ = searched(1.0, Mode.MODEL)
    assert counts(found) == [2]
    assert found.explanation.modelled == 1.0
    assert len(found.explanation.kernels) == 1


@pytest.mark.parametrize(("factor", "kept"), [(0.6, [2]), (1.5, [1, 1])])
def test_measured_times_decide_whether_it_stays_one(factor: float, kept: list[int]) -> None:
    found, backend = searched(factor, Mode.MEASURE)
    assert counts(found) == kept
    assert {len(g.steps) for g in backend.trials} == {1, 2}
    assert found.explanation.measured == (2 * factor if kept == [2] else 2.0)


def test_kernels_that_touch_what_another_writes_stay_apart() -> None:
    region = apart()
    first, second = region.stores
    region = replace(region, stores=(first, replace(second, access=replace(second.access, buffer="B8"))))
    planner = Planner(
        Space(region, saturate(region)), Settings(), lambda k: (1.0, DEFAULT), lambda k: (0.5, DEFAULT)
    )
    assert len(planner.assemble(planner.draft(Genome({}, frozenset()))).launches) == 2
