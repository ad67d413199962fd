"""What is suggested for a name that nothing has."""

from __future__ import annotations

import pytest

from lumi.interpreter.scope import nearest


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("foo", ["floor", "for"], ""),
        ("fro", ["floor", "for"], "did you mean for?"),
        ("su", ["sum", "sub"], "did you mean sum or sub?"),
        ("flor", ["floor", "for"], "did you mean floor or for?"),
        ("missing", ["sin", "min"], ""),
        ("sqe", ["seq", "rows"], "did you mean seq?"),
        ("sotfmax", ["log-softmax", "max", "softmax"], "did you mean softmax?"),
        ("softmax", ["log-softmax"], "did you mean log-softmax?"),
    ],
)
def test_only_names_a_mistake_away_are_suggested(name: str, known: list[str], hint: str) -> None:
    assert nearest(name, known) == hint
