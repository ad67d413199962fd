from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lumi.compiler import Compilation, Options, compile_graph
from lumi.errors import LumiError
from lumi.hlir.graph import Graph
from lumi.repl import evaluator
from lumi.repl.session import Conversation
from lumi.syntax.reader import Incomplete


@pytest.fixture
def conversation() -> Conversation:
    return Conversation()


def printed(conversation: Conversation, *entries: str) -> list[str]:
    return [result for entry in entries for result in conversation.evaluate(entry)]


@pytest.mark.parametrize(
    ("entry", "result"),
    [
        ("(+ 1 2)", "3"),
        ("nil", "nil"),
        ('(str "a" 1)', '"a1"'),
        ("[1 [2.5 true] :k]", "[1 [2.5 true] :k]"),
        ("'(f ~x)", "(f ~x)"),
        ("f32", "f32"),
        ("softmax", "softmax: function [x :axis -1]"),
        ("(fn [a & b] a)", "fn: function [a & b]"),
        ("(iota 3)", "[0 1 2]  ; i32 [3]"),
        ("(+ 0.5 (cast (iota 2) f32))", "[0.5 1.5]  ; f32 [2]"),
        ("(reduce-sum (iota 5))", "10  ; i32 []"),
        ("(reduce-sum (cast (iota 5) f32))", "10.0  ; f32 []"),
        ("(all (< (iota 3) 2))", "false  ; bool []"),
        ("(< (iota 3) 1)", "[true false false]  ; bool [3]"),
        ("(reshape (iota 4) [2 2])", "[[0 1]\n [2 3]]\n; i32 [2 2]"),
        ("(iota 0)", "[]  ; i32 [0]"),
        ("(cast (iota 2) bf16)", "[0. 1.]  ; bf16 [2]"),
        ("(/ 1.0 (cast (iota 2) f32))", "[inf  1.]  ; f32 [2]"),
        ("[(iota 1) 7]", "[0]  ; i32 [1]\n7"),
        ("(outputs :a (iota 1) :b (iota 2))", "a: [0]  ; i32 [1]\nb: [0 1]  ; i32 [2]"),
    ],
)
def test_an_expression_prints_its_value(conversation: Conversation, entry: str, result: str) -> None:
    assert printed(conversation, entry) == [result]


def test_a_definition_prints_nothing_and_stays(conversation: Conversation) -> None:
    assert printed(conversation, "(defn twice [x] (* 2 x))", "(defdim n :max 8)", "(twice 4)") == ["8"]


def test_an_entry_may_hold_several_forms(conversation: Conversation) -> None:
    assert printed(conversation, "(def a 1) (+ a 1) ; note\n(+ a 2)") == ["2", "3"]


def test_a_tensor_that_is_named_is_kept(conversation: Conversation) -> None:
    entries = "(def x (iota 3))", "(def y (* x 2))", "(def x (+ x 10))", "[x y]"
    assert printed(conversation, *entries) == ["[10 11 12]  ; i32 [3]\n[0 2 4]  ; i32 [3]"]


def test_a_list_of_tensors_keeps_its_own(conversation: Conversation) -> None:
    entries = (
        "(def x (iota 2))",
        "(def both [x (+ x 1)])",
        "(def x 5)",
        "both",
        "(+ (first both) (last both))",
    )
    assert printed(conversation, *entries) == ["[0 1]  ; i32 [2]\n[1 2]  ; i32 [2]", "[1 3]  ; i32 [2]"]


def test_a_name_whose_tensor_cannot_be_computed_is_not_bound(conversation: Conversation) -> None:
    with pytest.raises(LumiError, match="shape"):
        printed(conversation, "(def x (+ (iota 2) (iota 3)))")
    with pytest.raises(LumiError, match="unknown name"):
        printed(conversation, "x")


def test_a_state_persists_from_entry_to_entry(conversation: Conversation) -> None:
    entries = '(def c (state "c" [2]))', "c", "(set! c (+ c 1))", "(set! c (* c 3))", "c"
    assert [r.partition("  ")[0] for r in printed(conversation, *entries)] == [
        "[0. 0.]",
        "[1. 1.]",
        "[3. 3.]",
        "[3. 3.]",
    ]


def test_an_update_runs_even_if_the_value_is_no_tensor(conversation: Conversation) -> None:
    entries = '(def c (state "c" [1]))', '(do (set! c (+ c 1)) "done")', "c"
    assert printed(conversation, *entries) == ['"done"', "[1.]  ; f32 [1]"]


def test_a_state_declared_anew_with_another_shape_begins_with_zeros(conversation: Conversation) -> None:
    entries = '(def c (state "c" [1]))', "(set! c (+ c 1))", '(state "c" [2])', '(state "c" [2] :dtype i32)'
    assert printed(conversation, *entries)[1:] == ["[0. 0.]  ; f32 [2]", "[0 0]  ; i32 [2]"]


def test_a_param_keeps_what_set_gives_it(conversation: Conversation) -> None:
    entries = '(def w (param "w" [2] :init 3))', "w", "(set! w (* w 2))", "w", "(+ w 1)"
    values = [r.partition("  ")[0] for r in printed(conversation, *entries)]
    assert values == ["[3. 3.]", "[6. 6.]", "[6. 6.]", "[7. 7.]"]


def test_a_param_without_a_value_is_random_and_stays(conversation: Conversation) -> None:
    first, second = printed(conversation, '(param "w" [3])', '(param "w" [3])')
    assert first == second
    assert np.unique(conversation.evaluator.params["w"]).size == 3


def test_a_layer_has_params_of_its_own(conversation: Conversation) -> None:
    printed(conversation, '(linear (zeros [1 2]) 3 :name "a")', '(linear (zeros [1 2]) 3 :name "b")')
    assert set(conversation.evaluator.params) == {"a.weight", "b.weight"}


def test_dims_have_their_hint(conversation: Conversation) -> None:
    assert printed(
        conversation, "(defdim n :min 1 :max 8 :hint 3)", "(+ n 1)", "(iota n)", "(def x (iota n))", "(+ x n)"
    ) == [
        "(+ n 1)",
        "[0 1 2]  ; i32 [3]",
        "[3 4 5]  ; i32 [3]",
    ]


def test_a_file_brings_its_definitions(conversation: Conversation, tmp_path: Path) -> None:
    path = tmp_path / "more.lumi"
    path.write_text("(defdim n :max 4)\n(defn plus [x] (+ x 1))\n(defmodel m [(x f32 [n])] (plus x))\n")
    assert printed(conversation, f'(import "{path}")') == [f"{path}: 3 names, models m"]
    assert printed(conversation, "(plus (iota 2))", "(m (zeros [2]))") == [
        "[1 2]  ; i32 [2]",
        "[1. 1.]  ; f32 [2]",
    ]
    assert conversation.graph("m").name == "m"


def test_a_warning_is_printed(conversation: Conversation) -> None:
    (warning,) = printed(conversation, "(defn f [mean] mean)")
    assert "`mean` hides stdlib/reduce.lumi" in warning


def test_an_unfinished_entry_is_incomplete(conversation: Conversation) -> None:
    with pytest.raises(Incomplete):
        printed(conversation, "(+ 1")


def test_an_error_points_into_its_entry(conversation: Conversation) -> None:
    printed(conversation, "(defn f [x]\n  (+ x (iota 3)))")
    with pytest.raises(LumiError) as caught:
        printed(conversation, "(f (iota 2))")
    assert str(caught.value.span) == "<repl>:2:3"
    assert "called at <repl>:1:1" in caught.value.render()


def test_evaluating_again_compiles_nothing(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed(conversation, "(def x (iota 3))")
    once = printed(conversation, "(* x 3)")
    monkeypatch.setattr("lumi.repl.evaluator.compile_graph", None)
    assert printed(conversation, "(* x 3)") == once
    with pytest.raises(TypeError):
        printed(conversation, "(* x 4)")


def test_names_keywords_and_lines_for_completion(conversation: Conversation) -> None:
    printed(conversation, '(defn mine [x :scale 2.0] "Scaled." x)', "(deflayer own [x :k 1] x)")
    assert {"mine", "softmax", "let", "iota"} <= set(conversation.names())
    assert conversation.summary("mine") == "Scaled."
    assert conversation.summary("own") == "layer"
    assert conversation.summary("no-such-name") == ""
    assert conversation.keywords("mine") == {"scale": "default 2.0"}
    assert conversation.keywords("own") == {"k": "default 1", "name": "of the layer"}
    assert conversation.keywords("softmax") == {"axis": "default -1"}
    assert conversation.keywords("let") == conversation.keywords("nothing") == {}


def traced(conversation: Conversation, *entries: str) -> list[int]:
    """How many forms each entry evaluates when it comes."""
    counts = []
    evaluate = conversation.session.evaluate
    with pytest.MonkeyPatch.context() as patch:
        for entry in entries:
            seen: list[object] = []
            patch.setattr(conversation.session, "evaluate", lambda form: seen.append(form) or evaluate(form))  # noqa: B023
            list(conversation.evaluate(entry))
            counts.append(len(seen))
    return counts


def test_an_entry_that_comes_again_is_not_traced_again(conversation: Conversation) -> None:
    entries = "(def x (iota 3))", "(* x 2)", "(* x 2)", "[(+ x 1) 7]", "[(+ x 1) 7]", "(* x 2)"
    assert traced(conversation, *entries) == [1, 1, 0, 1, 0, 0]
    assert printed(conversation, "(* x 2)") == ["[0 2 4]  ; i32 [3]"]


@pytest.mark.parametrize(
    "definition", ["(def x (iota 2))", "(defn f [y] y)", "(do (def x (iota 2)) nil)", "(defdim n :max 9)"]
)
def test_definitions_make_entries_new(conversation: Conversation, definition: str) -> None:
    printed(conversation, "(defn f [y] (* 2 y))", "(def x (iota 3))", "(f x)")
    assert traced(conversation, "(f x)") == [0]
    try:
        printed(conversation, definition)
    except LumiError:
        return  # where a definition may not stand
    assert traced(conversation, "(f x)") == [1]


def test_entries_that_come_again_see_new_states(conversation: Conversation) -> None:
    step = '(let [n (state "n" [] :dtype i32)] (set! n (+ n 1)) n)'
    assert printed(conversation, step, step, step) == [f"{k}  ; i32 []" for k in (1, 2, 3)]


def test_entries_that_come_again_see_new_params(conversation: Conversation) -> None:
    step = '(let [w (param "w" [] :init 1)] (set! w (* w 3)) w)'
    assert printed(conversation, step, step, step) == [f"{k:.1f}  ; f32 []" for k in (3, 9, 27)]


def test_warnings_are_told_each_time(conversation: Conversation) -> None:
    entry = "(let [count 3] count)"
    first = printed(conversation, entry)
    assert len(first) == 2 and "hides" in first[1]
    assert printed(conversation, entry) == first


def test_imports_make_entries_new(conversation: Conversation, tmp_path: Path) -> None:
    path = tmp_path / "f.lumi"
    path.write_text("(defn f [x] (* 10 x))\n")
    printed(conversation, "(defn f [x] x)", "(f 3)")
    printed(conversation, f'(import "{path}")')
    assert printed(conversation, "(f 3)") == ["30"]


@pytest.mark.cuda
def test_entries_are_computed_on_the_gpu() -> None:
    conversation = Conversation("cuda")
    entries = "(def x (iota 3))", "(* x 2)", "(softmax (ones [4]))", "(* x 2)", "(reduce-sum (* x x))"
    assert printed(conversation, *entries) == [
        "[0 2 4]  ; i32 [3]",
        "[0.25 0.25 0.25 0.25]  ; f32 [4]",
        "[0 2 4]  ; i32 [3]",
        "5  ; i32 []",
    ]
    step = '(let [n (state "n" [] :dtype i32)] (set! n (+ n 1)) n)'
    assert printed(conversation, step, step) == ["1  ; i32 []", "2  ; i32 []"]


def test_what_is_relaxed_reaches_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []

    def noted(graph: Graph, options: Options) -> Compilation:
        told.append(options.relaxed)
        return compile_graph(graph, options)

    monkeypatch.setattr(evaluator, "compile_graph", noted)
    for relaxed in ((), ("tf32",)):
        assert list(Conversation("cpu", relaxed).evaluate("(+ (iota 2) 1)")) == ["[1 2]  ; i32 [2]"]
    assert told == [(), ("tf32",)]
