"""The models that come with the language."""

from __future__ import annotations

from collections import Counter

import pytest

from lumi import paths
from lumi.errors import Source
from lumi.hlir.graph import Graph
from lumi.interpreter.module import load
from lumi.interpreter.trace import trace
from lumi.lower.lower import lower


def model(name: str, bind: dict[str, int]) -> Graph:
    path = paths.data("models") / f"{name}.lumi"
    return trace(load(Source(str(path), path.read_text())), bind=bind)


@pytest.mark.parametrize("bind", [{}, {"seq": 1}], ids=["any", "one"])
def test_gemma_has_five_kinds_of_region(bind: dict[str, int]) -> None:
    regions = lower(model("gemma3", bind))
    assert len(regions) == 21
    count = Counter(r.key for r in regions)
    assert sorted(count.values()) == [1, 1, 1, 3, 15]


@pytest.mark.parametrize("bind", [{}, {"seq": 1}], ids=["any", "one"])
def test_gemma_layer_cuts_what_is_rotated_alone(bind: dict[str, int]) -> None:
    for region in lower(model("gemma3", bind)):
        cut = [n for n in region.notes if n.what == "cut"]
        assert len(cut) == (2 if "layers" in region.scope else 0)
        assert not any(n.what == "reshape" for n in region.notes)


@pytest.mark.parametrize("name", ["mlp", "convnet"])
def test_small_models_are_one_region(name: str) -> None:
    (region,) = lower(model(name, {}))
    assert region.scope == name
