"""The standard library as a whole."""

from __future__ import annotations

import pytest

from lumi.errors import LumiError, Source
from lumi.interpreter.builtin import BUILTINS
from lumi.interpreter.library import Library, library
from lumi.interpreter.registry import SPECIAL
from lumi.interpreter.value import Builtin, Function
from lumi.syntax.form import List, Symbol
from lumi.syntax.reader import read

NAMES = sorted(library().own_names())


@pytest.mark.parametrize("name", NAMES)
def test_library_name_is_documented(name: str) -> None:
    value = library().find(name)
    if isinstance(value, Function):
        assert value.doc.endswith("."), f"{name} has no docstring that is a sentence"
        assert value.name == name


def test_every_builtin_and_special_form_is_documented() -> None:
    assert all(isinstance(b, Builtin) and b.doc.endswith(".") for b in BUILTINS.values())
    undocumented = [n for n, run in SPECIAL.items() if not run.__doc__]
    assert undocumented == []


def test_library_hides_no_builtin() -> None:
    assert [n for n in NAMES if n in BUILTINS or n in SPECIAL] == []


def test_definition_is_parsed_when_its_name_is_needed() -> None:
    names = Library({"a.lumi": ";;; text\n\n(defn f [x] (g x))\n\n(defn g [x]\n  (add x unbalanced"})
    assert isinstance(names.find("f"), Function)
    with pytest.raises(LumiError, match=r"a\.lumi:6:3"):
        names.find("g")


def test_spans_are_those_of_the_whole_file() -> None:
    names = Library({"a.lumi": ";;; text\n\n(def k 1)\n\n(defn f [x]\n  (add x k))\n"})
    function = names.find("f")
    assert isinstance(function, Function)
    assert str(function.body[0].span) == "stdlib/a.lumi:6:3"


def test_library_file_holds_only_definitions() -> None:
    with pytest.raises(LumiError, match=r"more than definitions: .print 1."):
        Library({"a.lumi": "(def k 1)\n(print 1)"})


@pytest.mark.parametrize("file", sorted(library().texts))
def test_index_has_every_definition(file: str) -> None:
    forms = read(Source(file, library().texts[file]))
    names = [
        form.items[1].name for form in forms if isinstance(form, List) and isinstance(form.items[1], Symbol)
    ]
    assert len(names) == len(forms)
    assert [library().file_of(name) for name in names] == [file] * len(names)


def test_name_defined_in_two_files_is_an_error() -> None:
    with pytest.raises(LumiError, match=r"`f` is defined in a.lumi and b.lumi"):
        Library({"a.lumi": "(defn f [x] 1)", "b.lumi": "(defn f [x] 2)"})


def test_every_definition_can_be_parsed_beforehand() -> None:
    fresh = Library(library().texts)
    assert not set(NAMES) & set(fresh.names)
    fresh.supply_all()
    assert set(NAMES) <= set(fresh.names)
