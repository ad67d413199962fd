"""The standard library as a whole."""

from __future__ import annotations

import pytest

from lumi.errors import LumiError
from lumi.interpreter.builtin import BUILTINS
from lumi.interpreter.evaluate import SPECIAL
from lumi.interpreter.library import Library, library
from lumi.interpreter.value import Builtin, Function

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


def test_files_are_read_when_a_name_is_needed() -> None:
    texts = {"a.lumi": "(defn f [x] (g x))", "b.lumi": "(defn g [x] (add x 1)) (nonsense)"}
    names = Library(texts)
    assert isinstance(names.find("f"), Function)
    with pytest.raises(LumiError, match="nonsense"):
        names.find("g")


def test_name_defined_in_two_files_is_an_error() -> None:
    with pytest.raises(LumiError, match=r"`f` is defined in a.lumi and b.lumi"):
        Library({"a.lumi": "(defn f [x] 1)", "b.lumi": "(defn f [x] 2)"})
