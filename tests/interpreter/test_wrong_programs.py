"""Every wrong program in errors/ stops with one error, whose rendered text is golden."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lumi.errors import LumiError, Source
from lumi.interpreter.module import load
from lumi.interpreter.trace import trace

FOLDER = Path(__file__).parent / "errors"
PROGRAMS = sorted(FOLDER.glob("*.lumi"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_wrong_program_is_explained(path: Path, golden: Callable[..., None], monkeypatch) -> None:
    monkeypatch.chdir(FOLDER)
    with pytest.raises(LumiError) as caught:
        module = load(Source(path.name, path.read_text()))
        trace(module)
    assert str(FOLDER) not in caught.value.render().replace(os.sep, "/")
    golden(caught.value.render(), name=path.stem)
