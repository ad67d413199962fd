"""The checks in *.lumi beside this file: each `(check "what" condition …)` is a test.

Other forms of a file are definitions; a condition is a host value or a bool tensor, which must hold
everywhere.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from lumi.errors import Source
from lumi.hlir.graph import Node
from lumi.hlir.reference import evaluate
from lumi.interpreter.session import Session
from lumi.syntax.form import Form, List, Str, Symbol
from lumi.syntax.reader import read

FILES = sorted(Path(__file__).parent.glob("*.lumi"))


def is_check(form: Form) -> bool:
    return isinstance(form, List) and form.items[0] == Symbol("check")


@cache
def forms_of(path: Path) -> tuple[Form, ...]:
    return read(Source(path.name, path.read_text()))


def checks() -> list[object]:
    found: list[object] = []
    for path in FILES:
        for form in filter(is_check, forms_of(path)):
            assert isinstance(form, List) and isinstance(form.items[1], Str) and len(form.items) > 2
            found.append(pytest.param(path, form, id=f"{path.stem}: {form.items[1].value}"))
    return found


@cache
def session_of(path: Path) -> Session:
    session = Session()
    for form in forms_of(path):
        if not is_check(form):
            session.evaluate(form)
    return session


@pytest.mark.parametrize(("path", "form"), checks())
def test_check_holds(path: Path, form: List) -> None:
    session = session_of(path)
    for condition in form.items[2:]:
        value = session.evaluate(condition)
        if isinstance(value, Node):
            value = bool(evaluate(session.graph("check", {"holds": value}), {}, {})["holds"].all())
        assert value is True, f"{condition.span}: {condition.span.text if condition.span else ''}"


def test_every_library_file_is_checked() -> None:
    library = {p.name for p in (Path(__file__).parents[2] / "stdlib").glob("*.lumi")}
    assert library - {"quant.lumi"} <= {p.name for p in FILES}
