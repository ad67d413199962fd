"""Fixtures shared by all tests: golden files."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`golden(text, ".ext", name="x")` compares text with tests/golden/<test file>/<test name or x><ext>."""
    folder = GOLDEN / Path(request.node.fspath).stem
    update = request.config.getoption("--update-golden")

    def compare(text: str, extension: str = ".txt", name: str | None = None) -> None:
        stem = (name or request.node.name).replace("/", "_").replace("[", "-").replace("]", "")
        path = folder / f"{stem}{extension}"
        text = text if text.endswith("\n") else text + "\n"
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            return
        if not path.exists():
            pytest.fail(f"no golden {path}; run pytest --update-golden and read what it wrote")
        want = path.read_text()
        if text != want:
            lines = difflib.unified_diff(want.splitlines(), text.splitlines(), "golden", "now", lineterm="")
            pytest.fail(f"{path} differs\n" + "\n".join(list(lines)[:80]))

    return compare
