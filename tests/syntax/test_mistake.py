from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lumi.errors import LumiError, Source
from lumi.syntax.reader import read

WRONG = sorted(Path(__file__).parent.joinpath("errors").glob("*.lumi"))


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_program_is_explained(path: Path, golden: Callable[..., None]) -> None:
    with pytest.raises(LumiError) as caught:
        read(Source(path.name, path.read_text(encoding="utf-8")))
    golden(caught.value.render(), ".txt", name=path.stem)
