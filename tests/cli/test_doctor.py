from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from lumi.backends import targets
from lumi.backends.cpu import compile as c
from lumi.backends.cpu import library
from lumi.backends.cuda import library as cuda_library
from lumi.cli import gpu, host
from tests.cli.conftest import Lumi


def found(lumi: Lumi) -> dict[str, dict[str, object]]:
    return {check["name"]: check for check in lumi("doctor", "--json").json["checks"]}


def test_everything_here_is_listed(lumi: Lumi) -> None:
    checks = found(lumi)
    assert {"Python", "numpy", "lark", "egglog", "C compiler", "CPU BLAS", "cache", "GPU"} <= set(checks)
    assert all(checks[name]["works"] for name in ("Python", "numpy", "lark", "egglog"))


def test_text_says_whether_lumi_can_work(lumi: Lumi) -> None:
    said = lumi("doctor")
    assert said.status == 0
    assert said.out.endswith("Lumi can work here.\n")


def test_a_missing_package_comes_with_advice(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    real = host.version

    def version(name: str) -> str:
        if name == "egglog":
            raise PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(host, "version", version)
    said = lumi("doctor", "--json")
    assert said.status == 1
    (check,) = (check for check in said.json["checks"] if check["name"] == "egglog")
    assert not check["works"]
    assert check["advice"].startswith("pip install 'egglog")
    assert lumi("doctor").out.endswith("Lumi cannot work without: egglog\n")


def test_an_unfit_version_is_no_version(monkeypatch: pytest.MonkeyPatch, lumi: Lumi) -> None:
    monkeypatch.setattr(host, "version", lambda name: "1.0.0")
    check = found(lumi)["egglog"]
    assert not check["works"]
    assert str(check["found"]).startswith("1.0.0, but ")


@pytest.mark.parametrize(
    ("version", "bounds", "fits"),
    [
        ("13.2.0", ">=13.2,<15", True),
        ("13.2", ">=13.2.0", True),
        ("13.1.9", ">=13.2,<15", False),
        ("15.0", ">=13.2,<15", False),
        ("14.9.9rc1", "<15,>=13.2", True),
        ("2", "", True),
        ("10.0", ">=9", True),
    ],
)
def test_versions_fit_bounds(version: str, bounds: str, fits: bool) -> None:
    assert host.satisfies(version, bounds) is fits


def test_without_a_compiler_it_says_what_to_install(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c, "find_compiler", lambda: None)
    said = lumi("doctor", "--json")
    assert said.status == 0
    check = found(lumi)["C compiler"]
    assert (check["works"], check["found"]) == (False, "missing")
    assert "install gcc or clang" in str(check["advice"])


def test_without_a_blas_it_says_what_to_install(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "find_blas", lambda: None)
    check = found(lumi)["CPU BLAS"]
    assert not check["works"]
    assert "install OpenBLAS" in str(check["advice"])


def test_a_wrong_cc_is_named(lumi: Lumi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    c.find_compiler.cache_clear()
    try:
        check = found(lumi)["C compiler"]
    finally:
        c.find_compiler.cache_clear()
    assert not check["works"]
    assert "CC is 'no-such-compiler'" in str(check["advice"])


def test_a_cache_that_cannot_be_written_is_named(
    lumi: Lumi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LUMI_CACHE", str(tmp_path / "file" / "cache"))
    check = found(lumi)["cache"]
    assert not check["works"]
    assert "set LUMI_CACHE" in str(check["advice"])


def test_a_gpu_is_told_with_its_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_driver", lambda: (12080, ["NVIDIA H200"]))
    monkeypatch.setattr(gpu, "_library", lambda short, file, distributions: None)
    monkeypatch.setattr(gpu, "_installed", {"cuda-bindings": "12.9.1"}.get)
    monkeypatch.setattr(cuda_library, "find_library", lambda: None)
    device, driver, pycuda, bindings, nvrtc, products = gpu.checks()
    assert (device.works, device.found) == (True, "NVIDIA H200")
    assert "--target cuda" in device.advice
    assert driver.found == "CUDA 12.8"
    assert (pycuda.works, pycuda.advice) == (False, "pip install -e '.[cuda]' in Lumi's checkout")
    assert (bindings.works, bindings.found, bindings.advice) == (True, "12.9.1", "")
    assert nvrtc.advice == "pip install -e '.[cuda]' in Lumi's checkout"
    assert (products.works, products.found) == (False, "missing")
    assert products.advice.startswith("pip install -e '.[cuda]' in Lumi's checkout; without it")


def test_the_default_target_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LUMI_TARGET", raising=False)
    monkeypatch.setattr("lumi.backends.cuda.driver.missing", lambda: "there is no NVIDIA GPU")
    monkeypatch.setattr(targets, "missing", lambda: "there is no NVIDIA GPU")
    assert gpu.target().found == "cpu: there is no NVIDIA GPU"
    monkeypatch.setattr("lumi.backends.cuda.driver.missing", lambda: "")
    monkeypatch.setattr(targets, "missing", lambda: "")
    assert gpu.target().found == "cuda"
    monkeypatch.setenv("LUMI_TARGET", "cpu")
    assert gpu.target().found == "cpu"
