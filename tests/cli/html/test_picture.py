"""The picture of an arena says exactly what the plan does."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from decimal import Decimal
from itertools import combinations

import pytest

from lumi.cli.html.picture import HEIGHT, LEAST, LEFT, RIGHT, STEP, TOP, picture
from lumi.cli.stories import amount
from lumi.plan.memory import VariantMemory, memory
from lumi.plan.plan import Plan
from tests.cli.html.document import Element, parse
from tests.compilations import convnet, gemma, mlp, plan_of, written
from tests.plan.samples import add_plan, counter_plan

PLANS = {
    "add": add_plan,
    "counter": counter_plan,
    "mlp": lambda: plan_of(mlp()),
    "convnet": lambda: plan_of(convnet()),
    "gemma": lambda: plan_of(gemma()),
}


def drawn(variant: VariantMemory) -> Element:
    (svg,) = parse(picture(variant)).all("svg")
    return svg


def numbers(element: Element, *names: str) -> list[Decimal]:
    return [Decimal(element.attributes[name]) for name in names]


def variants(plan: Plan) -> tuple[VariantMemory, ...]:
    return memory(plan).variants


class Scale:
    """From points back to launches and bytes."""

    def __init__(self, variant: VariantMemory, svg: Element) -> None:
        self.first = min(b.first for b in variant.buffers)
        self.launches = max(b.last for b in variant.buffers) - self.first + 1
        self.width = float(svg.attributes["width"]) - LEFT - RIGHT
        self.arena = variant.arena

    def launch(self, x: Decimal) -> float:
        return self.first + (float(x) - LEFT) * self.launches / self.width

    def size(self, y: Decimal) -> float:
        return (TOP + HEIGHT - float(y)) * self.arena / HEIGHT

    def is_near(self, x: Decimal, launch: float, y: Decimal, size: float) -> bool:
        """Whether a place is that of a launch and a size, to a fiftieth of a point."""
        across, down = self.launches / self.width, self.arena / HEIGHT
        return abs(self.launch(x) - launch) < across / 50 and abs(self.size(y) - size) < down / 50


@pytest.mark.parametrize("name", PLANS)
def test_every_buffer_has_one_box_in_its_place(name: str) -> None:
    for variant in variants(PLANS[name]()):
        svg = drawn(variant)
        scale, boxes = Scale(variant, svg), svg.all("rect", "box")
        assert len(boxes) == len(variant.buffers)
        for b, box in zip(variant.buffers, boxes, strict=True):
            x, y, width, height = numbers(box, "x", "y", "width", "height")
            assert scale.is_near(x, b.first, y, b.offset + b.most)
            assert scale.is_near(x + width, b.last + 1, y + height, b.offset)
            assert b.role.value in box.attributes["class"].split()
            (title,) = box.all("title")
            assert title.text.startswith(f"{b.name}: {b.role.value}, {b.type}\n")


@pytest.mark.parametrize("name", PLANS)
def test_boxes_lie_inside_and_never_on_top_of_each_other(name: str) -> None:
    for variant in variants(PLANS[name]()):
        svg = drawn(variant)
        across = int(svg.attributes["width"]) - RIGHT
        boxes = [numbers(box, "x", "y", "width", "height") for box in svg.all("rect", "box")]
        for x, y, width, height in boxes:
            assert x >= LEFT and x + width <= across
            assert y >= TOP and y + height <= TOP + HEIGHT
        for (x, y, width, height), (u, v, wide, high) in combinations(boxes, 2):
            assert x + width <= u or u + wide <= x or y + height <= v or v + high <= y


@pytest.mark.parametrize("name", PLANS)
def test_the_peak_is_marked_where_live_bytes_are_the_most(name: str) -> None:
    for variant in variants(PLANS[name]()):
        svg = drawn(variant)
        scale = Scale(variant, svg)
        (line,) = svg.all("polyline", "live")
        corners = [tuple(map(Decimal, pair.split(","))) for pair in line.attributes["points"].split()]
        highest = min(y for _, y in corners)
        first = min(x for x, y in corners if y == highest)
        assert scale.is_near(first, variant.at, highest, variant.peak)
        (mark,) = svg.all("path", "peak")
        across, down = mark.attributes["d"].removeprefix("M").split("M")
        assert across == f"{LEFT} {highest}h{scale.width:.0f}"
        middle = Decimal(down.split(" ")[0])
        assert abs(scale.launch(middle) - variant.at - 0.5) < 0.01
        (told,) = svg.all("text", "peak")
        assert told.text == f"peak {amount(variant.peak)}B of {amount(variant.arena)}B"


def test_a_picture_is_sound_xml_and_its_words_stay_within_its_frame() -> None:
    for variant in variants(plan_of(gemma())):
        (outer,) = ET.fromstring(picture(variant))
        _, _, across, down = map(float, outer.attrib["viewBox"].split())
        for text in outer.iter("text"):
            assert 0 <= float(text.attrib["x"]) <= across
            assert 0 <= float(text.attrib["y"]) <= down


def test_many_launches_make_a_wide_picture() -> None:
    (short,) = variants(add_plan())
    long = replace(short, buffers=(*short.buffers[:2], replace(short.buffers[2], last=400)))
    narrow, wide = (float(parse(picture(v)).all("svg")[0].attributes["width"]) for v in (short, long))
    assert narrow == 984 and wide == narrow - LEAST + 402 * STEP


def test_names_are_escaped() -> None:
    (variant,) = variants(plan_of(written("(defmodel odd [(a<b&c f32 [4])]\n  (outputs :y (exp a<b&c)))")))
    assert any(title.text.startswith("a<b&c: input") for title in drawn(variant).all("title"))
    ET.fromstring(picture(variant))
