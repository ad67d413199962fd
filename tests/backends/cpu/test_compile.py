"""Finding the compiler, and the cache of what it made."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumi.backends.cpu import compile as compiling
from lumi.backends.cpu.compile import compile_libraries, compile_library, find_compiler
from lumi.errors import LumiError

ANSWER = "int answer(void) { return 42; }\n"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A cache of its own, and nothing remembered of compilers or folders."""
    remembered = (find_compiler, compiling._is_writable, compiling._temporary)
    for function in remembered:
        function.cache_clear()
    monkeypatch.setenv("LUMI_CACHE", str(tmp_path / "cache"))
    yield
    for function in remembered:
        function.cache_clear()


def test_library_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    path = compile_library(ANSWER)
    assert ctypes.CDLL(str(path)).answer() == 42

    def refuse(*_: object) -> Path:
        raise AssertionError("compiled again")

    monkeypatch.setattr(compiling, "_compile", refuse)
    assert compile_library(ANSWER) == path


def test_another_source_is_another_library() -> None:
    assert compile_library(ANSWER) != compile_library(ANSWER.replace("42", "43"))


def test_cache_holds_only_whole_libraries(tmp_path: Path) -> None:
    compile_library(ANSWER)
    assert [p.suffix for p in (tmp_path / "cache" / "cpu").iterdir()] == [".so"]


def test_refused_source_is_an_error_in_its_place() -> None:
    good, bad = compile_libraries([ANSWER, "int answer(void) { return }\n"])
    assert isinstance(good, Path)
    assert isinstance(bad, LumiError)
    assert bad.kind == "compiler error"
    assert "refused a kernel" in bad.message


def test_compiler_that_does_not_end_is_stopped_with_all_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    script = tmp_path / "endless"
    script.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ]; then echo 1; exit; fi\nsleep 600 & echo $! >{pid}\nwait\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    monkeypatch.setattr(compiling, "TIMEOUT", 1)
    monkeypatch.setattr(compiling, "has_openmp", lambda compiler: False)
    with pytest.raises(LumiError, match="did not finish a kernel in 1 s") as caught:
        compile_library(ANSWER)
    assert "CC=clang" in caught.value.hint
    status = Path(f"/proc/{pid.read_text().strip()}/status")
    assert not status.exists() or "zombie" in status.read_text()


def test_cc_that_cannot_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler --fast")
    with pytest.raises(LumiError, match="CC is 'no-such-compiler --fast'"):
        find_compiler()


def test_no_compiler_is_an_error_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_compiler() is None
    with pytest.raises(LumiError, match="no C compiler was found") as caught:
        compile_library(ANSWER)
    assert "gcc" in caught.value.hint


def test_unwritable_cache_is_replaced_and_said_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A file stands where the cache should be: nobody, not even root, can write into it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LUMI_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="cannot be written"):
        path = compile_library(ANSWER)
    assert ctypes.CDLL(str(path)).answer() == 42
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_library(ANSWER) == path
