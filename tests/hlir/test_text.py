from __future__ import annotations

from collections.abc import Callable

import pytest

from lumi.errors import LumiError, Source
from lumi.hlir import text
from lumi.hlir.graph import Graph
from tests.hlir.graphs import everything, softmax


@pytest.mark.parametrize("make", [softmax, everything])
def test_text_reads_back(make: Callable[[], Graph], golden: Callable[..., None]) -> None:
    shown = text.show(make())
    golden(shown, ".lumi", make.__name__)
    again = text.parse(Source("golden", shown))
    assert text.show(again) == shown
    assert [n.scope for n in again.nodes] == [n.scope for n in make().nodes]
    assert [n.type for n in again.nodes] == [n.type for n in make().nodes]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("(graph g)", "expected (graph name"),
        ("(graph g (dims) (let [%0 (exp3 %9)]) (outputs []) (updates []))", "`exp3` is no operation"),
        ("(graph g (dims) (let [%0 (exp2 %9)]) (outputs []) (updates []))", "`%9` is not bound"),
        ("(graph g (dims) (let [%0 (const f31 1.0)]) (outputs []) (updates []))", "expected a dtype"),
        ("(graph g (dims) (let [%0 (iota 3) %1 (exp2 %0)]) (outputs []) (updates []))", "exp2 takes floats"),
    ],
)
def test_malformed_text_is_a_placed_error(broken: str, message: str) -> None:
    with pytest.raises(LumiError) as caught:
        text.parse(Source("broken.lumi", broken))
    assert message in caught.value.message
    assert caught.value.span is not None
