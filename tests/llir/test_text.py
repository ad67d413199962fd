"""Text of kernels: what it looks like, and that it reads back equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from lumi.errors import LumiError, Source
from lumi.llir.kernel import KernelGraph
from lumi.llir.parse import parse, parse_graph
from lumi.llir.text import show, show_graph, show_step
from tests.llir.kernels import everything, graphs


def test_kernel_shows_every_kind_of_statement(golden: Callable[..., None]) -> None:
    golden(show(everything()), ".kernel")


@pytest.mark.parametrize(
    "name", ["by_hand", "attention_window", "decode", "layernorm", "linear_cross_entropy"]
)
def test_graph_reads_back_equal(name: str) -> None:
    graph = graphs()[name]
    text = show_graph(graph)
    assert parse_graph(Source("graph", text)) == graph
    assert show_graph(parse_graph(Source("graph", text))) == text
    for step in graph.steps:
        assert parse(Source("kernel", show(step.kernel))) == step.kernel


def test_step_of_several_kernels_reads_back_equal() -> None:
    one, other = (graphs()[name].steps[0] for name in ("layernorm", "decode"))
    step = replace(one, beside=(other.kernel, one.kernel))
    graph = KernelGraph((step, other), {})
    assert parse_graph(Source("graph", show_graph(graph))) == graph
    assert show_step(step).count("(kernel") == 3


GOOD = """
(kernel :buffers [(B0 [8] f32) (B1 [8] f32)] :axes [(i 8)] :grid [(i 4)]
  (let [v1 (load (B0 [i]))
        v2 (mul v1 2.0)]
    (store (B1 [i]) v2)))
"""


def test_text_by_hand_is_a_kernel() -> None:
    kernel = parse(Source("text", GOOD))
    assert kernel.grid == ("i",) and kernel.tiles == {"i": 4} and len(kernel.body) == 3


WRONG = {
    "axis": ("(B0 [i])", "(B0 [j])"),
    "buffer": ("(load (B0", "(load (B7"),
    "untyped": ("(mul v1 2.0)", "(mul 1.0 2.0)"),
    "odd_let": ("v2 (mul v1 2.0)", "v2"),
    "store": ("(store (B1 [i]) v2)", "(store (B1 [i]))"),
    "no_grid": (":grid [(i 4)]", ""),
    "pair": ("(i 8)", "(i 8 9)"),
    "keyword": (":grid [(i 4)]", ":grid"),
    "buffer_shape": ("(B0 [8] f32)", "(B0 [8])"),
    "operator": ("(mul v1 2.0)", "mul"),
    "loop": ("(store (B1 [i]) v2)", "(for [i] :carry [[v3 v4 sum f32 []]] (store (B1 [i]) v2))"),
    "carry": ("(store (B1 [i]) v2)", "(for [i] :carry [[v3]] (store (B1 [i]) v2))"),
    "no_body": ("(store (B1 [i]) v2)", "(for)"),
    "dtype": ("f32) (B1", "f31) (B1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_text_is_refused_with_its_place(name: str, golden: Callable[..., None]) -> None:
    good, bad = WRONG[name]
    assert good in GOOD
    with pytest.raises(LumiError) as error:
        parse(Source("kernel", GOOD.replace(good, bad, 1)))
    golden(error.value.render(), ".txt", name=f"wrong_{name}")


def test_graph_holds_only_temporaries_and_steps() -> None:
    with pytest.raises(LumiError, match="temporary"):
        parse_graph(Source("graph", "(kernels (launch))"))
