"""Packing that is asked for by patterns of keys."""

from __future__ import annotations

import pytest

from lumi.errors import LumiError, Source
from lumi.hlir.graph import Graph
from lumi.interpreter.module import load
from lumi.interpreter.packing import packings
from lumi.interpreter.trace import trace

MODEL = """
(defmodel m [(x f32 [1 64])]
  (-> x (linear 64 :name "up") (linear 40 :name "down") (linear 64 :name "odd")
      (rms-norm :name "norm")))
"""


def graph() -> Graph:
    return trace(load(Source("m.lumi", MODEL)))


def test_matrices_of_whole_blocks_are_packed() -> None:
    assert packings(graph(), [("*", "q8_0")]) == {"up.weight": "q8_0", "down.weight": "q8_0"}


def test_later_rules_go_before_earlier_ones() -> None:
    found = packings(graph(), [("*", "q8_0"), ("up.*", "q4_0")])
    assert found == {"up.weight": "q4_0", "down.weight": "q8_0"}


@pytest.mark.parametrize(
    ("rule", "message", "hint"),
    [
        (("*", "q4_x"), "q4_x is no block format", "q4_0"),
        (("left.*", "q8_0"), "no matrix named left.* can be packed as q8_0", "up.weight"),
        (("*", "q4_k"), "can be packed as q4_k", "blocks of 256"),
    ],
)
def test_a_rule_that_packs_nothing_is_an_error(rule: tuple[str, str], message: str, hint: str) -> None:
    with pytest.raises(LumiError, match="weights error") as caught:
        packings(graph(), [rule])
    assert message in str(caught.value)
    assert hint in caught.value.hint
