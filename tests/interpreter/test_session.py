"""The environment of the REPL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lumi.errors import LumiError, Source
from lumi.hlir.graph import Node
from lumi.hlir.reference import evaluate
from lumi.interpreter.session import Session
from lumi.interpreter.trace import trace
from lumi.syntax.reader import read_one


def enter(session: Session, text: str) -> object:
    return session.evaluate(read_one(Source("<repl>", text)))


def array(session: Session, text: str, **arrays: np.ndarray) -> np.ndarray:
    value = enter(session, text)
    assert isinstance(value, Node)
    return evaluate(session.graph("entry", {"value": value}), arrays, {})["value"]


def test_definitions_and_values_persist() -> None:
    session = Session()
    assert enter(session, "(def n 3)") is None
    assert enter(session, "(defn twice [x] (* x 2))") is None
    assert enter(session, "(twice n)") == 6
    enter(session, "(def x (iota 3))")
    assert array(session, "(+ x n)").tolist() == [3, 4, 5]


def test_names_may_be_defined_again() -> None:
    session = Session()
    enter(session, "(defn f [] 1)")
    enter(session, "(defn g [] (f))")
    enter(session, "(defn f [] 2)")
    assert enter(session, "(g)") == 2
    enter(session, "(defdim n :max 4)")
    enter(session, "(defdim n :max 8)")
    assert session.builder.dims["n"].high == 8


def test_an_error_leaves_the_session_usable() -> None:
    session = Session()
    for text in ("(f 1)", "(let [x] 1)", '(do (param "w" [2]) (error "stop"))'):
        with pytest.raises(LumiError):
            enter(session, text)
    assert enter(session, "(+ 1 1)") == 2
    assert array(session, '(* 2 (param "w" [2]))', w=np.ones(2, np.float32)).tolist() == [2, 2]


def test_params_and_states_may_be_declared_in_each_entry() -> None:
    session = Session()
    enter(session, "(def x (ones [2]))")
    first = enter(session, '(linear x 3 :name "a")')
    assert enter(session, '(linear x 3 :name "a")') is first


def test_each_entry_is_one_call() -> None:
    session = Session()
    enter(session, '(def s (state "s" [2]))')
    value = enter(session, "(set! s (+ s 1))")
    assert isinstance(value, Node)
    assert session.graph("g", {"v": value}).updates == {"s": value}
    again = enter(session, "(+ s 0)")
    assert isinstance(again, Node) and session.graph("g", {"v": again}).updates == {}


def test_file_is_loaded_into_the_session(tmp_path: Path) -> None:
    path = tmp_path / "m.lumi"
    path.write_text("(defdim n :max 4) (defn mean [x] x) (defmodel m [(x f32 [n])] (mean x))")
    session = Session()
    session.load(path)
    assert [w.message for w in session.warnings] == ["`mean` hides stdlib/reduce.lumi"]
    assert list(session.module().models) == ["m"]
    assert str(trace(session.module()).outputs["out"].type) == "f32 [n]"
    with pytest.raises(LumiError, match="cannot be read"):
        session.load(tmp_path / "nothing.lumi")


def test_hiding_the_library_warns() -> None:
    session = Session()
    enter(session, "(let [mean 1] mean)")
    assert len(session.warnings) == 1
    enter(session, "(let [m 1] m)")
    assert session.warnings == []


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("softmax", "(softmax x :axis -1)\n  eˣ / Σeˣ along `axis`"),
        ("reduce-sum", "(reduce-sum x :axis -1 :keepdims false)\n  The sum along an axis"),
        ("let", "(let …)\n  `(let [name value [a b] pair …] body …)`"),
        ("pi", "pi: float\n  3.14159"),
        ("range", "(range & bounds)"),
        ("x", "x: tensor\n  i32 [3]"),
        ("s", "s: state\n  s: f32 [2]"),
    ],
)
def test_names_are_documented(name: str, start: str) -> None:
    session = Session()
    enter(session, "(def x (iota 3))")
    enter(session, '(def s (state "s" [2]))')
    assert str(session.document(name)).startswith(start)


def test_unknown_name_is_explained() -> None:
    with pytest.raises(LumiError, match="did you mean softmax"):
        Session().document("sofmax")


def test_names_are_offered_for_completion() -> None:
    session = Session()
    enter(session, "(def mine 1)")
    names = session.names()
    assert names == sorted(names) and {"mine", "softmax", "reduce-sum", "let", "f32"} <= set(names)


CALLED = {
    "(pair (ones [4 3]) (ones [4]))": "",
    "(pair (ones [4 3]) 1.0)": "type error",
    "(pair (ones [4 3]) (ones [5]))": "shape error",
    "(pair (ones [9 3]) (ones [9]))": "shape error",
    "(pair (ones [3]) (ones [3]))": "shape error",
    "(pair (ones [4 3] :dtype i32) (ones [4]))": "type error",
    "(pair [[1 2 3]] (ones [1]))": "type error",
    "(pair (ones [n 3]) (ones [n]))": "",
    "(scaled (ones [2]) 3)": "",
    "(scaled (ones [2]) (ones [1]))": "shape error",
}


def test_a_model_is_called_as_it_declares_its_inputs(golden: Callable[..., None]) -> None:
    session = Session()
    enter(session, "(defdim n :min 1 :max 8)")
    enter(session, "(defmodel pair [(x f32 [n 3]) (y f32 [n])] (+ (reduce-sum x :axis 1) y))")
    enter(session, "(defmodel scaled [(x f32 [2]) (by f32 [])] (* x by))")
    told = []
    for text, kind in CALLED.items():
        if not kind:
            assert isinstance(enter(session, text), Node), text
            continue
        with pytest.raises(LumiError) as caught:
            enter(session, text)
        assert caught.value.kind == kind, text
        told.append(caught.value.render())
    golden("\n".join(told))
