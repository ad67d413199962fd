from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumi.errors import LumiError, Source
from lumi.syntax.form import Float, Form, Int, Keyword, List, Str, Symbol, Vector
from lumi.syntax.printer import show
from lumi.syntax.reader import Incomplete, read, read_one

from .forms import EXAMPLES, forms


def one(text: str) -> Form:
    return read_one(Source("test.lumi", text))


def message(text: str) -> LumiError:
    with pytest.raises(LumiError) as caught:
        read(Source("test.lumi", text))
    return caught.value


@EXAMPLES
@given(forms)
def test_a_shown_form_reads_back(form: Form) -> None:
    assert one(show(form)) == form


@EXAMPLES
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_shown_float_reads_back_bit_for_bit(value: float) -> None:
    form = one(show(Float(value)))
    assert isinstance(form, Float)
    assert struct.pack("<d", form.value) == struct.pack("<d", value)


@EXAMPLES
@given(st.lists(forms, max_size=4), st.sampled_from([" ", "\n", "\r\n", "\t ; note\n", " #_(skip [it]) "]))
def test_forms_read_whatever_lies_between_them(wanted: list[Form], between: str) -> None:
    text = between + between.join(map(show, wanted)) + between
    assert read(Source("test.lumi", text)) == tuple(wanted)


@EXAMPLES
@given(forms)
def test_every_form_spans_its_own_text(form: Form) -> None:
    source = Source("test.lumi", f"  {show(form)} ; end")
    todo: list[Form] = [read_one(source)]
    while todo:
        inner = todo.pop()
        assert inner.span is not None
        if isinstance(inner, List | Vector):
            todo.extend(inner.items)
        if not (isinstance(inner, Symbol) and inner.span.text in ("'", "`", "~", "~@")):
            assert one(inner.span.text) == inner


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("-1", Int(-1)),
        ("+7", Int(7)),
        ("1e-05", Float(1e-05)),
        ("-1.5e+3", Float(-1500.0)),
        ("-", Symbol("-")),
        ("-inf", Symbol("-inf")),
        ("->", Symbol("->")),
        ("...", Symbol("...")),
        ("%12", Symbol("%12")),
        ("x#", Symbol("x#")),
        (":keep-dims?", Keyword("keep-dims?")),
        (":0", Keyword("0")),
        (r'"a\n\t\r\"\\\u{e9}"', Str('a\n\t\r"\\é')),
        ('"two\nlines ; no comment"', Str("two\nlines ; no comment")),
        ("()", List(())),
        (
            "[a (b)(c)[d]]",
            Vector((Symbol("a"), List((Symbol("b"),)), List((Symbol("c"),)), Vector((Symbol("d"),)))),
        ),
        ("'x", List((Symbol("quote"), Symbol("x")))),
        ("`x", List((Symbol("quasiquote"), Symbol("x")))),
        ("~x", List((Symbol("unquote"), Symbol("x")))),
        ("~@x", List((Symbol("unquote-splicing"), Symbol("x")))),
        ("' #_y x", List((Symbol("quote"), Symbol("x")))),
        ("#_ #_ a b c", Symbol("c")),
    ],
)
def test_text_reads_as_form(text: str, form: Form) -> None:
    assert one(text) == form


@pytest.mark.parametrize("text", ["", " ; only a note", "#_(a b)", "#_ #_ a b"])
def test_nothing_reads_as_no_forms(text: str) -> None:
    assert read(Source("test.lumi", text)) == ()


def test_minus_zero_keeps_its_sign() -> None:
    assert show(one("-0.0")) == "-0.0"


@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
def test_a_float_that_is_not_finite_shows_as_its_symbol(value: str) -> None:
    assert one(show(Float(float(value)))) == Symbol(value)


@pytest.mark.parametrize(
    "text", ["(", "(a [b", "(a [b]", '"abc', '(f "a) ; "', "'", "(f ~", "#_", "(f #_", "~@ ; x"]
)
def test_text_that_ends_early_is_incomplete(text: str) -> None:
    assert isinstance(message(text), Incomplete)


@pytest.mark.parametrize("text", [")", "(a]", "[a)", "(f '))", "(f 1x", "(f {", "(a (b]"])
def test_text_that_more_text_cannot_mend_is_not_incomplete(text: str) -> None:
    assert not isinstance(message(text), Incomplete)


def test_one_form_is_expected_when_there_are_none() -> None:
    with pytest.raises(Incomplete, match="a form is expected"):
        one("; nothing")


def test_one_form_is_expected_when_there_are_two() -> None:
    with pytest.raises(LumiError) as caught:
        one("a b")
    assert caught.value.span is not None
    assert caught.value.span.text == "b"


def test_deep_nesting_is_refused_not_a_crash() -> None:
    assert "deeper than 200" in message("(" * 5000 + ")" * 5000).message
    assert "deeper than 200" in message("'" * 5000 + "x").message


def test_an_integer_too_long_for_python_is_refused() -> None:
    assert "5000 digits" in message("9" * 5000).message


@EXAMPLES
@given(st.text(alphabet="()[]'`~@#_;:\"\\ \n,{}ab1.-=", max_size=40))
def test_any_text_reads_or_is_explained_inside_itself(text: str) -> None:
    source = Source("test.lumi", text)
    try:
        read(source)
    except LumiError as error:
        assert error.kind == "syntax error"
        assert error.span is not None
        assert 0 <= error.span.start <= error.span.stop <= len(text)
        assert error.render()
