"""Models become graphs: configuration, dims, params, states, scopes, outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from lumi.blocks import BLOCKS
from lumi.dim import DimRange
from lumi.errors import LumiError, Source
from lumi.hlir import text
from lumi.hlir.graph import Graph
from lumi.hlir.op import Input, Param, State, Update
from lumi.hlir.reference import evaluate
from lumi.interpreter.module import load
from lumi.interpreter.trace import configuration, trace

ATTENTION = """
(defdim seq :min 1 :max 64 :hint [1 16])
(defdim past :min 0 :max 63 :hint 16)

(deflayer cache [x :context 64]
  (let [c (state "cache" [context 4])]
    (set! c (update-slice c x :axis 0 :start past))
    (reduce-sum (slice c :stop (+ past seq)) :axis 0)))

(defmodel running [(x f32 [seq 4]) :layers 2 :context 64]
  "Running sums."
  (for [i (range layers)]
    (cache x :context context :name (str "layers." i))))
"""


def graph_of(source: str, model: str | None = None, **options: object) -> Graph:
    return trace(load(Source("test.lumi", source)), model, **options)  # type: ignore[arg-type]


def keys(graph: Graph, kind: type[Param] | type[State]) -> list[str]:
    return [n.op.key for n in graph.leaves(kind) if isinstance(n.op, Param | State)]


def test_graph_has_inputs_states_outputs_and_dims() -> None:
    graph = graph_of(ATTENTION)
    assert graph.name == "running" and graph.doc == "Running sums."
    assert [str(n.type) for n in graph.leaves(Input)] == ["f32 [seq 4]"]
    assert keys(graph, State) == ["layers.0.cache", "layers.1.cache"]
    assert list(graph.outputs) == ["out.0", "out.1"]
    assert list(graph.updates) == ["layers.0.cache", "layers.1.cache"]
    assert graph.dims == {
        "seq": DimRange("seq", 1, 64, (1, 16)),
        "past": DimRange("past", 0, 63, (16,)),
    }


def test_later_reads_see_the_value_that_was_set() -> None:
    graph = graph_of(ATTENTION, config={"layers": 1})
    state: Mapping[str, np.ndarray] = {}
    total = np.zeros(4)
    for step, length in enumerate((3, 1, 2)):
        x = np.full((length, 4), step + 1, np.float32)
        past = (0, 3, 4)[step]
        found = evaluate(graph, {"x": x, **state}, {"seq": length, "past": past})
        total = total + x.sum(0)
        np.testing.assert_array_equal(found["out.0"], total)
        state = {"layers.0.cache": found["layers.0.cache"]}


def test_set_twice_keeps_the_last_value() -> None:
    graph = graph_of(
        '(defmodel m [(x f32 [2])] (let [s (state "s" [2])] (set! s (+ s x)) (set! s (* s 2)) s))'
    )
    found = evaluate(graph, {"x": np.ones(2, np.float32), "s": np.full(2, 3, np.float32)}, {})
    assert found["out"].tolist() == [8, 8] and found["s"].tolist() == [8, 8]


def test_param_can_be_set() -> None:
    graph = graph_of('(defmodel m [(g f32 [2])] (let [w (param "w" [2])] (set! w (- w g)) (reduce-sum w)))')
    found = evaluate(graph, {"g": np.ones(2, np.float32), "w": np.full(2, 3, np.float32)}, {})
    assert found["w"].tolist() == [2, 2] and float(found["out"]) == 4


def test_bound_dims_are_integers() -> None:
    graph = graph_of(ATTENTION, bind={"seq": 1})
    assert [str(n.type) for n in graph.leaves(Input)] == ["f32 [1 4]"]
    assert set(graph.dims) == {"past"}
    assert any(isinstance(n.op, Update) and n.inputs[1].shape == (1, 4) for n in graph.nodes)


def test_bound_dims_reach_the_constants_of_a_file() -> None:
    source = "(defdim n :max 8) (def sizes [[(+ n 1) n] 2]) (defmodel m [(x f32 [n])] (ones (first sizes)))"
    graph = graph_of(source, bind={"n": 3})
    assert graph.outputs["out"].shape == (4, 3) and graph.dims == {}


@pytest.mark.parametrize(
    ("bind", "message"), [({"sqe": 1}, "did you mean seq"), ({"seq": 65}, "outside 1 … 64")]
)
def test_wrong_binding_is_an_error(bind: dict[str, int], message: str) -> None:
    with pytest.raises(LumiError, match=message):
        graph_of(ATTENTION, bind=bind)


CONFIGURED = """
(defmodel m [(x dtype [rows 4]) :rows 2 :scale 0.5 :flag true :dtype f32 :limit nil :sizes [1 2]]
  (let [w (param "w" [4])
        y (* x w scale)]
    (if flag (if limit (min y limit) y) (- y))))
"""


def test_configuration_replaces_defaults() -> None:
    graph = graph_of(CONFIGURED, config={"rows": 3, "scale": 2, "dtype": "bf16", "limit": 1.0, "sizes": [4]})
    assert [str(n.type) for n in graph.leaves(Input)] == ["bf16 [3 4]"]
    assert [n.dtype.name for n in graph.leaves(Param)] == ["bf16"]
    assert graph.outputs["out"].dtype.name == "bf16"


def test_keywords_may_be_spelled_as_in_python() -> None:
    source = "(defmodel m [(x f32 [kv-heads])  :kv-heads 2] x)"
    assert str(graph_of(source, config={"kv_heads": 5}).outputs["out"].type) == "f32 [5]"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"row": 3}, "did you mean rows"),
        ({"rows": "three"}, "no integer"),
        ({"rows": True}, "true is no integer"),
        ({"scale": "x"}, "no float"),
        ({"flag": 1}, "no bool"),
        ({"dtype": "bf15"}, "no dtype"),
        ({"rows": -1}, "a size is -1"),
    ],
)
def test_wrong_configuration_is_an_error(config: dict[str, object], message: str) -> None:
    with pytest.raises(LumiError, match=message):
        graph_of(CONFIGURED, config=config)


def test_configuration_lists_keywords_and_defaults() -> None:
    module = load(Source("test.lumi", CONFIGURED))
    assert configuration(module) == {
        "rows": "2",
        "scale": "0.5",
        "flag": "true",
        "dtype": "f32",
        "limit": "nil",
        "sizes": "[1 2]",
    }


TWO = "(defmodel first-one [(x f32 [1])] x) (defmodel second-one [(x f32 [2])] x)"


def test_one_of_several_models_is_chosen_by_name() -> None:
    assert str(graph_of(TWO, "second-one").outputs["out"].type) == "f32 [2]"
    with pytest.raises(
        LumiError, match="choose one: it has first-one, second-one; a command takes --model NAME"
    ):
        graph_of(TWO)
    with pytest.raises(LumiError, match="did you mean first-one"):
        graph_of(TWO, "first-on")
    with pytest.raises(LumiError, match="defines no model"):
        graph_of("(defn f [x] x)")


def test_outputs_are_named() -> None:
    graph = graph_of("(defmodel m [(x f32 [1])] (outputs :logits x :two 2 :sum (+ x x)))")
    assert list(graph.outputs) == ["logits", "two", "sum"]
    assert str(graph.outputs["two"].type) == "i32 []"


SCOPES = """
(deflayer inner [x] (* x (param "weight" [2])))
(deflayer outer [x] (-> x (inner :name "a") (inner :name "b") exp))
(defmodel m [(x f32 [2])]
  (let [y (outer x :name "blocks.0")
        y (scope "head" (inner y :name "model.norm"))
        y (inner y)]
    (inner y :name nil)))
"""


def test_layers_give_keys_and_scopes() -> None:
    graph = graph_of(SCOPES)
    assert keys(graph, Param) == [
        "blocks.0.a.weight",
        "blocks.0.b.weight",
        "model.norm.weight",
        "inner.weight",
        "weight",
    ]
    scopes = list(dict.fromkeys(n.scope for n in graph.nodes if not n.is_leaf))
    assert scopes == ["blocks.0/a", "blocks.0/b", "blocks.0", "head/model.norm", "inner", ""]


def test_nodes_know_the_line_that_made_them() -> None:
    source = "(defmodel m [(x f32 [2])]\n  (let [y (exp x)]\n    (+ y\n       1)))"
    graph = graph_of(source)
    spans = {type(n.op).__name__: n.span.text for n in graph.nodes if n.span}
    assert spans["Unary"] == "(exp x)" and graph.outputs["out"].span is not None
    assert graph.outputs["out"].span.line == 3


def test_graph_reads_back() -> None:
    graph = graph_of(ATTENTION)
    assert text.show(text.parse(Source("graph", text.show(graph)))) == text.show(graph)


@pytest.mark.parametrize("kind", BLOCKS)
def test_packed_params_become_their_planes(kind: str) -> None:
    block = BLOCKS[kind]
    source = f'(defmodel m [(x f32 [1])] (linear (* x (ones [{2 * block.elements}])) 3 :name "a"))'
    graph = graph_of(source, packing={"a.weight": kind})
    assert keys(graph, Param) == [f"a.weight#{p.name}" for p in block.planes]
    shapes = [n.shape for n in graph.leaves(Param)]
    assert shapes == [(3, 2, *p.shape) for p in block.planes]


@pytest.mark.parametrize(
    ("packing", "message"), [({"w": "q4_x"}, "no known format"), ({"w": "q4_k"}, "cannot be packed as q4_k")]
)
def test_wrong_packing_is_an_error(packing: dict[str, str], message: str) -> None:
    with pytest.raises(LumiError, match=message):
        graph_of('(defmodel m [(x f32 [1])] (* x (param "w" [3 32])))', packing=packing)


def test_a_dim_that_becomes_1_still_broadcasts() -> None:
    source = "(defdim n :min 1 :max 9) (defmodel m [(x f32 [n 3])] (- x (mean x :axis 0 :keepdims true)))"
    graph = graph_of(source)
    for rows in (1, 2, 9):
        x = np.random.default_rng(rows).standard_normal((rows, 3)).astype(np.float32)
        found = evaluate(graph, {"x": x}, {"n": rows})["out"]
        np.testing.assert_allclose(found, x - x.mean(0, keepdims=True), atol=1e-6)


def test_dims_are_values() -> None:
    source = """(defdim n :min 2 :max 64) (defmodel m [(x f32 [n 4])]
      (let [y (reshape x [(* 2 n) 2])
            z (concat [y y])]
        [(/ (reduce-sum z :axis 0) (dim z 0)) n (cast (+ n 1) f32) (* (iota n) n) (sqrt (* n n))]))"""
    found = evaluate(graph_of(source), {"x": np.ones((5, 4), np.float32)}, {"n": 5})
    assert found["out.0"].tolist() == [1, 1]
    assert int(found["out.1"]) == 5 and float(found["out.2"]) == 6
    assert found["out.3"].tolist() == [0, 5, 10, 15, 20] and float(found["out.4"]) == 5


def test_an_input_that_nothing_reads_is_an_input_all_the_same() -> None:
    graph = graph_of(
        "(defdim seq :min 1 :max 8) (defmodel m [(x f32 [2]) (mask bool [seq]) :masked false]"
        " (if masked (where (any mask) x 0) x))"
    )
    assert [str(n.type) for n in graph.leaves(Input)] == ["f32 [2]", "bool [seq]"]
    assert list(graph.dims) == ["seq"]
    assert text.show(text.parse(Source("again", text.show(graph)))) == text.show(graph)


@pytest.mark.parametrize("shift", [1, -1, 0])
def test_a_dim_can_be_rolled(shift: int) -> None:
    graph = graph_of(f"(defdim n :min 1 :max 8) (defmodel m [(x f32 [n])] (roll x {shift}))")
    for size in (1, 2, 8):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(evaluate(graph, {"x": x}, {"n": size})["out"], np.roll(x, shift))


def test_a_setting_is_a_value_of_the_language() -> None:
    source = "(defmodel m [(x f32 [2]) :sizes [[1]]] (reshape x (nth sizes 0)))"
    assert graph_of(source, config={"sizes": [[1, 2]]}).outputs["out"].shape == (1, 2)
    with pytest.raises(LumiError, match="sizes is a dict"):
        graph_of(source, config={"sizes": [{}]})
