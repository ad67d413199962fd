"""Which quants bytes hold; that their unpacking is right is tested where it is used."""

from __future__ import annotations

import pytest

from lumi.backends.cuda import packed, packed_plan
from lumi.backends.cuda.packed_ring import PackedRing
from lumi.errors import Source
from lumi.llir.parse import parse
from lumi.llir.text import show
from tests.backends.cpu.test_templates import PLANES
from tests.backends.cuda.test_packed import product


def ring(text: str) -> PackedRing:
    found = packed.find(parse(Source("packed", text)))
    assert found is not None
    made = packed_plan.plan(found, {})
    assert made is not None
    return PackedRing(made, "kernel")


@pytest.mark.parametrize("name", PLANES)
def test_quants_of_every_format_fit_bytes(name: str) -> None:
    made = ring(show(product(name, 64, 32)))
    assert made.in_bytes
    biases = {"q8_0": -128, "q4_0": -8, "q5_0": -16, "q6_k": -32}
    (quant,) = (q for m in made.found.matrices for part in m.parts for q in part.quants)
    assert made.unpacking.held.bias(quant) == biases.get(name, 0)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [("q4_0", "15.0)", "31.0)"), ("q6_k", "(mul 16.0", "(mul 300.0")],
    ids=["bits of a neighbour", "more than a byte"],
)
def test_other_values_are_unpacked_one_by_one(name: str, old: str, new: str) -> None:
    text = show(product(name, 64, 32))
    assert old in text
    assert not ring(text.replace(old, new)).in_bytes
