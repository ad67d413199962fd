"""What each special form means, on host values."""

from __future__ import annotations

import pytest

from lumi.errors import LumiError, Source
from lumi.hlir.graph import Node
from lumi.interpreter.session import Session
from lumi.interpreter.value import written
from lumi.syntax.reader import read


def value_of(text: str) -> str:
    """The value of the last form, as it is written."""
    session, value = Session(), None
    for form in read(Source("test.lumi", text)):
        value = session.evaluate(form)
    return written(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # let
        ("(let [a 1 b (+ a 1)] [a b])", "[1 2]"),
        ("(let [[a [b _]] [1 [2 3]] & 0] a)", None),
        ("(let [[a [b c]] [1 [2 3]]] [c b a])", "[3 2 1]"),
        ("(let [[a & more] [1 2 3]] [a more])", "[1 [2 3]]"),
        ("(let [[a _ c] [1 2 3]] [a c])", "[1 3]"),
        ("(let [a 1] (let [a 2] a) a)", "1"),
        # if, cond, when, do
        ("(if 0 1 2)", "1"),
        ("(if nil 1 2)", "2"),
        ("(if false 1)", "nil"),
        ("(cond false 1 nil 2 true 3)", "3"),
        ("(cond false 1)", "nil"),
        ("(when true 1 2)", "2"),
        ('(when nil (error "never"))', "nil"),
        ("(do 1 2 3)", "3"),
        ("(do)", "nil"),
        # and, or
        ("(and)", "true"),
        ("(or)", "false"),
        ('(and nil (error "never"))', "nil"),
        ('(or 1 (error "never"))', "1"),
        # fold, for
        ("(fold [s 0] [i (range 5)] (+ s i))", "10"),
        ("(fold [[a b] [0 1]] [_ (range 5)] [b (+ a b)])", "[5 8]"),
        ("(for [i [1 2] j [10 20]] (+ i j))", "[11 21 12 22]"),
        ("(for [[a b] [[1 2] [3 4]]] (* a b))", "[2 12]"),
        ('(for [i []] (error "never"))', "[]"),
        # fn
        ("((fn [x :by 2] (* x by)) 5)", "10"),
        ("((fn [x :by 2] (* x by)) 5 :by 3)", "15"),
        ("(map (fn [x & more] [x more]) [1 2])", "[[1 []] [2 []]]"),
        ("(let [n 10 f (fn [x] (+ x n)) n 20] (f 1))", "11"),
        ("((fn [a :b (+ a 1) :c (* b 2)] [a b c]) 1)", "[1 2 4]"),
        # ->
        ("(-> 10 (- 3) neg)", "-7"),
        ("(-> [1 2 3] (map (fn [x] x)))", None),
        ("(-> 5)", "5"),
        # quoting and macros
        ('\'(a [b 1] :c "d")', '(a [b 1] :c "d")'),
        ("(let [x 1 xs [2 3]] `(f ~x [~@xs] ~@xs))", "(f 1 [2 3] 2 3)"),
        ("(defmacro unless [c & body] `(if ~c nil (do ~@body))) (unless false 1 2)", "2"),
        ("(defmacro swap [[a b]] `[~b ~a]) (swap [1 2])", "[2 1]"),
        ("(defmacro twice [x :plus 0] `(+ ~x ~x ~plus)) (twice 3 :plus 1)", "7"),
        ("(defmacro power [n] (if (= n 0) 1 `(* 2 (power ~(- n 1))))) (power 5)", "32"),
        # lists and text
        ("(range 2 8 3)", "[2 5]"),
        ("(nth [1 2 3] -1)", "3"),
        ('[(first []) (last [1 2]) (rest [1 2]) (len "abc")]', "[nil 2 [2] 3]"),
        ("(join [1] [] [2 3])", "[1 2 3]"),
        ("(replace [1 2 3] 1 9)", "[1 9 3]"),
        ("(filter (fn [x] (> x 1)) [1 2 3])", "[2 3]"),
        ("(reduce add 0 [1 2 3])", "6"),
        ("(apply max [1 2])", "2"),
        ('(str "layers." 3 ".x" true nil [1 "a"])', '"layers.3.xtruenil[1 \\"a\\"]"'),
    ],
)
def test_form_has_its_value(text: str, value: str | None) -> None:
    if value is None:
        with pytest.raises(LumiError):
            value_of(text)
    else:
        assert value_of(text) == value


def test_macro_names_with_a_hash_cannot_capture() -> None:
    macro = "(defmacro add-twice [x y] `(let [t# ~x] (+ t# t# ~y)))"
    assert value_of(f"{macro} (let [t 100] (add-twice 1 t))") == "102"


def test_each_expansion_is_fresh() -> None:
    macro = "(defmacro bind [v body] `(let [t# ~v] [t# ~body]))"
    assert value_of(f"{macro} (bind 1 (bind 2 3))") == "[1 [2 3]]"


def test_fold_keeps_tensors() -> None:
    session = Session()
    (form,) = read(Source("test.lumi", "(fold [x (iota 4)] [_ (range 3)] (+ x x))"))
    value = session.evaluate(form)
    assert isinstance(value, Node) and str(value.type) == "i32 [4]"


def test_special_forms_cannot_be_bound() -> None:
    for text in ("(let [if 1] 2)", "(fn [let] 1)", "(def cond 3)", "(fold [for 1] [x []] 1)"):
        if text.startswith("(fn"):
            text = f"({text} 1)"
        if text.startswith("(fold"):
            text = "(fold [for 1] [x [1]] 1)"
        with pytest.raises(LumiError, match="cannot be bound"):
            value_of(text)
