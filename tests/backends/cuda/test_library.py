"""Finding cuBLASLt: in a package of the CUDA in use, with the system's loader, in a toolkit."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from lumi.backends.cuda import library


class Held:
    """A file of an installed package."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, path.name

    def locate(self) -> Path:
        return self.path


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """A machine with nothing; `machine("nvidia-cublas")` installs a package and returns its library."""
    installed: dict[str, list[Held]] = {}

    def files(name: str) -> list[Held]:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    def install(name: str) -> Path:
        path = tmp_path / name / "libcublasLt.so.1"
        path.parent.mkdir()
        path.touch()
        installed[name] = [Held(path.with_name("cublas.h")), Held(path)]
        return path

    monkeypatch.setattr(library, "files", files)
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setattr(library, "TOOLKIT", str(tmp_path / "none"))
    for known in (library.find_library, library.library_version):
        known.cache_clear()
    yield install
    for known in (library.find_library, library.library_version):
        known.cache_clear()


def test_nothing_is_found_where_there_is_nothing(machine: Callable[..., Path]) -> None:
    assert library.find_library() is None


@pytest.mark.parametrize(
    ("bindings", "package"), [("12.9.1", "nvidia-cublas-cu12"), ("13.1", "nvidia-cublas")]
)
def test_package_of_the_cuda_in_use_comes_first(
    machine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, bindings: str, package: str
) -> None:
    monkeypatch.setattr(library, "version", lambda name: bindings)
    paths = {name: machine(name) for name in ("nvidia-cublas", "nvidia-cublas-cu12")}
    assert library.find_library() == str(paths[package])


def test_package_without_its_file_is_passed_over(machine: Callable[..., Path]) -> None:
    machine("nvidia-cublas-cu12").unlink()
    assert library.find_library() is None


def test_toolkit_is_found_where_cuda_home_says(machine: Callable[..., Path], tmp_path: Path) -> None:
    folder = tmp_path / "toolkit" / "lib64"
    folder.mkdir(parents=True)
    (folder / "libcublasLt.so.13").touch()
    assert library.find_library() == str(folder / "libcublasLt.so.13")


def test_version_is_that_of_the_library(
    machine: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Loaded:
        def __init__(self, path: str) -> None:
            self.cublasLtGetVersion = Version()

    class Version:
        restype: object = None

        def __call__(self) -> int:
            return 120903

    machine("nvidia-cublas")
    monkeypatch.setattr(ctypes, "CDLL", Loaded)
    assert library.library_version() == "12.9.3"


def test_library_that_cannot_be_loaded_has_no_version(machine: Callable[..., Path]) -> None:
    assert library.library_version() == ""
    library.find_library.cache_clear()
    library.library_version.cache_clear()
    machine("nvidia-cublas")
    assert library.library_version() == ""
