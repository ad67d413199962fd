"""What all tests share: golden files; tests marked `cuda` run where there is an NVIDIA GPU."""

from __future__ import annotations

import ctypes
import difflib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

os.environ.setdefault("LUMI_TARGET", "cpu")  # also where there is a GPU, unless a test asks for it
os.environ.setdefault("LUMI_DATABASE", "none")  # each search is made, whatever was found before

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


@cache
def has_gpu() -> bool:
    """Whether a driver is installed that knows a device; what else is missing is an error."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") and not has_gpu():
        pytest.skip("there is no NVIDIA GPU")


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
