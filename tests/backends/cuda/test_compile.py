"""NVRTC and its cache."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lumi.backends.cuda import compile as nvrtc
from lumi.errors import LumiError

GOOD = 'extern "C" __global__ void kernel(float *x) { x[threadIdx.x] += 1.0f; }'


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LUMI_CACHE", str(tmp_path))
    return tmp_path


def test_cubin_is_machine_code_with_its_resources() -> None:
    cubin = nvrtc.compile_cubin(GOOD, "sm_90a")
    assert cubin.content.startswith(b"\x7fELF")
    assert cubin.registers > 0
    assert cubin.spilled == 0


def test_second_compilation_comes_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    first = nvrtc.compile_cubin(GOOD, "sm_80")
    monkeypatch.setattr(nvrtc, "_compile", lambda *a: pytest.fail("compiled again"))
    assert nvrtc.compile_cubin(GOOD, "sm_80") == first


def test_other_architecture_is_another_entry(own_cache: Path) -> None:
    for arch in ("sm_80", "sm_90a"):
        nvrtc.compile_cubin(GOOD, arch)
    assert len(list((own_cache / "cuda").glob("*.cubin"))) == 2


def test_damaged_entry_is_compiled_again(own_cache: Path) -> None:
    first = nvrtc.compile_cubin(GOOD, "sm_80")
    (entry,) = (own_cache / "cuda").glob("*.cubin")
    entry.write_bytes(b"nonsense")
    assert nvrtc.compile_cubin(GOOD, "sm_80") == first


def test_error_shows_what_nvrtc_says() -> None:
    with pytest.raises(LumiError, match=r"NVRTC refused a kernel\n.*undefined"):
        nvrtc.compile_cubin(GOOD.replace("+= 1.0f", "= y"), "sm_80")


def test_processes_compile_the_good_and_name_the_bad() -> None:
    texts = [GOOD.replace("1.0f", f"{n}.0f") for n in range(3)] + [GOOD.replace("float", "float_")]
    *good, bad = nvrtc.compile_cubins(texts, "sm_80")
    assert all(isinstance(c, nvrtc.Cubin) for c in good)
    assert isinstance(bad, LumiError)
    assert "float_" in bad.message


def test_missing_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    nvrtc.version.cache_clear()
    with pytest.raises(LumiError) as told:
        nvrtc.compile_cubin(GOOD, "sm_80")
    nvrtc.version.cache_clear()
    assert told.value.hint == "pip install -e '.[cuda]' in Lumi's checkout"


def test_folder_that_cannot_be_written_is_replaced_and_said(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_cache / "file").touch()
    monkeypatch.setenv("LUMI_CACHE", str(own_cache / "file"))
    with pytest.warns(UserWarning, match="cannot be written"):
        cubin = nvrtc.compile_cubin(GOOD, "sm_80")
    assert cubin.content


@pytest.mark.parametrize(("version", "is_brief"), [((12, 6), False), ((12, 8), True), ((13, 0), True)])
def test_older_compilers_are_not_asked_for_what_they_lack(
    version: tuple[int, int], is_brief: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvrtc, "version", lambda: version)
    assert (nvrtc.BRIEF in nvrtc._options()) is is_brief
    assert nvrtc._options()[: len(nvrtc.OPTIONS)] == nvrtc.OPTIONS
