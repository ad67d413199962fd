"""What the model says of kernels that memory bounds: near the floor, never under it."""

from __future__ import annotations

import re

import pytest

from lumi.backends.cuda import direct, line
from lumi.backends.cuda.costs import Costs
from lumi.backends.cuda.machine import MACHINE
from lumi.backends.cuda.schedule import schedules
from lumi.errors import Source
from lumi.llir.kernel import Kernel, Schedule
from lumi.llir.parse import parse
from tests.backends.cuda.kernels import read
from tests.backends.cuda.test_nests import sized


def seconds(kernel: Kernel) -> dict[Schedule, float]:
    costs = Costs()
    return {s: costs.cost(kernel, s, {}).seconds for s in schedules(kernel)}


@pytest.mark.parametrize("length", [1040, 4096, 8192, 32000, 65536])
@pytest.mark.parametrize("name", ["softmax", "standardize", "loss"])
def test_lines_are_never_faster_than_their_floor(name: str, length: int) -> None:
    kernel, costs = read(name, (1040, length)), Costs()
    for schedule in schedules(kernel):
        cost = costs.cost(kernel, schedule, {})
        assert cost.seconds > cost.floor, schedule


@pytest.mark.parametrize("length", [4096, 8192, 16384, 32768])
def test_many_lines_go_straight_into_registers(length: int) -> None:
    kernel = read("softmax", (1040, length))
    kernel = type(kernel)({**kernel.axes, "a": 8192}, kernel.grid, (), kernel.tiles, kernel.body)
    found = seconds(kernel)
    best = min(found, key=lambda s: found[s])
    assert best.template == "direct"
    traffic = 2 * 4 * 8192 * length
    assert found[best] < 1.2 * traffic / MACHINE.bandwidth


@pytest.mark.parametrize(("name", "template"), [("loss", "lines"), ("softmax", "direct")])
def test_long_lines_that_are_only_read_are_copied_ahead(name: str, template: str) -> None:
    kernel = read(name, (1040, 32000))
    kernel = type(kernel)({**kernel.axes, "a": 4096}, kernel.grid, (), kernel.tiles, kernel.body)
    found = seconds(kernel)
    assert min(found, key=lambda s: found[s]).template == template
    straight = {s: t for s, t in found.items() if s.template == "direct"}
    assert dict(min(straight, key=lambda s: straight[s]).options).get("blocks", 1) == 1


@pytest.mark.parametrize(("length", "option"), [(4096, "stay"), (8192, "stay"), (32768, "aside")])
def test_long_lines_lie_aside_and_others_stay_in_the_cache(length: int, option: str) -> None:
    kernel = read("softmax", (1040, length))
    kernel = type(kernel)(
        {**kernel.axes, "a": (1 << 25) // length}, kernel.grid, (), kernel.tiles, kernel.body
    )
    found = seconds(kernel)
    assert option in dict(min(found, key=lambda s: found[s]).options)


def test_lines_of_few_results_need_not_stay() -> None:
    kernel = read("softmax", (1040, 4096))
    kernel = type(kernel)({**kernel.axes, "a": 1024}, kernel.grid, (), kernel.tiles, kernel.body)
    found = seconds(kernel)
    assert "stay" not in dict(min(found, key=lambda s: found[s]).options)


@pytest.mark.parametrize("side", [4096, 8192])
def test_few_points_a_thread_are_best_where_there_are_many(side: int) -> None:
    found = seconds(sized(side * side))
    assert min(found, key=lambda s: found[s]).options == (("unroll", 1),)


def test_thread_that_would_load_once_is_too_many() -> None:
    found = line.find(read("softmax", (1040, 4096)))
    assert found is not None
    assert direct.plan(found, {"users": 512}) is not None
    assert direct.plan(found, {"users": 1024}) is None


def test_elementwise_kernel_is_near_its_floor_when_large() -> None:
    kernel = sized(1 << 26)
    best = min(seconds(kernel).values())
    floor = 3 * 4 * (1 << 26) / MACHINE.bandwidth
    assert floor < best < 1.1 * floor


def total(axes: str, index: str) -> Kernel:
    """The sum of 4096 squares along some axes."""
    names = " ".join(re.findall(r"\((\w)", axes))
    text = f"""(kernel
  :buffers [(B0 [4096] f32) (T0 [] f32)]
  :axes [{axes}]
  :grid []
  :resident [{names}]
  (let [v1 (load (B0 [{index}]))
        v2 (mul v1 v1)
        v3 (reduce sum [{names}] v2)]
    (store (T0 []) v3)))
"""
    return parse(Source("total", text))


def test_single_sum_along_many_axes_takes_turns() -> None:
    one = total("(a 4096)", "a")
    four = total("(a 16) (b 4) (c 2) (e 32)", "(+ (* 256 a) (* 64 b) (* 32 c) e)")
    assert min(seconds(four).values()) > 10e-6 > min(seconds(one).values())
