"""Which launches a search makes one, whose kernels take turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from lumi.egraph.saturate import saturate
from lumi.field.region import Region
from lumi.llir.kernel import Kernel, KernelGraph, Schedule, Step
from lumi.search.protocol import Cost, Failure, Reason, Timing
from lumi.search.search import Found, search
from lumi.search.settings import Mode, Settings
from lumi.search.trial import Timings
from tests.search.plans import Interpreted, Modelled
from tests.search.test_together import apart

SLOW = Schedule("slow")


@dataclass
class Turning(Interpreted):
    """Each launch takes a second; turns take `factor` seconds each, and `price` seconds by the model."""

    joins: bool = True
    factor: float = 1.0
    price: float = 1.0
    refuses: bool = False

    def cost(self, kernel: Kernel, schedule: Schedule, dims: Mapping[str, int]) -> Cost:
        return replace(Modelled.cost(self, kernel, schedule, dims), seconds=1.0)

    def in_turn(self, steps: Sequence[Step]) -> Step | None:
        return None if self.refuses else replace(steps[0], then=tuple(steps[1:]))

    def cost_in_turn(self, steps: Sequence[Step], dims: Mapping[str, int]) -> Cost:
        return replace(self.cost(steps[0].kernel, SLOW, dims), seconds=self.price * len(steps))

    def measure(self, region: object, graph: KernelGraph, dims: Mapping[str, int]) -> Timing | Failure:
        self.trials.append(graph)
        steps = tuple(self.factor * len(s.turns) if s.then else 1.0 for s in graph.steps)
        if self.factor == 0:
            return Failure(Reason.WRONG, "turns") if any(s.then for s in graph.steps) else Timing(2.0, steps)
        return Timing(sum(steps), steps)


def searched(mode: Mode, backend: Turning) -> Found:
    region: Region = apart()
    settings = Settings(mode=mode, hints=({},))
    return search(region, saturate(region), settings, backend, timings=Timings())


def turns(found: Found) -> list[int]:
    return [len(s.turns) for s in found.graph.steps]


@pytest.mark.parametrize(("price", "kept"), [(0.6, [2]), (1.0, [1, 1]), (1.5, [1, 1])])
def test_model_decides_without_measuring(price: float, kept: list[int]) -> None:
    found = searched(Mode.MODEL, Turning(price=price))
    assert turns(found) == kept
    assert found.explanation.modelled == pytest.approx(min(price, 1.0) * 2)


@pytest.mark.parametrize(("factor", "kept"), [(0.6, [2]), (0.99, [1, 1]), (1.5, [1, 1]), (0, [1, 1])])
def test_measured_times_decide_whatever_the_model_expects(factor: float, kept: list[int]) -> None:
    backend = Turning(factor=factor, price=1.5)
    found = searched(Mode.MEASURE, backend)
    assert turns(found) == kept
    assert {len(g.steps) for g in backend.trials} == {1, 2}
    assert found.explanation.measured == (2 * factor if kept == [2] else 2.0)
    assert len(found.explanation.kernels) == len(kept)


def test_launches_that_cannot_take_turns_stay() -> None:
    backend = Turning(factor=0.1, price=0.1, refuses=True)
    found = searched(Mode.MEASURE, backend)
    assert turns(found) == [1, 1]
    assert all(not s.then for g in backend.trials for s in g.steps)
